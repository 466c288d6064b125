"""Questions that ask for more than one fact: a list, an outline, a comparison. Pure.

A wrong recognition is worse than none: a pattern matches from the first word on, and what it finds must also
be in memory, as a list, a document or a heading of that name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ragchat.offline.words import content_words

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
_NAME = r"(?P<name>.+)"
# These ask for nothing but an outline …
_OUTLINES = _patterns(
    r"(?:(?:give|show|write|make)(?: me| us)? )?(?:(?:a|an|the) )?(?:(?:short|brief|quick|rough) )?"
    rf"(?:summary|overview|outline|gist|abstract) of {_NAME}",
    rf"(?:summari[sz]e|sum up|outline|recap|tl;?dr:?) {_NAME}",
    r"fasse? (?P<name>.+?) (?:kurz )?zusammen\W*$",
    r"(?:(?:gib|zeige?)(?: mir| uns)? )?(?:eine?n? )?(?:kurze[nr]? )?"
    rf"(?:zusammenfassung|übersicht|überblick|gliederung) (?:von|vom|über|zu|zum|zur|des|der) {_NAME}",
)
# … and these perhaps for one thing: "What is in the drawer?"
_CONTENTS = _patterns(
    rf"what(?:'s|’s| is) (?:written )?(?:in|inside) {_NAME}",
    rf"what does {_NAME} (?:say|contain|cover)\W*$",
    rf"what(?:'s|’s| is) {_NAME} about\W*$",
    rf"was (?:steht|ist) (?:in|im) {_NAME}",
    rf"worum geht(?: es|'s|’s) (?:in|im) {_NAME}",
    rf"was enthält {_NAME}",
)
_TWO = r"(?P<first>.+?) (?:and|und|to|with|mit|von|from|versus|vs\.?) (?P<second>.+?)"
_COMPARISONS = _patterns(
    rf"(?:compare|vergleiche?) {_TWO}\W*$",
    rf"(?:what(?:'s|’s| is| are) )?(?:the )?differences? between {_TWO}\W*$",
    rf"what (?:has |was |is )?(?:changed?|different) (?:in (?P<topic>.+?) )?(?:between|from) {_TWO}\W*$",
    rf"how do(?:es)? {_TWO} differ\W*$",
    r"how do(?:es)? (?P<first>.+?) differ from (?P<second>.+?)\W*$",
    rf"(?:was (?:ist|sind) )?(?:der |die )?unterschiede? zwischen {_TWO}\W*$",
    r"was hat sich (?:(?:in|an|im|am|bei|beim) (?P<topic>.+?) )?"
    rf"(?:zwischen|von) {_TWO} (?:geändert|verändert)\W*$",
    rf"(?:was|worin) unterscheide[tn](?: sich)? {_TWO}\W*$",
)
_ARTICLE = re.compile(
    r"(?:the|an?|my|our|your|this|der|die|das|den|dem|des|[md]eine?[mnrs]?|unser(?:e[mnrs]?)?)\s+",
    re.IGNORECASE,
)
_KIND = (
    r"(?:document|file|notes?|page|text|section|chapter|dokuments?|datei|notiz|seite|text|abschnitt|kapitel)"
)
_OF_A_KIND = re.compile(rf"{_KIND}\s+(?=\S)|(?<=\S)\s+{_KIND}$", re.IGNORECASE)
_QUOTES = " \t?!,;:\"'`“”„‘’«»"


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


@dataclass(frozen=True)
class OutlineRequest:
    """Asks what a document or a section says. `is_certain`: it can ask for nothing else."""

    name: str
    is_certain: bool


def outline_request(question: str) -> OutlineRequest | None:
    """The name of what a question asks an outline of; None for any other question."""
    for patterns, is_certain in ((_OUTLINES, True), (_CONTENTS, False)):
        for pattern in patterns:
            if found := pattern.match(question):
                name = _bare(found["name"])
                without_kind = _OF_A_KIND.sub("", name)
                return OutlineRequest(_bare(without_kind), is_certain or without_kind != name)
    return None


def _bare(name: str) -> str:
    """A name without quotation marks and article."""
    name = name.strip(_QUOTES).removesuffix(".")
    article = _ARTICLE.match(name)
    return name[article.end() :].strip(_QUOTES) if article else name


@dataclass(frozen=True)
class ComparisonRequest:
    """Asks what two things have and do not have in common, `topic` ("" for all) in particular."""

    first: str
    second: str
    topic: str

    @property
    def sides(self) -> Sequence[tuple[str, str]]:
        """Each name with the words to search for: "rent in Oslo and Rome" means the rent in Rome."""
        ours, theirs = content_words(self.first), content_words(self.second)
        lacks = len(ours) - len(theirs)
        if lacks > 0:
            theirs = ours[:lacks] + theirs
        elif lacks < 0:
            ours = ours + theirs[lacks:]
        return [
            (name, " ".join([*content_words(self.topic), *words]))
            for name, words in ((self.first, ours), (self.second, theirs))
        ]


def comparison_request(question: str) -> ComparisonRequest | None:
    """What a question compares; None for any other question."""
    for pattern in _COMPARISONS:
        if found := pattern.match(question):
            first, second = _bare(found["first"]), _bare(found["second"])
            if content_words(first) and content_words(second):
                return ComparisonRequest(first, second, _bare(found.groupdict().get("topic") or ""))
    return None
