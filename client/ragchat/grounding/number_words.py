"""Words for numbers, months and units, from `ragconfig/words.toml`, with and without accents. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ragchat.grounding.words import folded
from ragconfig.settings import packaged


def _numbered(lists: Iterable[str], numbers: range) -> dict[str, int]:
    return {
        form: number
        for words in lists
        for number, word in zip(numbers, words.split(), strict=False)
        for form in (word, folded(word))
    }


_LISTS = packaged("words.toml")["numbers"]
_UNITS, _TENS_OF = _LISTS["units"], _LISTS["tens"]
MAGNITUDES: dict[str, float] = {one: n for words, n in _LISTS["magnitudes"].items() for one in words.split()}
PARTS: dict[str, list[float]] = {
    sign.replace("-", " "): values for signs, values in _LISTS["parts"].items() for sign in signs.split()
}
MEASURES, NUMBERED_THINGS = (str(_LISTS[name]).split() for name in ("measures", "numbered"))
_TENS = range(20, 100, 10)
_SIMPLE = _numbered(_UNITS, range(2, 20)) | _numbered(_TENS_OF, _TENS)
del _SIMPLE["once"]  # eleven in Spanish
_ENGLISH, _GERMAN = ([first, *_UNITS[at].split()[:8]] for at, first in enumerate(("one", "ein")))
_COMPOUNDS = {
    form: ten + digit
    for ten, english, german in zip(_TENS, _TENS_OF[0].split(), _TENS_OF[1].split(), strict=True)
    for digit, (one, ein) in enumerate(zip(_ENGLISH, _GERMAN, strict=True), 1)
    for form in (f"{english}-{one}", f"{english} {one}", f"{ein}und{german}", folded(f"{ein}und{german}"))
}
NUMBER_WORDS: dict[str, float] = _SIMPLE | _COMPOUNDS | _LISTS["others"]
