"""Lines of a plain text that may be headings, judged by their form. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from heapq import merge
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

from ragmemory.ingest.blocks import BLANK_LINES

# The families of candidates, the most reliable first. Those of Worded are identified only by their wording.
Distinct: TypeAlias = Literal["marked", "ruled", "underlined", "banner", "table", "key", "label", "number"]
# fmt: off
Worded: TypeAlias = Literal[
    "version", "date", "roman", "numeral", "margin", "capitals", "emphasis", "option", "question", "clause",
]
# fmt: on
Family: TypeAlias = Distinct | Worded
MAX_TITLE = 90
# A longer line is not a heading; a line shorter than SHORT_LINE was not wrapped.
MAX_LINE = 200
SHORT_LINE = 60
# A title in several lines has at most this many, of which all but the last are at least this long.
MAX_LINES, LONG_LINE = 3, 45
MAX_QUESTION = 300
# Characters of a rule that separates sections.
MIN_RULE = 20
# In a text with headings at the left margin, such as a manual page: the minimum share of indented lines, of
# paragraphs at the margin, and of paragraphs at the indentation of the body.
INDENTED = 0.5
MIN_IN_MARGIN = 3
MIN_BODY_SHARE = 0.15
# Characters from which the indentation is determined.
SAMPLE = 100_000

# At least three equal characters, below or above a title.
RULE = re.compile(r"\s*([=~^*+#\"'`.─═━_-])\1{2,}\s*$")
# "1. Introduction     *intro*"
LINK_MARKS = re.compile(r"[ \t]{2,}(?:\*[^\s*]{1,60}\*[ \t]*){1,4}$")
# The number of an underlined title: "A.        OVERVIEW", "3-a     Dropping".
ENUMERATOR = re.compile(r"^([^\W_]{1,4}[.)]|\d[\w.)-]{0,5})[ \t]+")
# Wikis; "---- Title ----", but not "*** START OF THE PROJECT …"; italics in plain text, as in "_Title._".
MARKED = re.compile(r"(={1,6})[ \t]+(\S.*?)(?:[ \t]+=+)?\s*$")
RULED = re.compile(r"\s*([*~#-])\1+[ \t]+(?!(?:START|END) OF TH)(\S.*?)[ \t]+\1{2,}\s*$")
EMPHASIZED = re.compile(r"\s*([_*])(\S[^_*]*)\1\.?\s*$")
NUMBERED = re.compile(r"\s{0,12}(\d{1,3}(?:\.\d{1,3}){0,5})(?:\.|:)?[ \t\xa0]+(\S.*?)\s*$")
# A section below a chapter; it may be as far to the right as the text.
SECTION = re.compile(r"[ \t]{0,12}\d{1,3}(?:\.\d{1,3}){1,5}\.?[ \t\xa0]+\S")
ROMAN = re.compile(r"\s{0,12}([IVXLC]{1,6})\.(?:[ \t]+|[-–—]+)(\S.*?)\s*$")
# "Q: Is there …?", "F12. Gibt es …?"; the next one may follow in the next line.
QUESTION = re.compile(
    r"\s{0,4}([^\W\d_]{1,8})[ ]?\d{0,3}[.:)]+[ \t]+"
    r"(\S(?:[^?\n]|\?(?=[ \t]*\S)|\n(?![ \t\r]*(?:\n|\1[ ]?\d{0,3}[.:)])))*\?)[ \t\r]*(?=\n|\Z)"
)
# "A: That is …", with the lines below it indented.
SAID = re.compile(r"[^\W\d_]\d{0,3}:\s")
# "6. You may copy …": a clause that begins with a sentence.
CLAUSE = re.compile(r"\s{0,8}(\d{1,3})[.)][ \t\xa0]+[^\W\d_a-z]")
NUMERAL = re.compile(r"\s*(?:(\d{1,3}|[IVXLC]+)\.?|-([IVXLC]+)-)\s*$")
ORDINAL = "(?:st|nd|rd|th)"
DAY_OF_MONTH = rf"(?:(?:the|den)[ \t]+)?\d{{1,2}}(?:\.|{ORDINAL})?[ \t]+(?:of[ \t]+)?[^\W\d_]{{3,9}}"
MONTH_AND_DAY = rf"[^\W\d_]{{3,9}}\.?[ \t]+(?:the[ \t]+)?\d{{1,2}}{ORDINAL}?"
# At the right end of a title: "Version 4.1      2025-06-16", "Ada Lee      16 June 2025 10:32".
DATE_AT_RIGHT = re.compile(
    rf"(?: {{3,}}|\t+)\(?(?:\d{{4}}([-./])\d{{1,2}}\1\d{{1,2}}|\d{{1,2}}([./])\d{{1,2}}\2\d{{4}}"
    rf"|{DAY_OF_MONTH}\.?,?[ \t]+\d{{4}}|{MONTH_AND_DAY},?[ \t]+\d{{4}})"
    r"(?:[ ,T]+\d{1,2}:\d\d(?::\d\d)?)?\)?[ \t\r]*$"
)
# The date of an entry of a journal, a changelog or minutes, not of a line of a log.
DATED = re.compile(
    r"\s{0,3}\[?(?:[^\W\d_]{2,10}\.?,?[ \t]+)?"
    r"(?:\d{4}([-./])\d{1,2}\1\d{1,2}|\d{1,2}([./])[ ]?\d{1,2}\2[ ]?\d{4}"
    rf"|{DAY_OF_MONTH}\.?,?[ \t]+\d{{4}}|{MONTH_AND_DAY},[ \t]+\d{{4}})"
    r"(?!\w|[T,]?[ \t]*\d{1,2}:\d\d)"
)
# A release in a changelog: "Version 2.36", "* Noteworthy changes in release 9.1 (2022-04-15)", "v2.9.14",
# "git (1:2.39.5-1) unstable". A number alone needs a year, as it may be that of a section.
VERSION = re.compile(
    r"(?:\*+[ \t]+(?=.*\b(?:release|version|changes)\b))?"
    r"(?P<name>(?:[^\W\d_](?:[\w+-]|\.\w)*,?[ \t]+){1,6}?|(?=v\d|.*\b\d{4}\b))"
    r"\(?(?P<v>v?)(?:\d{1,2}:(?=\d+\.\d+[.-]))?(?P<number>\d++(?:\.\d++)++)[\w.+~:-]*(?:[ \t]+release)?"
    r"(?P<rest>\)[^.]*|[ \t]*:?(?:[ \t]*[-–—,(\[].*|[ \t]+[^\W\d_]{3,9}[ \t]+\d{1,2},?[ \t]+\d{4}:?)?)\s*$",
    re.IGNORECASE,
)
RELEASE = re.compile(r"\b(?:release|version|changes)\b", re.IGNORECASE)
# The number may be that of a code: "Section 15-101", "Article R*411-3-1".
LABEL = re.compile(
    r"\s*(?P<label>(?P<word>[^\W\d_]{3,16}|§|(?i:art|cap|chap|kap|sect?)\.)[ \t\xa0]*"
    r"(?:(?P<series>[A-Z])\*?\.?[ \xa0]?(?=\d+-))?"
    r"(?P<number>\d{1,4}(?:-\d{1,3})*[a-z]?(?![\w.,/:]*\w)|(?<=\s)(?:[IVXLCDM]+|[A-Z])\b(?!['’]))[.:),]?)"
    r"(?:[ \t\xa0]*[-–—:]+[ \t]*|[ \t\xa0]+|$)(?P<title>.*?)\s*$"
)
# A part whose number is a word: "PART ONE", "BOOK THE FIRST".
DIVISION = re.compile(
    r"\s*(?P<label>(?P<word>part|teil|parte|partie|book|buch|libro|livre|t[ií]tulo|titre|chapter|kapitel"
    r"|cap[ií]tulo|chapitre|capitolo|volume(?=[ \t]+the\b))"
    r"[ \t]+(?P<number>(?:the[ \t]+)?[^\W\d_]{3,14})[.:]?)"
    r"(?:[ \t]*[-–—]+[ \t]*|[ \t]+(?=[A-ZÄÖÜ])|\s*$)(?P<title>.*?)\s*$",
    re.IGNORECASE,
)
# Chinese, Japanese and Korean: "第三章　总则", "第二十条の二", "제1조(목적) 이 법은 …".
COUNTER = re.compile(
    r"[ \t\xa0\u3000]*(?P<label>(?:第[ \xa0]?(?P<number>[〇零一二三四五六七八九十百千\d０-９]{1,7})[ \xa0]?"
    r"(?P<word>[編编篇部章節节款目條条課课回])(?P<more>[の之][〇零一二三四五六七八九十\d０-９]{1,3})?"
    r"|제[ \xa0]?(?P<numeral>\d{1,4})[ \xa0]?(?P<unit>[편장절관조])(?P<rest>의[ \xa0]?\d{1,3})?))"
    r"(?P<name>[(（][^()（）\n]{1,60}[)）])?"
    r"(?:[ \t\xa0\u3000:：、]{1,9}|(?=[\r\n]|\Z)|(?<=[編编篇章節节장절]))"
)
COUNTERS = re.compile(
    r"\n(?=[ \t\xa0\u3000]*(?:第[ \xa0]?[〇零一二三四五六七八九十百千\d０-９]|제[ \xa0]?\d))"
)
# Characters with the value of a digit, and of a power of ten.
FIGURES, POWERS = "〇一二三四五六七八九", {"十": 10, "百": 100, "千": 1_000}
# The unit of an article, and the punctuation that a title does not have.
ARTICLES = "條条조"
STOPS = re.compile("[。，；,;]|다[.]")
# Numbered things that are not sections.
COUNTED = re.compile(
    r"(?:page|seite|página|pagina|line|zeile|table|tabelle|tabla|tableau|tabella|fig|figure|figura|abb"
    r"|abbildung|illustration|note|footnote)s?",
    re.IGNORECASE,
)
# "Disclaimer of Warranty. Unless required …"
LEAD = re.compile(
    r"((?:[A-Z][\w’'/-]*)(?:,? (?:[A-Z][\w’'/-]*|of|and|the|to|for|in|or|on|by|with|from)){0,8})\. +\S"
)
CAPITALS = re.compile(r"\s*(?P<title>[^\W\d_](?:[^\W_]|[ ,.&'’?!()/–—-]){2,80})(?:(?P<rest>:\s+\S.*)|\s*$)")
MIN_CAPITALS = 4
OPTION = re.compile(r"([ \t]+)(-{1,2}[^\W_].*?)(?:(?:[ \t]{2,}\S|[ \t]+[A-Z][a-z]).*)?\s*$")
# A setting or variable with its description, in a form that no usual word has: BatchMode, TERM, time_total.
KEYWORD = re.compile(r"([ \t]+)([A-Za-z][a-z]*[A-Z_]\w+)(?:[ \t]{2,}\S.*)?\s*$")
# The term of a definition, which the indented lines directly below it describe.
TERM = re.compile(r"([ \t]+)([A-Za-z_/.$%~<][^\s,:;]*(?: \S+){0,5}?(?:(?<![.,:;{(\\])|\.{3}))[ \t]*$")
BULLET = re.compile(r"\s*[-*+•–]\s")
# Words with a capital in a title such as "How Jack got out of the Hold."
TELLING = re.compile(r"[^\W\d_]{4,}")
GAP = re.compile(r"\S(?: {3,}|\t+)\S|\.{4}|(?:\. ){3}")
NONBLANK = re.compile(r"\S")
NEXT = re.compile(r"(?:[ \t\r\f]*\n)*+")


class Candidate(NamedTuple):
    """One or two lines that may be a heading. Its kind is its family and its rank within that.

    `end` equals `start` for a run-in heading, whose text follows in the same line. `longer` is the end and
    title if the next line is included.
    """

    start: int
    end: int
    family: Family
    rank: str | int
    title: str
    key: tuple[int, ...] = ()  # the number, in parts
    rule: str = ""  # the character of its underline
    longer: tuple[int, str] | None = None


def candidates(text: str) -> Iterator[Candidate]:
    """The candidates of a text, in order."""
    starts = list(_starts(text))
    body = _body_indent(text, starts)
    sections = (line_at(text, start)[0] for start in starts if SECTION.match(text, start))
    are_inside = all(_indent(line) >= body for line in sections)
    option: int | None = None  # the indentation of the option that is described
    for start, stop in pairwise([*starts, len(text)]):
        at = start
        while at < stop:
            indent = _indent(line_at(text, at)[0])
            if one := _option(text, at, stop, body):
                option = indent
            elif option is not None and indent <= option:
                if indent >= body:
                    yield Candidate(at, at, "option", option, "")
                option = None
            if indent < body or not body or (are_inside and SECTION.match(text, at)):
                one = _candidate(text, at, body)
            if one:
                yield one
            # Another candidate may follow in the next line.
            at = one.end if one and one.family in ("label", "margin") and one.end > at else stop


def _candidate(text: str, start: int, body: int) -> Candidate | None:
    """The candidate at `start`, the first line of a paragraph or the line below a label."""
    if counter := COUNTER.match(text, start):
        return _counter(text, start, counter)
    line, end = line_at(text, start)
    if not line.strip():
        return None
    if rule := RULE.match(line):
        return _below_rule(text, start, rule)
    below, below_end = line_at(text, end)
    if rule := RULE.match(below):
        return _above_rule(text, start, below_end, rule, line) if _is_as_long(line, below) else None
    return (
        _dated(start, end, line, below)
        or _release(start, end, line, below)
        or _numbered(text, start, end, line, below)
        or _decorated(start, end, line, below)
        or _worded(text, start, end, line, below, body)
    )


def _below_rule(text: str, start: int, rule: re.Match[str]) -> Candidate | None:
    """A title between two rules, or alone below a long one."""
    line, end = line_at(text, line_at(text, start)[1])
    below, below_end = line_at(text, end)
    if (other := RULE.match(below)) and other[1] == rule[1] and _is_as_long(line, below):
        title = _underlined(line)
        found = Candidate(start, below_end, "underlined", 2 * rule[1], squeezed(title), rule=rule[1])
        return found if is_title(DATE_AT_RIGHT.sub("", title)) else None
    line = LINK_MARKS.sub("", line)  # at its right, in a help file
    title = DATE_AT_RIGHT.sub("", line.strip())
    if below.strip() or len(rule[0].strip()) < MIN_RULE or not is_title(title):
        return None
    one = _numbered(text, start, end, line, "")
    is_one = one is not None and one.family == "number" and one.end > one.start
    rest = one if one and is_one else Candidate(start, end, "underlined", f"{rule[1]}  ", squeezed(line))
    return rest._replace(start=start, end=end, rule=rule[1])


def _above_rule(text: str, start: int, end: int, rule: re.Match[str], line: str) -> Candidate | None:
    """An underlined title; one that begins with a word has a place among the other underlined titles."""
    if not line.lstrip()[0].isalpha() and (release := _release(start, end, line, rule.string)):
        return release
    one = _numbered(text, start, end, line, "")
    if one and one.family == "roman":  # "C." may be a letter
        one = None
    title = _underlined(line)
    if not is_title(DATE_AT_RIGHT.sub("", title)):
        return None
    one = one or Candidate(start, end, "underlined", rule[1], squeezed(title))
    return one._replace(end=end, title=squeezed(title), rule=rule[1], longer=None)


def _dated(start: int, end: int, line: str, below: str) -> Candidate | None:
    """The date of an entry; its text may follow in the same line."""
    title = line.strip()
    if not (date := DATED.match(line)):
        return None
    if len(title) <= MAX_TITLE and (BULLET.match(below) or not _is_broken(line, below)):
        return Candidate(start, end, "date", 0, squeezed(title))
    return Candidate(start, start, "date", 0, squeezed(date[0]))


def _release(start: int, end: int, line: str, below: str) -> Candidate | None:
    """A release of a changelog."""
    found = VERSION.match(line) if len(line) <= MAX_TITLE else None
    if not found or (len(line) > SHORT_LINE / 2 and below.lstrip()[:1].islower()):
        return None
    name, number = squeezed(found["name"]).casefold(), found["number"]
    # "Anna 10.30" and "Server 10.0.0.1" are none.
    is_one = RELEASE.search(line) or found["v"] or found["rest"].strip(" :") or number.count(".") == 2
    if not is_one or COUNTED.fullmatch(name):
        return None
    return Candidate(start, end, "version", name, squeezed(line.lstrip("* \t")).rstrip(":"), _key(number))


def _numbered(text: str, start: int, end: int, line: str, below: str) -> Candidate | None:
    """A label or number, with the title after it."""
    if found := NUMERAL.match(line):
        longer, number = _longer(text, end, line), found[1] or found[2]
        if below.strip() and not longer:
            return None
        rank = "number" if number.isdigit() else "roman"
        return Candidate(start, end, "numeral", rank, line.strip(), (numeral(number),), "", longer)
    if found := NUMBERED.match(line):
        return _after_number(text, start, end, found, below)
    if (found := ROMAN.match(line)) and is_title(found[2]) and not _is_broken(line, below):
        return Candidate(start, end, "roman", 0, squeezed(line).rstrip("."), (numeral(found[1]),))
    if found := _label(line):
        return _labelled(text, start, end, found, below)
    asked = QUESTION.match(text, start, start + MAX_QUESTION)
    is_one = asked and asked[1][0].isupper()
    return Candidate(start, start, "question", asked[1], squeezed(asked[2])) if asked and is_one else None


def _after_number(text: str, start: int, end: int, found: re.Match[str], below: str) -> Candidate | None:
    """A title after a number such as 3.2.1; without one, a run-in heading or a clause."""
    line, key = found.string, _key(found[1])
    if (other := NUMBERED.match(below)) and _key(other[1]) in ((*key, 1), (*key[:-1], key[-1] + 1)):
        return None
    if is_title(found[2]) and not _is_broken(line, below):
        return Candidate(start, end, "number", len(key), squeezed(line).rstrip("."), key)
    lead = LEAD.match(found[2])
    if len(key) > 1 and not lead and (last := _end_of_title(text, start)):
        return Candidate(start, last, "number", len(key), squeezed(text[start:last]), key)
    title = f"{found[1]}. {lead[1]}" if lead else found[1]
    if lead or len(key) > 1:
        return Candidate(start, start, "number", len(key), title, key)
    return Candidate(start, start, "clause", 0, title, key) if CLAUSE.match(line) else None


def _labelled(text: str, start: int, end: int, found: re.Match[str], below: str) -> Candidate | None:
    """A label such as "Article 12", with the title after it or in the next line; else run-in."""
    line, rest, label = found.string, found["title"], squeezed(found["label"])
    key, name = label_key(found["number"]), label.rstrip(".:,")
    # The laws and decrees of a French code are numbered separately: "Article L411-1", "Article R411-1".
    rank = f"{found['word']} {found.groupdict().get('series') or ''}".strip().casefold()
    if not rest:
        return Candidate(start, end, "label", rank, name, key, "", _longer(text, end, label))
    if is_title(rest) and not _is_broken(line, below):
        return Candidate(start, end, "label", rank, squeezed(line).rstrip("."), key)
    if lead := LEAD.match(rest):
        return Candidate(start, start, "label", rank, f"{label} {lead[1]}", key)
    if label[-1] in ".:)," or not rest[0].islower():
        return Candidate(start, start, "label", rank, name, key)
    return None


def _counter(text: str, start: int, found: re.Match[str]) -> Candidate:
    """A label of Chinese, Japanese or Korean; that of an article, or before a sentence, is run-in."""
    unit, more = found["word"] or found["unit"], found["more"] or found["rest"] or ""
    key = (_figures(found["number"] or found["numeral"]), *([_figures(more[1:].strip())] if more else []))
    name = f"{found['label'].strip()}{found['name'] or ''}"
    title, end = line_at(text, found.end())
    is_text = end == found.end() < len(text) or len(title) > SHORT_LINE or STOPS.search(title)
    if is_text or (unit in ARTICLES and title.strip()):
        return Candidate(start, start, "label", unit, name, key)
    return Candidate(start, end, "label", unit, squeezed(f"{name} {title}"), key)


def _figures(number: str) -> int:
    """The value of a number in Chinese or other digits: "二十三", "一〇三", "12"."""
    if number.isdecimal():
        return int(number)
    total = digit = 0
    for figure in number.replace("零", "〇"):
        if figure in POWERS:
            total, digit = total + (digit or 1) * POWERS[figure], 0
        else:
            digit = 10 * digit + (FIGURES.index(figure) if figure in FIGURES else int(figure))
    return total + digit


def _decorated(start: int, end: int, line: str, below: str) -> Candidate | None:
    """A title between the marks of a wiki, between rules, or in italics."""
    if found := MARKED.match(line):
        return Candidate(start, end, "marked", len(found[1]), squeezed(found[2]))
    if (found := RULED.match(line)) and is_title(found[2]):
        return Candidate(start, end, "ruled", found[1], squeezed(found[2]))
    if (found := EMPHASIZED.match(line)) and is_title(found[2]) and not below.strip():
        return Candidate(start, end, "emphasis", 0, squeezed(found[2]).rstrip("."))
    return None


def _worded(text: str, start: int, end: int, line: str, below: str, body: int) -> Candidate | None:
    """A title at the margin or in capitals."""
    title, indent = line.strip(), _indent(line)
    if body:
        deeper = _indent(line_at(text, next_line(text, end))[0]) > indent
        is_heading = deeper and title[0].isalpha() and not SAID.match(title) and is_title(title)
        return Candidate(start, end, "margin", int(indent > 0), squeezed(title)) if is_heading else None
    found = CAPITALS.match(line)
    if not found or not found["title"].isupper() or sum(map(str.isalpha, title)) < MIN_CAPITALS:
        return None
    if found["rest"]:
        return Candidate(start, start, "capitals", 0, squeezed(found["title"]))
    is_heading = is_title(title) and not below.strip().isupper()
    return Candidate(start, end, "capitals", 0, squeezed(title)) if is_heading else None


def is_title(text: str, most: int = MAX_TITLE) -> bool:
    """Whether a text reads like a title: short, and neither part of a sentence nor a whole one."""
    if not text or len(text) > most or text[0] in "-*•“\"«»„'‘|>#$":
        return False
    if text[0].islower() and text.split()[0].islower():  # but "iCalendar"
        return False
    if text[-1] in ",;:|\\" or (text[-1] == "." and (len(text) > SHORT_LINE or ". " in text)):
        return False
    return any(map(str.isalpha, text)) and not GAP.search(text)


def squeezed(text: str) -> str:
    return " ".join(text.split())


def numeral(text: str) -> int:
    """The value of a number in digits or in Roman numerals."""
    if text.isdigit():
        return int(text)
    values = [{"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1_000}[one] for one in text]
    return sum(-one if one < after else one for one, after in pairwise([*values, 0]))


def label_key(number: str) -> tuple[int, ...]:
    """The number of a label: "12" (12,), "12a" (12, 1), "12-3" (12, 3), "IV" (4,), "B" (2,); a word: ()."""
    if number[0].isdigit():
        digits = number.rstrip("abcdefghijklmnopqrstuvwxyz")
        return (
            *map(int, digits.split("-")),
            *(ord(letter) - ord("a") + 1 for letter in number[len(digits) :]),
        )
    if len(number) == 1 and number not in "IVX":
        return (ord(number) - ord("A") + 1,)
    return (numeral(number),) if set(number) <= set("IVXLCDM") else ()


def _key(number: str) -> tuple[int, ...]:
    return tuple(map(int, number.split(".")))


def _label(line: str) -> re.Match[str] | None:
    """The label that a line begins with, such as "Article 12"."""
    found = LABEL.match(line) or DIVISION.match(line)
    if not found or found["word"][0].islower() or COUNTED.fullmatch(found["word"]):
        return None
    return found


def _is_label(line: str) -> bool:
    """Whether a line begins with a label, and not as "What I saw" or "Found a Mare" do."""
    label = _label(line)
    return label is not None and (label["number"] not in ("A", "I") or not label["title"])


def _longer(text: str, end: int, title: str) -> tuple[int, str] | None:
    """The end and the title of a label with the title below it: one line, or several in capitals.

    None if what is below is no title, or does not stand alone.
    """
    start = next_line(text, end)
    line, last = line_at(text, start)
    below, below_end = line_at(text, last)
    while line.isupper() and below.isupper() and len(line) <= MAX_LINE and not _is_label(below):
        line, last = f"{line} {below}", below_end
        below, below_end = line_at(text, last)
    begins = start == end and (below.lstrip()[:1] == "(" or _label(below) or NUMBERED.match(below))
    telling = TELLING.findall(line)
    is_name = line.isupper() or (telling and all(word[0].isupper() for word in telling))
    is_sentence = line.rstrip().endswith(".") and not is_name
    is_alone = (not below.strip() or begins) and not is_sentence
    is_long = line.isupper() and len(line) <= MAX_LINE and not GAP.search(line)  # in old books
    is_more = is_alone and (is_long or is_title(line.strip()))
    if not is_more or _is_label(line) or NUMBERED.match(line):
        return None
    shown = EMPHASIZED.sub(r"\2", line)
    return last, squeezed(f"{title.strip()} {shown}").rstrip(".")


def _end_of_title(text: str, start: int) -> int:
    """The end of a numbered title that is a paragraph of its own, in up to MAX_LINES lines; 0 if none is."""
    at, length = start, MAX_LINE
    for _ in range(MAX_LINES):
        line, end = line_at(text, at)
        is_first = at == start
        is_item = not is_first and (NUMBERED.match(line) or BULLET.match(line))
        if not line.strip() or length < LONG_LINE or is_item:
            return 0
        at, length = end, len(line.rstrip())
        if not line_at(text, at)[0].strip():
            return at if line.rstrip()[-1] not in ".,;:|。；，" and at - start <= MAX_LINE else 0
    return 0


def _is_broken(line: str, below: str) -> bool:
    """Whether a sentence continues in the next line."""
    if not below.strip():
        return False
    is_lower, length = below.lstrip()[0].islower(), len(line.rstrip())
    return (is_lower and length > SHORT_LINE / 2) or length > SHORT_LINE or _indent(below) > _indent(line)


def _underlined(line: str) -> str:
    """A title with a rule below it, which may end with a colon."""
    return ENUMERATOR.sub(r"\1 ", line.strip()).rstrip(" \xa0:：")


def _is_as_long(line: str, rule: str) -> bool:
    """Whether an underline is about as long as the title above it, and aligned with it."""
    title, drawn = line.strip(), rule.strip()
    return len(drawn) >= 0.7 * len(title) and _indent(rule) <= _indent(line) + 1


def _option(text: str, start: int, stop: int, body: int) -> Candidate | None:
    """The option, setting or term that a paragraph describes, below it indented or in the same line."""
    line, end = line_at(text, start)
    indent = _indent(line)
    if not indent >= body > 0:
        return None
    below, _ = line_at(text, end)
    is_term = bool(below.strip()) and _indent(below) > indent and not below.lstrip()[0].islower()
    found = OPTION.match(line) or KEYWORD.match(line) or (TERM.match(line) if is_term else None)
    if not found:
        return None
    has_text = len(found[2]) < len(line.strip())
    if not below.strip():
        below = "" if has_text else line_at(text, next_line(text, end))[0]
    is_described = _indent(below) > indent if below else has_text
    # A paragraph with several options has one line for each.
    if not is_described or text.find(f"\n{found[1]}-", start, stop) >= 0:
        return None
    return Candidate(start, start, "option", indent, squeezed(found[2])[:MAX_TITLE])


def _starts(text: str) -> Iterator[int]:
    """Where paragraphs begin."""
    if first := NONBLANK.search(text):
        yield text.rfind("\n", 0, first.start()) + 1
    at = first.start() if first else len(text)
    blanks = (blank.end() for blank in BLANK_LINES.finditer(text, at))
    # Articles in Chinese are paragraphs without a blank line between them.
    counters = (label.end() for label in COUNTERS.finditer(text, at))
    last = 0
    for start in merge(blanks, counters):
        if last < start < len(text):
            yield start
            last = start


def _body_indent(text: str, starts: list[int]) -> int:
    """The indentation of the body in a text with headings at the margin; 0 for any other text."""
    beginning = text[:SAMPLE]
    lines = beginning.count("\n") - beginning.count("\n\n")
    if beginning.count("\n ") + beginning.count("\n\t") < INDENTED * lines:
        return 0
    indents, in_margin = Counter[int](), 0
    for start in starts:
        line, end = line_at(text, start)
        in_margin += not _indent(line)
        # The text of a section or term may begin in the next line.
        line = line if _indent(line) or not line_at(text, end)[0].strip() else line_at(text, end)[0]
        indents[_indent(line)] += 1
        if start > SAMPLE:
            break
    least = MIN_BODY_SHARE * indents.total()
    body = min((one for one in indents if one and indents[one] >= least), default=0)
    return body if in_margin >= MIN_IN_MARGIN else 0


def line_at(text: str, start: int) -> tuple[str, int]:
    """The line at `start`, and the start of the next line; ("", start) if the line is too long."""
    end = text.find("\n", start, start + MAX_LINE)
    if end < 0:
        return (text[start:], len(text)) if len(text) - start <= MAX_LINE else ("", start)
    return text[start:end], end + 1


def next_line(text: str, start: int) -> int:
    """The start of the first non-blank line from `start` on."""
    found = NEXT.match(text, start)
    return found.end() if found else start


def _indent(line: str) -> int:
    blank = line[: len(line) - len(line.lstrip())]
    return len(blank.expandtabs(8)) if "\t" in blank else len(blank)
