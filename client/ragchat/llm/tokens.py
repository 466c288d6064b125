"""Bounds for the number of tokens of a text, without a tokenizer. Pure.

The tokenizer of a server is not known, and loading one would need the network. The bounds are checked against
a vocabulary of 32,000 (Llama 2, which makes the most tokens) and published numbers for those of 200,000:

- `at_most` is for budgets. It is too high by a third for English prose, threefold for Russian.
- `at_least` detects that a server has counted too few.
- `about`, their mean, is for showing where a server has counted nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from ragchat.llm.types import Message

# Around each message, from the chat template.
MESSAGE_TOKENS = 6

_SPACE = re.compile(r"\s+")
_LETTERS = bytes(byte for byte in range(128) if chr(byte).isalpha())
# What remains without these bytes: digits, signs and new lines; first bytes of two; of three and four.
_NOT_SIGNS = bytes({*_LETTERS, *b" \t\r", *range(128, 256)})
_NOT_FOREIGN = bytes({*range(256)} - {*range(0xC0, 0xE0)})
_NOT_WIDE = bytes(range(0xE0))


def at_most(text: str) -> int:
    """An upper bound.

    Three ASCII letters are one token. Each digit, sign and new line is one, and each letter of another
    alphabet; a character of three or four bytes in UTF-8 (Chinese) is two. Spaces belong to the next word.
    """
    encoded = text.encode("utf-8", "replace")
    letters = len(encoded) - len(encoded.translate(None, _LETTERS))
    signs = len(encoded.translate(None, _NOT_SIGNS))
    foreign = len(encoded.translate(None, _NOT_FOREIGN))
    wide = len(encoded.translate(None, _NOT_WIDE))
    return -(-letters // 3) + signs + foreign + 2 * wide


def beginning(text: str, budget: int) -> str:
    """As much of the text, from its start, as surely takes at most `budget` tokens."""
    while (size := at_most(text)) > budget:
        text = text[: len(text) * budget // size]
    return text


def at_least(text: str) -> int:
    """A lower bound: 7 bytes of UTF-8 are one token, a run of white space is one byte."""
    return len(_SPACE.sub(" ", text).encode("utf-8", "replace")) // 7


def about(messages: Iterable[Message]) -> int:
    """An estimate for messages of the API, or for tool descriptions."""
    listed = list(messages)
    return (prompt_at_most(listed) + prompt_at_least(listed)) // 2


def mean(text: str) -> int:
    """An estimate for a text, between the bounds."""
    return (at_most(text) + at_least(text)) // 2


def prompt_at_most(messages: Iterable[Message]) -> int:
    """The upper bound for messages of the API with their tool calls, and for tool descriptions."""
    return sum(at_most(_text(message)) + MESSAGE_TOKENS for message in messages)


def prompt_at_least(messages: Iterable[Message]) -> int:
    """The lower bound for messages of the API."""
    return sum(at_least(_text(message)) for message in messages)


def _text(message: Message) -> str:
    if message.keys() <= {"role", "content"}:
        return str(message.get("content") or "")
    return msgspec.json.encode(message).decode()
