"""What the messages of a mailbox quote of each other. Pure.

A reply repeats other messages below its own author and date. A quoted paragraph is left out if each of its
sentences is also said in a message, or was quoted before. Otherwise it stays, as do a few words and a
question that is answered, with the line that names its author. In doubt, a text stays.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby, takewhile

from msgspec import Struct

from ragmemory.ingest.chunking import SENTENCE

# With the signs that change what a sentence says.
WORD = re.compile(r"[-+−]?\w+(?:[.,]\d+)*|!=|[%$€£=<>≠≤≥±≈~]")
# A shorter quotation may repeat other words by chance: "Yes."
MIN_WORDS = 5
# The lines of headers above a quotation without marks. HTML has their names in bold.
MAX_HEADERS = 10
FROM = re.compile(r"[*_]*(?:From|Von|De|Da|Van|Fra|Från|Od)[ \xa0]?:")
SUBJECT = re.compile(
    r"[*_]*(?:Subject|Betreff|Objet|Asunto|Oggetto|Onderwerp|Assunto|Ämne|Emne|Předmět|Temat)[ \xa0]?:"
)
HEADER = re.compile(r"[*_]*[^\W\d_][\w -]{0,20}[ \xa0]?:[*_]*[ \xa0\t]")
# The first line of a signature, or of the footer of a mailing list.
RULE = re.compile("--|__|==|~~")
# The lines that name the author of a quotation with marks. They consist of a date, a name, an address and the
# words below; a line with another word in lower case is a sentence.
MAX_LINES = 3
DATE = re.compile(
    r"(?:(?:On|[Aa]m|Le|El|Il(?: giorno)?|Op|Em|Den|Vào)\s(?:\w+[.,]{0,2}\s)?|\w{2,3}[.,]{1,2}\s)?"
    r"(?:\d{4}-\d\d-\d\d|\d\d?[./]\d\d?[./]\d{2,4}|\w+\.?\s\d\d?,\s\d{4}"
    r"|\d\d?\.?\s(?:de\s)?\w+\.?\s(?:de\s)?\d{4})\b"
)
VERBS = "wrote|writes|schrieb|schreibt|écrit|escribió|escreveu|scritto|schreef|skrev"
BETWEEN = re.compile(rf"{VERBS}|at|um|à|a|às|las|alle|ore|om|kl|de|da|van|von|der|ha|hat|has")
TIME = re.compile(r"\d\d?[:h]\d\d\S*|[+-]\d{4}")
ADDRESS = re.compile(r"<\s?[^<>\s]+@[^<>\s]+>")


class _Paragraph(Struct):
    depth: int  # of quotation
    lines: list[str]
    bare: list[str]  # the lines without marks
    names_author: bool = False  # of the quotation below
    is_kept: bool = True

    @property
    def is_own(self) -> bool:
        return not (self.depth or self.names_author)

    def sentences(self) -> list[str]:
        """Line breaks and most marks make no difference to them."""
        parts = SENTENCE.split(" ".join(self.bare).lower())
        return [" ".join(WORD.findall(part) or part.split()) for part in parts if part.strip()]


class Quotations:
    """The sentences of a mailbox, as hashes: those of the messages, and of the quotations that were kept."""

    def __init__(self) -> None:
        self._known = set[int]()

    def add(self, body: str) -> None:
        for paragraph in _paragraphs(body):
            if paragraph.is_own:
                self._known.update(map(hash, paragraph.sentences()))

    def without_repeated(self, body: str) -> str:
        """The message without the quotations whose words are elsewhere, which adds its sentences."""
        paragraphs = _paragraphs(body)
        runs = [list(run) for _, run in groupby(paragraphs, key=lambda one: one.is_own)]
        for run, below in zip(runs, [*runs[1:], None], strict=True):
            self._mark_repeated(run, below)
        _keep_authors(paragraphs)
        lines = list[str]()
        for one in paragraphs:
            if one.is_kept:
                lines += one.lines
            elif lines and lines[-1]:
                lines.append("")
        return "\n".join(lines)

    def _mark_repeated(self, run: Sequence[_Paragraph], below: Sequence[_Paragraph] | None) -> None:
        """Decide which paragraphs of a run are kept, whose sentences are known from now on."""
        said = [one for one in run if not one.names_author]
        is_answered = len(said) == 1 and below is not None and not RULE.match(below[0].bare[0])
        repeated = Counter[int]()  # words, by the depth of their quotation
        for one in said:
            sentences = one.sentences()
            hashes = set(map(hash, sentences))
            is_question = is_answered or (one.depth == 1 and one.bare[-1].endswith("?"))
            one.is_kept = one.is_own or is_question or not hashes <= self._known
            self._known |= hashes
            if not one.is_kept:
                repeated[one.depth] += sum(len(sentence.split()) for sentence in sentences)
        for one in said:
            one.is_kept = one.is_kept or repeated[one.depth] < MIN_WORDS


def _keep_authors(paragraphs: Sequence[_Paragraph]) -> None:
    """Keep the lines that name an author only above something of theirs that is kept, or nothing."""
    kept = 0  # A paragraph of a lower depth has something below it that is kept.
    for one, quoted in zip(paragraphs[::-1], [None, *paragraphs[:0:-1]], strict=True):
        if one.names_author:
            one.is_kept = one.depth < kept or quoted is None or quoted.depth <= one.depth
        kept = one.depth if one.is_kept and not one.names_author else min(kept, one.depth)


def _paragraphs(body: str) -> list[_Paragraph]:
    """The paragraphs of a message, with the empty lines below each."""
    found = [_Paragraph(0, [], [])]
    begun = list[int]()  # of the quotations without marks that a line is in, the numbers of marks around them
    in_headers = False
    lines = body.splitlines()
    bare = [line.lstrip("> \t").rstrip() for line in lines]
    for at, (line, text) in enumerate(zip(lines, bare, strict=True)):
        last = found[-1]
        if not text:
            last.lines.append(line)
            in_headers = False
            continue
        marks = line[: len(line) - len(line.lstrip("> \t"))].count(">")
        begins = bool(FROM.match(text)) and any(
            map(SUBJECT.match, takewhile(HEADER.match, bare[at : at + MAX_HEADERS]))
        )
        in_headers = begins or (in_headers and bool(HEADER.match(text)))
        while begun and begun[-1] >= marks + (not begins):
            begun.pop()
        depth = marks + len(begun)
        adjoins = len(last.lines) == len(last.bare)
        if begins:
            begun.append(marks)
            if len(last.bare) == 1 and RULE.match(last.bare[0]):
                last.depth, last.names_author = depth, True
            else:
                found.append(_Paragraph(depth, [], [], names_author=True))
        elif not in_headers and (not adjoins or depth != last.depth or last.names_author or RULE.match(text)):
            if depth > last.depth:
                found[-1:] = _with_author(last)
            found.append(_Paragraph(depth, [], []))
        found[-1].lines.append(line)
        found[-1].bare.append(text)
    return found


def _with_author(last: _Paragraph) -> list[_Paragraph]:
    """The paragraph above a quotation; the lines at its end that name the author are one of their own."""
    for rest in range(max(len(last.bare) - MAX_LINES, 0), len(last.bare)):
        begins = not rest or last.bare[rest - 1].endswith((".", "!", "?", ":"))
        if begins and not last.names_author and _names_author(" ".join(last.bare[rest:])):
            upper = [_Paragraph(last.depth, last.lines[:rest], last.bare[:rest])] if rest else []
            return [*upper, _Paragraph(last.depth, last.lines[rest:], last.bare[rest:], names_author=True)]
    return [last]


def _names_author(text: str) -> bool:
    """Whether it is a line like "On 3 May 2024, Ada wrote:" or "Ada <ada@b.c> wrote:"."""
    rest, addresses = ADDRESS.subn("", text)
    words = [word.strip(".,()") for word in DATE.sub("", rest).removesuffix(":").split()]
    signs = (DATE.match(text), addresses, any(re.fullmatch(VERBS, word) for word in words))
    return (
        text.endswith(":")
        and sum(map(bool, signs)) >= 2
        and all(
            BETWEEN.fullmatch(word) or TIME.fullmatch(word) or not (word[:1].islower() or word[:1].isdigit())
            for word in words
        )
    )
