"""Words for numbers and months in English, German, French and Spanish, in lower case without accents."""

from __future__ import annotations

_UNITS = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty",
    "zwei drei vier funf sechs sieben acht neun zehn elf zwolf dreizehn vierzehn funfzehn sechzehn siebzehn "
    "achtzehn neunzehn zwanzig",
    "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit "
    "dix-neuf vingt",
    "dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciseis diecisiete "
    "dieciocho diecinueve veinte",
)
_TENS = (
    "thirty forty fifty sixty seventy eighty ninety",
    "dreissig vierzig funfzig sechzig siebzig achtzig neunzig",
    "trente quarante cinquante soixante soixante-dix quatre-vingts quatre-vingt-dix",
    "treinta cuarenta cincuenta sesenta setenta ochenta noventa",
)
_ENGLISH = _UNITS[0].split()[:8]
_GERMAN = ["einund", *(f"{word}und" for word in _UNITS[1].split()[:8])]

# "once" is once in English, and eleven in Spanish.
NUMBER_WORDS: dict[str, float] = {
    word: float(value) for words in _UNITS for value, word in enumerate(words.split(), 2) if word != "once"
}
NUMBER_WORDS |= {
    word: float(value)
    for words in _TENS
    for value, word in zip(range(30, 100, 10), words.split(), strict=True)
}
_COMPOUND = {"twenty": 20, **dict(zip(_TENS[0].split(), range(30, 100, 10), strict=True))}
NUMBER_WORDS |= {
    f"{ten}{dash}{unit}": float(value + digit)
    for ten, value in _COMPOUND.items()
    for digit, unit in enumerate(["one", *_ENGLISH], 1)
    for dash in "- "
}
NUMBER_WORDS |= {
    f"{unit}{ten}": float(value + digit)
    for value, ten in zip(range(20, 100, 10), ["zwanzig", *_TENS[1].split()], strict=True)
    for digit, unit in enumerate(_GERMAN, 1)
}
NUMBER_WORDS |= {
    "twice": 2.0,
    "both": 2.0,
    "pair": 2.0,
    "couple": 2.0,
    "dozen": 12.0,
    "half": 0.5,
    "hundred": 100.0,
}
NUMBER_WORDS |= {"thousand": 1000.0, "hundert": 100.0, "tausend": 1000.0, "cent": 100.0, "mille": 1000.0}

MAGNITUDES: dict[str, float] = {
    **dict.fromkeys(["hundred", "hundert"], 1e2),
    **dict.fromkeys(["k", "thousand", "tausend", "mille", "mil"], 1e3),
    **dict.fromkeys(["million", "millions", "millionen", "mio", "millones"], 1e6),
    **dict.fromkeys(["billion", "billions", "bn", "milliarden", "mrd", "milliards"], 1e9),
}

MONTHS: dict[str, int] = {
    name: number
    for names in (
        "january february march april may june july august september october november december",
        "jan feb mar apr may jun jul aug sep oct nov dec",
        "januar februar marz april mai juni juli august september oktober november dezember",
        "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    )
    for number, name in enumerate(names.split(), 1)
} | {"sept": 9, "okt": 10, "dez": 12}
