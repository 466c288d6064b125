"""Facts of an answer that its passages do not contain: numbers, dates, names, identifiers, addresses. Pure.

False alarms cost more trust than misses: a fact may occur in any usual form, a date by its parts and a name
by its stem, and everything in the question or a passage's title is known.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ragchat.grounding.citations import MARKER, marked_numbers, without_quotations
from ragchat.grounding.number_words import MAGNITUDES, MEASURES, NUMBER_WORDS, NUMBERED_THINGS, PARTS
from ragchat.grounding.pieces import blanked, sentence_spans
from ragchat.grounding.types import Unsupported
from ragchat.grounding.words import MONTHS, content_words, index_terms, is_german
from ragcommon.contract.search import Hit
from ragcommon.text.rules import is_rule
from ragconfig.settings import packaged

_LINE_MARK = re.compile(r"^[\s>#|]*(?:(?:[-*+•]|\d+[.)])\s+)?(?:\*\*[^*\n]+:?\*\*:?\s)?")
_HEADING = re.compile(r"\s*(?:#{1,6}\s|\*\*[^*]+\*\*:?\s*$)")
_LEADING_MARKERS = re.compile(rf"(?:{MARKER.pattern}[\s.]*)+")

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
DATE = re.compile(
    rf"\b\d{{4}}-\d\d-\d\d\b|\b\d{{1,2}}([./])\d{{1,2}}\1(?:\d{{4}}|\d\d)\b"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th|er)?\.?(?: of| de)? (?:{_MONTH})\b\.?(?:,?(?: de)? \d{{4}}\b)?"
    rf"|\b(?:{_MONTH})\b\.? \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}}\b)?",
    re.IGNORECASE,
)
_NUMERAL = r"\d{1,3}(?:[ \u00a0\u202f'’]\d{3})+(?!\d)|\d+(?:[.,:]\d+)*|\.\d+"
_WORD_NUMBER = "|".join(sorted(NUMBER_WORDS, key=len, reverse=True))
_MAGNITUDE = "|".join(sorted(MAGNITUDES, key=len, reverse=True))
_NUMBER = re.compile(
    rf"(?:(?<![A-Za-z0-9_.,])|(?<=\bv))(?:(?P<digits>{_NUMERAL})|\b(?P<word>{_WORD_NUMBER})\b)"
    rf"(?P<magnitude>[\s-]?(?:{_MAGNITUDE})\b)?(?P<percent>\s?%|\sper\s?cent\b|\sprozent\b)?"
    r"(?P<hour>\s?(?:[ap]\.?m|uhr|h)\b)?",
    re.IGNORECASE,
)
_TIME = re.compile(r"(?P<hours>\d{1,2}):(?P<minutes>\d\d)(?!\d)")
_MEASURE = "|".join(sorted(MEASURES, key=len, reverse=True))
_UNIT = re.compile(rf"[\s-]?(?:[%€$£]|°\s?[cfk]?|[ap]\.?m\b|per cent|{_MEASURE})(?![^\W\d_])")
_COUNTED = re.compile(r"\s+[^\W\d_]")
# Spoken times and Chinese numerals are not parsed: a passage that has them may contain any time or number.
_SPOKEN_TIME = re.compile(r"half past|quarter|noon|midnight|o'clock|\buhr\b|\bhalb\b|\bmidi\b")
_NUMBER_CHARACTERS = re.compile("[二三四五六七八九十百千万两]")
_LISTED = re.compile(r"(?:(?:passage|source|document|note|step|point|item|option)s?|and|to|,)\s$", re.I)
# Things identified by a number: room 3 is not room 2.
_NUMBERED = re.compile(rf"\b(?:{'|'.join(NUMBERED_THINGS)})\s$")
# Numbers up to this one before a noun may count the items of the answer.
MAX_COUNT = 12
# Characters before a number or a name that are examined: more than the longest word above.
LOOK_BACK = 20
# Ordinals, and decades such as the 1990s.
_ORDINAL = re.compile(r"(?:s|st|nd|rd|th|er|e|o|a)\b|\.\s+\S")

# The address of a page or of a person.
_ADDRESS = re.compile(
    r"(?:https?://|\bwww\.)[^\s<>()`\"\[\]]*[\w/]|(?<![\w.+-])[\w.+-]*\w@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}"
)
_SCHEME = re.compile(r"(?:https?://)?(?:www\.)?")
_IDENTIFIER = re.compile(
    r"`([^`\s]{3,})`|(?<![\w.@/:-])((?=[\w.-]*[A-Za-z])(?=[\w.-]*(?:\d|_|[a-z][A-Z]))[A-Za-z][\w.-]*\w)"
)
# A formula in TeX: $x^2$, $$…$$, \(…\) or \[…\]; a price has a space or a digit at one of its dollar signs.
_FORMULA = re.compile(
    r"\$\$[^$]+\$\$|(?<![\w$])\$(?=[^\s$])(?=[^$\n]*[A-Za-z\\^=])[^$\n]+(?<!\s)\$(?![\w$])"
    r"|\\[(\[](?:(?!\\[()\[\]])[\s\S])*\\[)\]]"
)
_NAME = re.compile(r"(?<![^\s(\-–/])[A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ]{2,}(?:['’-][^\W\d_]+)*")
# After these, a word is inside a sentence, so that its capital is its own.
_MIDDLE = re.compile(
    r"[^\W_][,;)’']?\s$|[^\W_][-–/]$|\b(?:Dr|Prof|Mrs?|Ms|St|Sra?|Mme|Mlle|Rev|Capt|Gen|Col|Lt|Gov|Sen)\.\s$"
)
_NO_NAMES = frozenset(packaged("words.toml")["no_names"].split())
# Words are forms of one name if they share a prefix of this many characters and this share of the name.
PREFIX = 4
PREFIX_SHARE = 0.7


def unsupported(
    answer: str, passages: Mapping[int, Hit], question: str, other: str = ""
) -> list[Unsupported]:
    """The facts of each sentence that none of its passages contains, and that `question` does not name.

    A sentence is checked against the passages that it cites. A sentence that cites none, or an unknown one,
    is checked against all passages and the `other` text, unless the whole answer cites none.
    """
    found: dict[tuple[int, ...], dict[str, None]] = {}
    known: dict[tuple[int, ...], _Known] = {}
    # In German, every noun has a capital. A short answer has the language of its question.
    has_names = not is_german(f"{question} {answer}")
    sentences = list(_sentences(answer))
    if not any(n in passages for _, numbers in sentences for n in numbers):
        return []
    for sentence, numbers in sentences:
        numbers = numbers if all(n in passages for n in numbers) else ()
        if numbers not in known:
            hits = [passages[n] for n in numbers or passages]
            known[numbers] = _Known.of("\n".join([question, "" if numbers else other, *map(_all_text, hits)]))
        for fact in _lacking(sentence, known[numbers], has_names=has_names):
            found.setdefault(numbers, {})[fact] = None
    return [Unsupported(list(facts), list(numbers)) for numbers, facts in found.items()]


def lacking(text: str, *others: str) -> list[str]:
    """The facts of a text that none of the others contains, each once, in its order."""
    known, has_names = _Known.of("\n".join(others)), not is_german(text)
    sentences = [one for line in MARKER.sub("", _FORMULA.sub(" ", text)).splitlines() for one in _split(line)]
    return [*dict.fromkeys(fact for one in sentences for fact in _lacking(one, known, has_names=has_names))]


def _split(line: str) -> list[str]:
    """The sentences of a line, without its marks of Markdown."""
    line = _LINE_MARK.sub("", line)
    return [line[start:end] for start, end in sentence_spans(line)]


def _all_text(hit: Hit) -> str:
    cells = hit.full_text.replace(",", "; ") if hit.is_csv else ""  # "410,9,3.2" is no single number.
    return "\n".join([hit.title, hit.heading, hit.uri, hit.full_text, cells])


def _sentences(answer: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Each sentence without its markers, and their numbers. Quotations are checked elsewhere.

    Headings, and the header of a table, name a topic and claim nothing. Formulas are not checked.
    """
    lines = _FORMULA.sub(" ", without_quotations(answer)).splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if not MARKER.search(line) and (_HEADING.match(line) or is_rule(following)):
            continue
        sentences: list[str] = []
        for sentence in _split(line):
            # "… nine hours. [1] Then …": the marker belongs to the sentence before it.
            if sentences and (leading := _LEADING_MARKERS.match(sentence)):
                sentences[-1] += f" {leading.group()}"
                sentence = sentence[leading.end() :]
            sentences.append(sentence)
        for sentence in sentences:
            numbers = dict.fromkeys(n for one in MARKER.findall(sentence) for n in marked_numbers(one))
            yield MARKER.sub("", sentence), tuple(numbers)


