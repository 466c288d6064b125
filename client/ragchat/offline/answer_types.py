"""The type of answer that a question asks for: a number, a date, a name, a place. Pure."""

from __future__ import annotations

import re

_HOW_MANY = (
    r"\bhow (?:many|much|long|far|old|tall|big|large|high|often)\b|\bwhat (?:percent|number|amount)"
    r"|\bwie ?viele?\b|\bwie (?:lange|hoch|groß|alt|weit|oft)\b|\bcombien\b|\bcuánt[oa]s?\b|\bquant[oie]\b"
    r"|多少|几[个年次]|多[大长久高远]"
)
_NUMBER = (
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|hundred|thousand|million|billion|half|third"
    r"|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|hundert|tausend|millionen|hälfte)\b|[一二三四五六七八九十百千万亿]"
)
_WHEN = (
    r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|century|decade)\b|\bin welchem jahr\b|\bwann\b"
    r"|\bquand\b|\bcuándo\b|\bquando\b|什么时候|哪一?年|何时|几月|哪个世纪|いつ"
)
_DATE = (
    r"\b[12]\d{3}\b|\b\d{1,2}(?:st|nd|rd|th)\b|\b(?:century|jahrhundert|siglo|siècle)"
    r"|\b(?:january|february|march|april|june|july|august|september|october|november|december)\b"
    r"|\b(?:januar|februar|märz|juni|juli|oktober|dezember)\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b"
    r"|\d+\s*[年月日]|世纪"
)
_WHO = r"\b(?:who|whom|whose|wer|wem|wen|wessen|qui|quién|chi|quem)\b|谁|哪位|誰"
_WHERE = r"\b(?:where|wo|woher|wohin|où|dónde|dove|onde)\b|哪里|哪儿|何处|どこ"

# Names and places are recognised by capital letters, so these two patterns respect case.
_NAME = r"(?<=[a-zäöüß,] )[A-ZÄÖÜ][\w'’.-]+ (?:(?:von|van|de|der|al|of) )?[A-ZÄÖÜ]|·"
_PLACE = (
    r"\b(?:in|at|near|from|on|to|im|am|aus|bei|nach|à|en|a) (?:the |der |dem |la |el )?[A-ZÄÖÜÉ]"
    r"|[市省国州县区岛镇]"
)

_KINDS = (
    (re.compile(_HOW_MANY, re.IGNORECASE), re.compile(_NUMBER, re.IGNORECASE)),
    (re.compile(_WHEN, re.IGNORECASE), re.compile(_DATE, re.IGNORECASE)),
    (re.compile(_WHO, re.IGNORECASE), re.compile(_NAME)),
    (re.compile(_WHERE, re.IGNORECASE), re.compile(_PLACE)),
)


def answer_type(question: str) -> re.Pattern[str] | None:
    """The pattern that an answer to the question should contain; None for a question of no known type."""
    return next((has for asks, has in _KINDS if asks.search(question)), None)
