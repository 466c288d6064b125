"""Sizes of texts in tokens, without any tokenizer of a model. Pure.

Which tokenizer a server uses is not known, and loading one would need the network. So there are two bounds,
held against a vocabulary of 32,000 (Llama 2, the wasteful end) and what is published for those of 200,000:

- `at_most`: for budgets. It errs on the safe side, by a third for English prose, threefold for Russian.
- `at_least`: for noticing that a server has counted too few.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from ragchat.types import Message

# What the chat template puts around a message.
MESSAGE_TOKENS = 6

_SPACE = re.compile(r"\s+")
_LETTERS = bytes(byte for byte in range(128) if chr(byte).isalpha())
# What is left without these: digits, signs and new lines; first bytes of two; first bytes of three or four.
_NOT_SIGNS = bytes({*_LETTERS, *b" \t\r", *range(128, 256)})
_NOT_FOREIGN = bytes({*range(256)} - {*range(0xC0, 0xE0)})
_NOT_WIDE = bytes(range(0xE0))


def at_most(text: str) -> int:
    """An upper estimate of the text's tokens.

    Three ASCII letters make one; every digit, sign and new line is one, and every letter of another alphabet;
    a character of UTF-8's three and four bytes (Chinese) is two. Spaces go with the word after them.
    """
    encoded = text.encode("utf-8", "replace")
    letters = len(encoded) - len(encoded.translate(None, _LETTERS))
    signs = len(encoded.translate(None, _NOT_SIGNS))
    foreign = len(encoded.translate(None, _NOT_FOREIGN))
    wide = len(encoded.translate(None, _NOT_WIDE))
    return -(-letters // 3) + signs + foreign + 2 * wide


def at_least(text: str) -> int:
    """A lower estimate: 7 bytes of UTF-8 make one, a run of white space counts for one byte."""
    return len(_SPACE.sub(" ", text).encode("utf-8", "replace")) // 7


def prompt_at_most(messages: Iterable[Message]) -> int:
    """The upper estimate for messages of the API, tool calls included; also for tool descriptions."""
    return sum(at_most(_text(message)) + MESSAGE_TOKENS for message in messages)


def prompt_at_least(messages: Iterable[Message]) -> int:
    """The lower estimate for messages of the API."""
    return sum(at_least(_text(message)) for message in messages)


def _text(message: Message) -> str:
    if message.keys() <= {"role", "content"}:
        return str(message.get("content") or "")
    return msgspec.json.encode(message).decode()
