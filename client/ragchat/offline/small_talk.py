"""Fixed replies to greetings, thanks and questions about the program, for chats without a model.

The phrases and replies are in `ragconfig/small_talk.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

import msgspec
from msgspec import Struct

from ragconfig.settings import packaged

FILE = "small_talk.toml"
# Longer messages are not small talk.
MAX_CHARACTERS = 100

Words = tuple[str, ...]


class Reply(Struct, frozen=True):
    """`is_help`: it describes the program, and takes precedence over a greeting in the same message.

    `searched_first` are phrases that documents may answer better.
    """

    phrases: list[str]
    text: str
    is_help: bool = False
    searched_first: list[str] = []


class _File(Struct, frozen=True):
    fillers: list[str]
    replies: list[Reply]


def small_talk(message: str) -> str | None:
    """The reply to a message that is only small talk; None for any other message."""
    if len(message) > MAX_CHARACTERS:
        return None
    replies = _replies(_words(message), _phrases())
    return next((reply.text for reply in replies if reply.is_help), replies[-1].text) if replies else None


def is_searched_first(message: str) -> bool:
    """Whether memory is searched before this small talk gets its reply."""
    words = _words(message)
    return any(words == _words(phrase) for reply in _file().replies for phrase in reply.searched_first)


def _replies(words: Words, phrases: Mapping[Words, Reply | None]) -> Sequence[Reply]:
    """The reply to each phrase of a message, longest match first; empty if it has any other word."""
    found: list[Reply] = []
    while words:
        lengths = range(len(words), 0, -1)
        length = next((length for length in lengths if words[:length] in phrases), 0)
        if not length:
            return []
        if reply := phrases[words[:length]]:
            found.append(reply)
        words = words[length:]
    return found


@cache
def _phrases() -> Mapping[Words, Reply | None]:
    """Each phrase with its reply; fillers have none."""
    replies = {
        _words(phrase): reply
        for reply in _file().replies
        for phrase in (*reply.phrases, *reply.searched_first)
    }
    return {_words(filler): None for filler in _file().fillers} | replies


@cache
def _file() -> _File:
    return msgspec.convert(packaged(FILE), _File)


def _words(text: str) -> Words:
    return tuple(re.findall(r"\w+(?:['’]\w+)*", text.casefold().replace("’", "'")))