@dataclass(frozen=True)
class _Known:
    """The facts of a text, in every form in which they are looked up."""

    text: str
    numbers: frozenset[float]
    months: frozenset[int]
    terms: frozenset[str]
    prefixes: frozenset[str]  # of the terms, including the terms themselves
    squeezed: str

    @classmethod
    def of(cls, text: str) -> _Known:
        plain = folded(unicodedata.normalize("NFC", text))
        numbers = {value for found in _NUMBER.finditer(plain) for value in _values(found)}
        numbers |= {value for sign, values in PARTS.items() if sign in plain for value in values}
        months = {MONTHS[word] for word in re.findall(r"[^\W\d_]+", plain) if word in MONTHS}
        parts = {int(part) for date in DATE.finditer(plain) for part in re.findall(r"[0-9]+", date.group())}
        parts |= {int(part) for part in re.findall(r"(?<![0-9.,])[0-9]+(?![.,]?[0-9])", text)}
        numbers |= set(map(float, parts))
        months |= {part for part in parts if part <= 12}
        terms = frozenset(index_terms(text))
        prefixes = frozenset(term[:size] for term in terms for size in range(1, len(term) + 1))
        return cls(plain, frozenset(numbers), frozenset(months), terms, prefixes, _squeezed(text))

    def has_date(self, date: str) -> bool:
        """Whether each part of a date occurs, in any order."""
        numbers = [int(digits) for digits in re.findall(r"[0-9]+", date)]
        month = next((MONTHS[word] for word in re.findall(r"[^\W\d_]+", date) if word in MONTHS), 0)
        has_parts = all(n in self.numbers or n in self.months or self._has_year(n) for n in numbers)
        return has_parts and (not month or month in self.months)

    def _has_year(self, year: int) -> bool:
        """Whether a year occurs, in full or by its last two digits."""
        return any(number % 100 == year % 100 and max(number, year) > 1000 for number in self.numbers)

    def has_number(self, found: re.Match[str]) -> bool:
        values = _values(found)
        may_be_spoken = ":" in (found["digits"] or "") and bool(_SPOKEN_TIME.search(self.text))
        may_be_chinese = min(values, default=100) < 100 and bool(_NUMBER_CHARACTERS.search(self.text))
        return may_be_spoken or may_be_chinese or not values.isdisjoint(self.numbers)

    def has_name(self, name: str) -> bool:
        if _squeezed(name) in self.squeezed or MONTHS.get(folded(name)) in self.months:
            return True
        return all(term in self.terms or self._has_relative(term) for term in index_terms(name))

    def _has_relative(self, term: str) -> bool:
        """Whether a term shares a prefix with it: German, Germany; Mon, Monday."""
        needed = max(PREFIX, round(PREFIX_SHARE * len(term)))
        begins_alike = len(term) >= needed and term[:needed] in self.prefixes
        return begins_alike or any(term[:size] in self.terms for size in range(3, len(term) + 1))


