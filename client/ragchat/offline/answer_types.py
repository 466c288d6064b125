"""What a question expects of its answer: a price, a duration, a date, a name, a place. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ragchat.offline.number_words import MAGNITUDES, MONTHS, PARTS, SIMPLE_NUMBERS

# From this weight on, what has no value of the type cannot be the answer. Names and places have weak signs.
CERTAIN = 0.5


@dataclass(frozen=True)
class AnswerType:
    """`asks` finds in a question what makes it one of this type, `values` in a text the values of the type.

    `weight` compares with that of a rare word of the question: 1 for what can hardly be put otherwise.
    If `values` has a group "value", only what that group matches is one. `is_new`: what the question says
    already is none.
    """

    name: str
    asks: re.Pattern[str]
    values: str
    weight: float
    is_cased: bool = False
    is_new: bool = False

    @cached_property
    def has(self) -> re.Pattern[str]:
        """`values`, compiled when it is first needed."""
        return re.compile(self.values, 0 if self.is_cased else re.IGNORECASE)

    def values_in(self, text: str) -> Iterator[str]:
        """The values of the type that a text has."""
        for found in self.has.finditer(text):
            value = found["value"] if "value" in self.has.groupindex else found.group()
            if value is not None:
                yield value

    @property
    def is_certain(self) -> bool:
        """Whether a text without such a value cannot be the answer."""
        return self.weight >= CERTAIN

    @property
    def may_be_bare(self) -> bool:
        """Whether a number below a header, or behind a key, can be such a value: dates look like dates."""
        return self.is_certain and self.name not in ("year", "time", "date")


def _any(*patterns: str) -> str:
    """What matches where one of the patterns does, one a language or a form."""
    return "|".join(patterns)


def _words(*alternatives: str) -> str:
    """What matches one of these whole words."""
    return rf"\b(?:{'|'.join(alternatives)})\b"


_NUMBER_WORD = _any(
    *(*SIMPLE_NUMBERS, *MAGNITUDES, *filter(str.isalpha, PARTS)),
    "one|once|einmal|zweimal|hälfte|moitié|cien|mitad",
)
_NUMBER = rf"\d|\b(?:{_NUMBER_WORD})\b|[一二三四五六七八九十百千万亿两]"
_NUMBER_RUN = rf"\b\d+|\b(?:{_NUMBER_WORD})(?:[\s-](?:{_NUMBER_WORD}))*\b"
_ARTICLE = "a|an|ein|eine|einen|un|une|una|uno"
_AMOUNT = rf"(?:[\d.,½¼¾]+|\b(?:{_NUMBER_WORD}|{_ARTICLE})|[一二三四五六七八九十百千万两半]+)"
_TIMES = _any(
    "s|sec(?:ond)?s?|min(?:ute)?s?|h|hours?|days?|nights?|weeks?|months?|years?|decades?|centuries",
    "sekunden?|minuten?|stunden?|tage?n?|wochen?|monaten?|monate|jahren?|jahre",
    "secondes?|heures?|jours?|semaines?|mois|ans?|années?",
    "segundos?|minutos?|horas?|días?|semanas?|meses|años?",
)
_LENGTHS = _any(
    "(?:milli|centi|kilo)?(?:met(?:re|er)s?|mètres?|metern?|metros?)|feet|foot|ft|inch(?:es)?|yards?|miles?",
    "km|cm|mm|m|µm",
)
_WEIGHTS = _any(
    "(?:kilo|milli)?(?:grams?|gramm|grammes?|gramos?)|kilos?|kg|mg|g|lbs?|pounds?|pfund|stones?|oz|ounces?",
    "tonn?e?s?|t",
)
_MEASURES = _any(
    rf"(?:{_TIMES}|{_LENGTHS}|{_WEIGHTS})(?![^\W\d_])",
    r"(?:litres?|liters?|l|ml|watts?|[km]?w|kwh|volts?|amperes?|[kmgt]i?b|lux|people|persons?|pages?)(?![^\W\d_])",
)
_DAYS = _any(
    r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?s?",
    "(?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)s?",
)
# The hour in words, and what comes again and again.
_HOUR = rf"\b(?:at|by|um|gegen|à|a las) (?:{_NUMBER_WORD})\b"
_RECURRING = _any(
    "mornings?|afternoons?|evenings?|nights?|dawn|dusk|daily|nightly|weekly|monthly|yearly|annually|every|each",
    "morgens?|vormittags?|nachmittags?|abends?|nachts?|täglich|wöchentlich|monatlich|jährlich|jede[nmrs]?",
    "matins?|soirs?|nuits?|chaque|mañanas?|tardes?|noches?|cada",
)
# "In three years", "for two hundred years": how long, not how old.
_NO_AGE = r"\b(?:in|for|within|after|every|last|next)\s+"
# Where a question word opens a question, it asks for the thing itself.
_OPENS = r"^\W*(?:and |so |und )?"


# A proper name: in quotation marks, emphasized, or with a capital that no sentence's beginning explains.
# After some words it is a place, or the reader.
_CAPITALS = r"[A-ZÄÖÜÉÁÍÓÚ][\w'’-]+(?:[ -](?:(?:of|de|del|van|von|du|la|le|and|&) )*[A-ZÄÖÜÉÁÍÓÚ][\w'’-]+)*"
_PLACED = r"\b(?:in|from|at|near|to|on|between|aus|bei|en|à|desde|[Dd]ear|[Hh]ello|[Hh]i|Liebe[r]?|Cher) "
_QUOTED = r"[\"“„«*_`]\s?[^\s\"”“»*_`]+(?: [^\s\"”“»*_`]+){0,2}\s?[\"”“»*_`]"
_PROPER_NAME = _any(
    rf"{_PLACED}{_CAPITALS}",
    rf"(?i:\b(?:{'|'.join(MONTHS)}|{_DAYS})\b)",
    rf"(?P<value>(?<=[\w,;:)(] ){_CAPITALS}|\b[A-ZÄÖÜÉ][\w'’.-]+ {_CAPITALS}|{_QUOTED})",
)
# In German, every noun has a capital.
_GERMAN_NAME = _any(
    rf"(?P<value>(?:(?i:hei(?:ß|ss)t|hieß|namens|genannt|Herr|Frau|Dr\.) )(?:\w+ )?{_CAPITALS}|{_QUOTED}",
    r"(?<=[\w,;:)(] )[A-ZÄÖÜ][\w-]+ [A-ZÄÖÜ][\w-]+)",
)


def _type(
    name: str, asks: str, values: str, weight: float, *, is_cased: bool = False, is_new: bool = False
) -> AnswerType:
    return AnswerType(name, re.compile(asks, re.IGNORECASE), values, weight, is_cased, is_new)


TYPES = (
    _type(
        "price",
        _any(
            r"\bhow (?:much|expensive)\b(?=.*\b(?:costs?|pa(?:y|id)|charged?|earn)\b)",
            _words("costs?", "prices?", "fees?", "fares?", "charged?", "wages?", "salary", "pay", "paid"),
            _words("earn(?:ed)?", "koste(?:t|n|te|ten)", "preise?", "gebühr(?:en)?"),
            _words("co[uû]t(?:e|ent|é|er)?", "prix", "tarifs?"),
            _words("cuestan?", "costó", "precios?", "pagan?", "costa(?:no)?", "prezz[oi]"),
            "多少钱|价格|费用",
        ),
        _any(
            r"[£$€¥₹]|\d\s?[kp]\b|\d (?:each|apiece|per)\b|[元块钱]",
            rf"(?<![\w/.,])\d+[.,]\d{{2,3}}\b(?!\s*(?:°|%|{_MEASURES}))",
            _words("pounds?", "pence", "euros?", "dollars?", "cents?", "francs?", "crowns?", "guilders?"),
            _words("eur", "usd", "gbp", "chf", "free", "pfund", "franken", "kronen", "kostenlos", "umsonst"),
            _words("nothing", "no charge", "nichts", "rien", "nada"),
            _words("frei", "gratuit", "livres?", "gratis", "libras?", "dólares?", "pesos", "céntimos?"),
        ),
        1.0,
    ),
    _type(
        "duration",
        _any(
            r"\bhow (?:long|soon|often)\b|\bwie (?:lange|oft)\b",
            r"\bcombien de temps\b|\bcu[aá]nto tiempo\b|多久|多长时间",
        ),
        _any(
            rf"{_AMOUNT}[\s-]*(?:{_TIMES}|{_LENGTHS})(?![^\W\d_])|[一二三四五六七八九十百千两半\d]+(?:个)?[秒分时天日周月年]",
            _words("daily", "weekly", "monthly", "yearly", "always", "never", "ever", "until", "since"),
            _words("once", "twice", "every", "täglich", "wöchentlich", "jährlich", "bis"),
        ),
        0.7,
    ),
    _type(
        "age",
        r"\bhow old\b|\bwie alt\b|\bquel âge\b|\bqu[eé] edad\b|多大年纪|几岁",
        _any(
            rf"{_NO_AGE}(?:{_NUMBER_RUN})[\s-]*(?:{_TIMES})(?![^\W\d_])",
            rf"(?P<value>(?:{_NUMBER_RUN})[\s-]*(?:{_TIMES})(?![^\W\d_])|\b[12]\d{{3}}\b|\d\s*岁",
            r"\b\d{1,3}(?=[,.;)]|$)",  # "Anna (34)"
            _words("aged?", "turned", "born", "geboren", "twenties", "thirties", "forties", "fifties") + ")",
        ),
        0.7,
    ),
    _type(
        "length",
        _any(
            r"\bhow (?:tall|deep|wide|thick)\b|\bwie (?:tief|breit|weit)\b",
            _words("height", "depth", "width"),
        ),
        _any(
            rf"{_AMOUNT}(?:\s+and a \w+|\s+\w+)?[\s-]*(?:{_LENGTHS})(?![^\W\d_])",
            r"\d\s*[x×]\s*\d|\d\s*[\"'″′]",
        ),
        0.7,
    ),
    _type(
        "weight",
        _any(
            r"\bhow heavy\b|\bwie schwer\b",
            _words("weigh(?:s|ed)?", "weight", "wieg(?:t|en)", "p[eè]se(?:nt)?", "pesan?"),
        ),
        rf"{_AMOUNT}[\s-]*(?:{_WEIGHTS})(?![^\W\d_])",
        0.7,
    ),
    _type(
        "temperature",
        _any(
            r"\bhow (?:hot|warm|cold)\b|\bwie (?:warm|heiß|kalt)\b",
            _words("temp[eé]ratur(?:es?|en|as?)?"),
        ),
        r"\d\s*°|\d\s*[CF]\b|\b(?:degrees?|grad|degrés?|grados?|celsius|fahrenheit)\b|度",
        0.7,
    ),
    _type(
        "number",
        _any(
            r"\bhow (?:many|much|far|high|large|big|fast|accurate)\b",
            r"\b(?:what|which) (?:\w+ )?(?:percent(?:age)?|number|amount|size|speed|value|sum|majority)\b",
            _words("size", "length", "distance", "speed", "capacity", "percentage"),
            r"\bwie ?(?:viele?|hoch|groß|schnell)\b",
            r"\bcombien\b|\bcu[aá]nt[oa]s?\b|\bquant[oaie]\b|多少|几[个年次岁只]|多[大高远重深]",
        ),
        _NUMBER,
        0.7,
    ),
    _type(
        "year",
        r"\b(?:what|which) year\b|\b(?:in )?welche[ms] jahr\b|\bquelle année\b|\bqu[eé] año\b|哪一?年",
        r"\b[12]\d{3}\b|\d年|年代|世纪|\b(?:century|jahrhundert|siècle|siglo)\b",
        0.7,
    ),
    _type(
        "time",
        _any(
            r"\b(?:at )?what time\b|\bopening (?:hours|times)\b|\bwie viel uhr\b",
            r"\bquelle heure\b|\bqu[eé] hora\b|几点",
        ),
        _any(
            r"\d[:.]\d\d|\d\s?(?:am|pm|uhr|h|o'clock)\b|\d\s*[点时]",
            r"\b(?:from|to|until|till|at|bis|ab|um|de|à|a) \d",
            _HOUR,
            _words(
                "noon", "midnight", "mittags?", "mitternacht", "midi", "minuit", "dawn", "dusk", "half past"
            ),
            _words(_DAYS),
        ),
        0.7,
    ),
    _type(
        "beginning",
        r"\b(since) when\b|\b(seit) wann\b|\b(depuis) quand\b|\b(desde) cu[aá]ndo\b",
        _any(
            rf"\b[12]\d{{3}}\b|\bago\b|\b(?:for|seit|depuis|desde) {_AMOUNT}[\s-]*(?:{_TIMES})(?![^\W\d_])",
            _words("since", "seit", "depuis", "desde", "began", "begun", "started", "first"),
        ),
        0.2,
    ),
    _type(
        "date",
        _any(
            _OPENS + r"(?:when|since when|until when)\b",
            r"\b(?:what|which) (?:\w+ )?(?:year|date|day|month|time|century|decade)\b",
            r"\b(?:seit |ab |bis )?wann\b|\bquand\b",
            r"\bcu[aá]ndo\b|\bquando\b|什么时候|何时|几月|哪天|いつ",
        ),
        _any(
            r"\b[12]\d{3}\b|\b\d{1,2}(?:st|nd|rd|th)\b|\b\d{1,2}[:.]\d{2}\b|\b\d{1,2}\s?(?:am|pm|uhr|h)\b",
            rf"{_AMOUNT}[\s-]*(?:{_TIMES})(?![^\W\d_])",  # "twelve days before"
            r"\b\d{1,2}[./]\d{1,2}\b|[\d一二三四五六七八九十]+\s*[年月日点号]|世纪|周[一二三四五六日]",
            _words("century", "jahrhundert", "siglo", "siècle", "noon", "midnight", "today", "tomorrow"),
            _words("yesterday", "christmas", "easter", "spring", "summer", "autumn", "winter", "mittag"),
            _words(*MONTHS, _DAYS, _RECURRING),
            _HOUR,
            _words("after", "before", "until", "since", "once", "as soon as", "within", "when"),
            _words("nach", "vor", "wenn", "sobald", "après", "avant", "quand", "después", "antes"),
        ),
        0.7,
    ),
    # Names are recognized by their capitals, which are no sure sign.
    _type(
        "name",
        _OPENS
        + r"(?:who|whom|whose|by whom|wer|wem|wen|wessen|qui|à qui|qui[eé]n(?:es)?|chi|quem)\b|谁|哪位|誰",
        r"(?<=[^.!?:]\s)[A-ZÄÖÜÉ][\w'’.-]+|·|\b[A-Z][\w'’-]+ [A-Z][\w'’-]+",
        0.2,
        is_cased=True,
    ),
    _type(
        "proper name",
        _any(
            r"\bwhat(?:'s|’s| is| was| are| were) (?:the |his |her |our |my )?(?:\w+ )?(names?) (?:of|for)\b",
            r"^\W*(?:the )?(?:(?:first|last|full) )?(name) of\b",
            _OPENS + r"what(?:'s|’s| is| was| are| were)\b"
            r"(?=.*\b(called|named)(?:\W*$| (?:whom?|that|which|where|in|on|at)\b))",
            r"\bc[oó]mo se (llama(?:ba)?)\b|\bcomment s'(appelle)\b",
        ),
        _PROPER_NAME,
        0.2,
        is_cased=True,
        is_new=True,
    ),
    _type(
        "German name",
        r"\bwie (hei(?:ß|ss)(?:t|en)|hieß(?:en)?)\b|\bwie (?:ist|lautet|war) der (name)\b",
        _GERMAN_NAME,
        0.2,
        is_cased=True,
        is_new=True,
    ),
    _type(
        "code",
        r"\bwhat(?:'s|’s| is| was) (?:the |our |my )?(?:\w+ ){0,2}?(code|password|passcode|pin|combination)\b"
        r"|^\W*(?:the )?(?:\w+ )?(code|password|passcode|pin)(?= of\b| for\b|\W*$)",
        rf"(?<![\w.,])(?=[\w-]*\d)[\w-]{{3,}}(?![.,]?\d)(?!\s*(?:{_MEASURES}))|[\"“`'‘]\S{{3,40}}[\"”`'’]",
        0.2,
    ),
    _type(
        "e-mail address",
        r"\b(e-?mail)(?: address)?\b(?=.*\b(?:of|for)\b|\W*$)|\b(e-?mail)-?adresse\b",
        r"\S@\S",
        0.2,
    ),
    _type(
        "telephone number",
        r"\b(telephone|phone|mobile)(?: number)\b|\b(telefonnummer|handynummer)\b",
        r"\d(?:[ /()-]?\d){4,}",
        0.7,
    ),
    _type(
        "place",
        _OPENS + r"(?:where|wohin|woher|wo|où|d[oó]nde|adónde|dove|onde)\b|哪里|哪儿|何处|どこ",
        _any(
            _words("in", "at", "near", "from", "on", "to", "behind", "under", "above", "beside", "next"),
            _words("opposite", "between", "outside", "inside", "im", "am", "an", "aus", "bei", "nach"),
            _words(
                "hinter", "neben", "à", "en", "dans", "sur", "chez", "sous", "derrière", "sobre", "detrás"
            ),
            "[市省国州县区岛镇里上下边旁]",
        ),
        0.2,
    ),
)
# A question that opens with when, who or where asks for that, whatever else it names.
_OPENING = tuple(kind for kind in TYPES if kind.name in ("beginning", "date", "name", "place"))


def answer_type(question: str) -> AnswerType | None:
    """The type of value that an answer has; None where the question asks for no particular type.

    "When is the fee due?" asks for a date, not for a price.
    """
    opening = next((kind for kind in _OPENING if kind.asks.match(question)), None)
    return opening or next((kind for kind in TYPES if kind.asks.search(question)), None)
