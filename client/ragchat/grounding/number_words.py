"""Words for numbers, months and units, from `ragconfig/words.toml`, with and without accents. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from ragchat.grounding.words import folded
from ragconfig.settings import packaged


class _Numbers(Struct, frozen=True):
    """Lists by language, and values by word."""

    units: list[str]
    tens: list[str]
    measures: str
    numbered: str
    others: dict[str, float]
    magnitudes: dict[str, float]
    parts: dict[str, tuple[float, float, float]]


def _numbered(lists: Iterable[str], numbers: range) -> dict[str, int]:
    return {
        form: number
        for words in lists
        for number, word in zip(numbers, words.split(), strict=False)
        for form in (word, folded(word))
    }


_LISTS = msgspec.convert(packaged("words.toml")["numbers"], _Numbers)
MAGNITUDES = {word: value for words, value in _LISTS.magnitudes.items() for word in words.split()}
PARTS = {sign.replace("-", " "): values for signs, values in _LISTS.parts.items() for sign in signs.split()}
MEASURES, NUMBERED_THINGS = _LISTS.measures.split(), _LISTS.numbered.split()
_TENS = range(20, 100, 10)
_SIMPLE = _numbered(_LISTS.units, range(2, 20)) | _numbered(_LISTS.tens, _TENS)
del _SIMPLE["once"]  # eleven in Spanish
_ENGLISH, _GERMAN = ([first, *_LISTS.units[at].split()[:8]] for at, first in enumerate(("one", "ein")))
_COMPOUNDS = {
    form: ten + digit
    for ten, english, german in zip(_TENS, _LISTS.tens[0].split(), _LISTS.tens[1].split(), strict=True)
    for digit, (one, ein) in enumerate(zip(_ENGLISH, _GERMAN, strict=True), 1)
    for form in (f"{english}-{one}", f"{english} {one}", f"{ein}und{german}", folded(f"{ein}und{german}"))
}
NUMBER_WORDS: dict[str, float] = _SIMPLE | _COMPOUNDS | _LISTS.others