def _lacking(sentence: str, known: _Known, *, has_names: bool) -> list[str]:
    """The facts of a sentence that are not known, in the order of the sentence."""
    dates = list(DATE.finditer(folded(sentence)))
    spans = [found.span() for found in dates if not known.has_date(found.group())]
    rest = blanked(sentence, map(re.Match.span, dates))
    for pattern in (_ADDRESS, _IDENTIFIER):
        written = list(pattern.finditer(rest))
        for found in written:
            group = found.lastindex or 0
            if _squeezed(_SCHEME.sub("", found[group], 1)) not in known.squeezed:
                spans.append(found.span(group))
        rest = blanked(rest, map(re.Match.span, written))
    for found in _NUMBER.finditer(folded(rest)):
        unit = _UNIT.match(folded(rest), found.end())
        if _is_claim(found, unit) and not known.has_number(found):
            spans.append((found.start(), unit.end() if unit else found.end()))
    if has_names:
        spans += _names(sentence, rest, known)
    return [sentence[start:end].strip() for start, end in sorted(spans)]


def _is_claim(found: re.Match[str], unit: re.Match[str] | None) -> bool:
    """Whether a number is a claim, rather than a count of items, an ordinal or the number of a step."""
    values, text = _values(found), found.string
    if not values or values & {0.0, 1.0}:
        return False
    if unit or found["percent"] or found["magnitude"] or found["hour"]:
        return True
    if found["word"] or ("." not in found.group() and _ORDINAL.match(text, found.end())):
        return False
    is_small = text.rstrip().endswith(":") or min(values) <= MAX_COUNT  # "Here are 15 examples:"
    if is_small and float(min(values)).is_integer() and "." not in found.group():
        before = text[max(0, found.start() - LOOK_BACK) : found.start()]
        is_counted = _COUNTED.match(text, found.end()) or _LISTED.search(before)
        return not is_counted or _NUMBERED.search(before) is not None
    return True


