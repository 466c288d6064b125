"""What the messages of a mailbox quote of each other. Pure.

A reply repeats other messages below its own author and date. A quoted paragraph is left out if each of its
sentences is also said in a message, or was quoted before. Otherwise it stays, as does a question that is
answered, with the line that names its author.
"""

from __future__ import annotations

import re
from itertools import groupby

from msgspec import Struct

from ragmemory.ingest.chunking import SENTENCE

# With the sign of a number.
WORD = re.compile(r"[-+−]?\w+|[%$€£]")
# Above a quotation without marks: at least so many headers, their names in bold if it was HTML.
MIN_HEADERS = 3
FROM = re.compile(r"[*_]*(?:From|Von|De|Da|Van|Fra|Från|Od)[ \xa0]?:")
HEADER = re.compile(r"[*_]*[^\W\d_][\w -]{0,20}[ \xa0]?:[*_]*[ \xa0\t]")
# Above these, a signature or the footer of a mailing list.
RULE = re.compile("--|__|==|~~")
# Above a quotation with marks. Each line but the last is wrapped, so it is long.
NAMES_AUTHOR = re.compile(r"^(?:.{40,}[^.!?\n]\n){0,2}.*:\Z", re.MULTILINE)
ADDRESS_OR_VERB = re.compile(
    r"@|\b(?:wrote|writes|schrieb|schreibt|écrit|escribió|escreveu|scritto|schreef|skrev)\b"
)


class _Paragraph(Struct):
    depth: int  # of quotation
    lines: list[str]
    bare: list[str]  # the lines without marks
    names_author: bool = False  # of the quotation below
    is_kept: bool = True

    @property
    def is_own(self) -> bool:
        return not (self.depth or self.names_author)

    def sentences(self) -> set[int]:
        """Hashes, to which line breaks and marks make no difference."""
        parts = SENTENCE.split(" ".join(self.bare).lower())
        return {hash(" ".join(words)) for part in parts if (words := WORD.findall(part))}


class Quotations:
    """The sentences of a mailbox: those of the messages it has seen, and the quotations it has kept."""

    def __init__(self) -> None:
        self._known = set[int]()

    def see(self, body: str) -> None:
        for paragraph in _paragraphs(body):
            if paragraph.is_own:
                self._known |= paragraph.sentences()

    def left_out(self, body: str) -> str:
        """The message without the quotations whose words are elsewhere."""
        runs = [list(run) for _, run in groupby(_paragraphs(body), key=lambda one: one.is_own)]
        for run, below in zip(runs, [*runs[1:], None], strict=True):
            said = [one for one in run if not one.names_author]
            is_answered = len(said) == 1 and below is not None and not RULE.match(below[0].bare[0])
            for one in said:
                sentences = one.sentences()
                is_question = is_answered or (one.depth == 1 and one.bare[-1].endswith("?"))
                one.is_kept = one.is_own or is_question or not sentences <= self._known
                self._known |= sentences
        paragraphs = [one for run in runs for one in run]
        kept = 0  # A paragraph of a lower depth has something below it that is kept.
        for one in reversed(paragraphs):
            if one.names_author:
                one.is_kept = one.depth < kept
            kept = one.depth if one.is_kept and not one.names_author else min(kept, one.depth)
        lines = list[str]()
        for one in paragraphs:
            if one.is_kept:
                lines += one.lines
            elif lines and lines[-1]:
                lines.append("")
        return "\n".join(lines)


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
        begins = bool(FROM.match(text)) and all(map(HEADER.match, bare[at : at + MIN_HEADERS]))
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
    found = NAMES_AUTHOR.search("\n".join(last.bare[-3:]))
    if found is None or last.names_author or not ADDRESS_OR_VERB.search(found[0]):
        return [last]
    rest = len(last.bare) - found[0].count("\n") - 1
    upper = [_Paragraph(last.depth, last.lines[:rest], last.bare[:rest])] if rest else []
    return [*upper, _Paragraph(last.depth, last.lines[rest:], last.bare[rest:], names_author=True)]
