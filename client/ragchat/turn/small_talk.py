"""Fixed replies to greetings, thanks and questions about the program, for chats without a model.

The phrases and replies are in `ragconfig/small_talk.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import msgspec
from msgspec import Struct

from ragconfig.settings import packaged

# Longer messages are not small talk.
MAX_CHARACTERS = 100


class Reply(Struct, frozen=True):
    """`is_help`: it describes the program, and takes precedence over a greeting in the same message.

    `searched_first` are phrases that documents may answer better.
    """

    phrases: list[str]
    text: str
    is_help: bool = False
    searched_first: list[str] = []


_FILE = packaged("small_talk.toml")
_REPLIES = msgspec.convert(_FILE["replies"], list[Reply])


def small_talk(message: str) -> str | None:
    """The reply to a message that is only small talk; None for any other message."""
    phrases = _phrases()
    text, phrase = _plain(message), "|".join(map(re.escape, phrases))
    if len(message) > MAX_CHARACTERS or not re.fullmatch(rf"(?:(?:{phrase})(?: |$))+", text):
        return None
    replies = [reply for one in re.findall(rf"({phrase})(?: |$)", text) if (reply := phrases[one])]
    return next((reply.text for reply in replies if reply.is_help), replies[-1].text) if replies else None


def is_searched_first(message: str) -> bool:
    """Whether memory is searched before this small talk gets its reply."""
    return _plain(message) in (_plain(one) for reply in _REPLIES for one in reply.searched_first)


@cache
def _phrases() -> Mapping[str, Reply | None]:
    """Each phrase with its reply, the longest first; fillers have none."""
    found: dict[str, Reply | None] = {_plain(filler): None for filler in _FILE["fillers"]}
    for reply in _REPLIES:
        found |= {_plain(phrase): reply for phrase in (*reply.phrases, *reply.searched_first)}
    return {phrase: found[phrase] for phrase in sorted(found, key=len, reverse=True)}


def _plain(text: str) -> str:
    """The words, in lower case, separated by spaces."""
    return " ".join(re.findall(r"\w+(?:['’]\w+)*", text.casefold().replace("’", "'")))
