"""Sizes of texts in tokens, without any tokenizer of a model. Pure.

Which tokenizer a server uses is not known, and loading one would need the network. So there are two bounds,
measured on English, German and Chinese text and on code, with a vocabulary of 32,000 (Llama 2, the wasteful
end; 3.2 to 4.8 ASCII characters a token, 1.4 tokens a Chinese character) and by what is published for
vocabularies of 200,000 (4 to 5, and 0.7):

- `at_most`: for budgets. It errs on the safe side, by a third for English prose, twofold for Chinese.
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


def at_most(text: str) -> int:
    """An upper estimate of the text's tokens: 3 ASCII characters, or 2 bytes of anything else, make one."""
    ascii_characters = len(text.encode("ascii", "ignore"))
    other_bytes = len(text.encode("utf-8", "replace")) - ascii_characters
    return -(-ascii_characters // 3) + -(-other_bytes // 2)


def at_least(text: str) -> int:
    """A lower estimate: 6 bytes of UTF-8 make one, a run of white space counts for one byte."""
    return len(_SPACE.sub(" ", text).encode("utf-8", "replace")) // 6


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