def _names(sentence: str, rest: str, known: _Known) -> list[tuple[int, int]]:
    """The spans of unknown names in the `rest` of a sentence; adjacent names are one."""
    found: list[tuple[int, int]] = []
    for word in _NAME.finditer(rest):
        name = word.group()
        before = sentence[max(0, word.start() - LOOK_BACK) : word.start()]
        is_name = _MIDDLE.search(before) and content_words(name)
        if not is_name or name.lower() in _NO_NAMES or known.has_name(name.removesuffix("'s")):
            continue
        if found and sentence[found[-1][1] : word.start()] == " ":
            found[-1] = (found[-1][0], word.end())
        else:
            found.append(word.span())
    return found


def _values(found: re.Match[str]) -> set[float]:
    """All readings of a number: 1,500 is 1500 or 1.5; 50 % is 50 or 0.5."""
    digits = re.sub(r"[ \u00a0\u202f'’]", "", found["digits"] or "")
    values = {NUMBER_WORDS[found["word"]]} if found["word"] else _readings(digits)
    if magnitude := (found["magnitude"] or "").strip(" -"):
        values |= {value * MAGNITUDES[magnitude] for value in values}
    if found["percent"]:
        values |= {value / 100 for value in values}
    if found["hour"] and not found["word"] and found["digits"].isdigit():
        values |= _readings(f"{found['digits']}:00")
    return values


def _readings(digits: str) -> set[float]:
    if time := _TIME.match(digits):  # on either clock
        return {int(time["hours"]) % 12 * 100 + int(time["minutes"]) + 0.001}
    if ":" in digits:  # an address and a port, or a ratio
        return {value for part in digits.split(":") for value in _readings(part)}
    readings = set()
    if re.fullmatch(r"\d{1,3}([.,]\d{3})+", digits):
        readings.add(float(re.sub("[.,]", "", digits)))
    whole, separator, decimals = digits.replace(",", ".").rpartition(".")
    if not separator or whole.isdigit():
        readings.add(float(f"{whole}{separator}{decimals}"))
    elif digits.count(digits[-len(decimals) - 1]) == 1:  # 1.234,56
        readings.add(float(f"{whole.replace('.', '')}.{decimals}"))
    return readings


def folded(text: str) -> str:
    """Lower case without accents; the length stays the same."""
    return text.lower() if text.isascii() else "".join(map(_plain, text))


@functools.lru_cache(4096)
def _plain(sign: str) -> str:
    base, *marks = list(unicodedata.normalize("NFKD", sign))
    lower = base.lower() if marks and all(map(unicodedata.combining, marks)) else sign.lower()
    return lower if len(lower) == 1 else sign


def _squeezed(text: str) -> str:
    """Letters and digits alone; CO₂ is CO2."""
    return re.sub(r"[\W_]+", "", folded(unicodedata.normalize("NFKC", text)))
