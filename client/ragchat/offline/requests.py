"""Questions that ask for more than one fact: a list, an outline, a comparison. Pure.

A wrong recognition is worse than none: a pattern matches from the first word on, and what it finds must also
be in memory, as a list, a document or a heading of that name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_POLITE = r"^\W*(?:(?:please|bitte|and|und|so|also|can you|could you|would you|kannst du|könntest du)\W+)*"
# A noun with at most two words before it.
_HEAD = r"(?P<head>(?:[\w'’-]+ ){0,2}?[\w'’-]+)"


def _patterns(*patterns: str) -> Sequence[re.Pattern[str]]:
    return [re.compile(_POLITE + pattern, re.IGNORECASE) for pattern in patterns]


_COUNTS = _patterns(
    rf"how many {_HEAD} (?=are|were|is|do|does|did|have|has|can|in|on|of|at|for|belong|there)",
    rf"how many {_HEAD}(?=\W*$)",
    rf"wie ?viele {_HEAD} (?=gibt|sind|waren|hat|haben|hatte|stehen|liegen|gehören|in|im|auf|am|für)",
    rf"wie ?viele {_HEAD}(?=\W*$)",
)
_LISTS = _patterns(
    rf"(?:which|what) {_HEAD} (?:are|were) (?:there|available|listed|included|in|on|at)\b",
    rf"(?:which|what) {_HEAD} do (?:we|i) have\b",
    r"(?:list|name|enumerate|show|give|tell)(?: me| us)? (?:all|every|each)\b",
    r"(?:list|enumerate)\b(?! of)",
    r"(?:show|give)(?: me| us)? (?:the|a) (?:(?:full|whole|complete) )?list of\b",
    r"what (?:are|were) (?:all )?(?:of )?(?:the|our|my)\b",
    rf"welche {_HEAD} (?:gibt es|gab es|haben wir|habe ich)\b",
    r"(?:nenne?|liste|zeige?|zähle?)(?: mir| uns)? (?:bitte )?(?:alle|sämtliche)\b",
    r"liste?\b(?=.*\bauf\W*$)",
    r"was sind (?:alle|die)\b",
)


@dataclass(frozen=True)
class ListRequest:
    """Asks for all items of a list, or how many there are. `head` is what they are called, or ""."""

    subject: str
    head: str
    counts: bool


def list_request(question: str) -> ListRequest | None:
    """What a question asks a list of; None for any other question."""
    for patterns, counts in ((_COUNTS, True), (_LISTS, False)):
        for pattern in patterns:
            if found := pattern.match(question):
                head = found.groupdict().get("head") or ""
                return ListRequest(f"{head} {question[found.end() :]}".strip(), head, counts)
    return None
