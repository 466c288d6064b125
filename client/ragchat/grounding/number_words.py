"""Words for numbers and months in English, German, French and Spanish, in lower case. Pure.

Each is there with its accents and without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

from ragchat.grounding.words import folded

_UNITS = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty",
    "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
    "achtzehn neunzehn zwanzig",
    "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit "
    "dix-neuf vingt",
    "dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete "
    "dieciocho diecinueve veinte",
)
_TENS = (
    "thirty forty fifty sixty seventy eighty ninety",
    "dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "trente quarante cinquante soixante soixante-dix quatre-vingts quatre-vingt-dix",
    "treinta cuarenta cincuenta sesenta setenta ochenta noventa",
)


def _with_plain(values: Mapping[str, float]) -> dict[str, float]:
    return dict(values) | {folded(word): value for word, value in values.items()}


def _numbered(languages: Iterable[str], numbers: range) -> Iterable[tuple[str, float]]:
    return chain.from_iterable(
        ((word, float(n)) for n, word in zip(numbers, words.split(), strict=True)) for words in languages
    )


# Those that are one word, and no compound. "once" is once in English, and eleven in Spanish.
SIMPLE_NUMBERS: dict[str, float] = _with_plain(
    {word: value for word, value in _numbered(_UNITS, range(2, 21)) if word != "once"}
    | dict(_numbered(_TENS, range(30, 100, 10)))
    | dict.fromkeys(["twice", "both", "pair", "couple"], 2.0)
    | dict.fromkeys(["hundred", "hundert", "cent"], 100.0)
    | dict.fromkeys(["thousand", "tausend", "mille"], 1000.0)
    | {"dozen": 12.0, "half": 0.5}
)
_ENGLISH_TENS = ["twenty", *_TENS[0].split()]
_GERMAN_TENS = ["zwanzig", *_TENS[1].split()]
_GERMAN_UNITS = ["ein", *_UNITS[1].split()[:8]]
NUMBER_WORDS: dict[str, float] = (
    SIMPLE_NUMBERS
    | {
        f"{ten}{dash}{unit}": float(value + digit)
        for value, ten in zip(range(20, 100, 10), _ENGLISH_TENS, strict=True)
        for digit, unit in enumerate(["one", *_UNITS[0].split()[:8]], 1)
        for dash in "- "
    }
    | _with_plain(
        {
            f"{unit}und{ten}": float(value + digit)
            for value, ten in zip(range(20, 100, 10), _GERMAN_TENS, strict=True)
            for digit, unit in enumerate(_GERMAN_UNITS, 1)
        }
    )
)
# Parts of a whole, of an hour and of a hundred; "third" is 3 as well.
PARTS: dict[str, tuple[float, float, float]] = {
    **dict.fromkeys(["half", "½", "1/2", "halb"], (0.5, 30.0, 50.0)),
    **dict.fromkeys(["quarter", "¼", "1/4", "viertel"], (0.25, 15.0, 25.0)),
    **dict.fromkeys(["three quarters", "¾", "3/4"], (0.75, 45.0, 75.0)),
    **dict.fromkeys(["third", "⅓", "1/3"], (3.0, 20.0, 33.0)),
}

MAGNITUDES: dict[str, float] = {
    **dict.fromkeys(["hundred", "hundert"], 1e2),
    **dict.fromkeys(["k", "thousand", "tausend", "mille", "mil"], 1e3),
    **dict.fromkeys(["million", "millions", "millionen", "mio", "millones"], 1e6),
    **dict.fromkeys(["billion", "billions", "bn", "milliarden", "mrd", "milliards"], 1e9),
}

MONTHS: dict[str, int] = {
    form: number
    for names in (
        "january february march april may june july august september october november december",
        "jan feb mar apr may jun jul aug sep oct nov dec",
        "januar februar märz april mai juni juli august september oktober november dezember",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    )
    for number, name in enumerate(names.split(), 1)
    for form in (name, folded(name))
} | {"sept": 9, "okt": 10, "dez": 12}
