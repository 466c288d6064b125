"""Bounds for the number of tokens of a text, without a tokenizer. Pure.

The tokenizer of a server is unknown, and loading one would need the network. The bounds were checked against
a vocabulary of 32,000 (Llama 2, which produces the most tokens) and published numbers for 200,000:

- `at_most` is for budgets. It is a third too high for English prose, three times too high for Russian.
- `at_least` detects servers that have counted too few.
- `about` and `mean` are estimates between the bounds.
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
# Deleting these bytes leaves: digits, signs and newlines; lead bytes of two-byte characters; of longer ones.
_NOT_SIGNS = bytes({*_LETTERS, *b" \t\r", *range(128, 256)})
_NOT_FOREIGN = bytes({*range(256)} - {*range(0xC0, 0xE0)})
_NOT_WIDE = bytes(range(0xE0))


def at_most(text: str) -> int:
    """An upper bound.

    Three ASCII letters are one token. Each digit, sign, newline and letter of another alphabet is one; a
    character of three or four bytes in UTF-8 (Chinese) is two. Spaces belong to the next word.
    """
    encoded = text.encode("utf-8", "replace")
    letters = len(encoded) - len(encoded.translate(None, _LETTERS))
    signs = len(encoded.translate(None, _NOT_SIGNS))
    foreign = len(encoded.translate(None, _NOT_FOREIGN))
    wide = len(encoded.translate(None, _NOT_WIDE))
    return -(-letters // 3) + signs + foreign + 2 * wide


def beginning(text: str, budget: int) -> str:
    """The beginning of a text that takes at most `budget` tokens."""
    while (size := at_most(text)) > budget:
        text = text[: len(text) * budget // size]
    return text


def at_least(text: str) -> int:
    """A lower bound: 7 bytes of UTF-8 are one token; a run of white space counts as one byte."""
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
