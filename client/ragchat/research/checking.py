"""Checks each claim of a report against the sources that it cites."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec import Struct, field

from ragchat.formatting import listed
from ragchat.grounding.citations import MARKER, check, marked_numbers
from ragchat.grounding.facts import unsupported
from ragchat.grounding.pieces import sentence_spans
from ragchat.llm.client import Model
from ragchat.research.requests import ask_json
from ragchat.sanitize import one_line
from ragchat.turn.passages import quote
from ragcommon.contract.search import Hit

MARK = " **(not supported)**"
HEADING = "## Not supported"
REASON_CHARACTERS = 200
# Shorter sentences, questions and introductions of lists are not claims.
MIN_WORDS = 3
_NO_CLAIM = (":", "?", "：", "？")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_HEADING_OR_RULE = re.compile(r"\s*(?:#{1,6}\s|\*\*[^*]+\*\*:?\s*$|[-=*_|:\s]+$)")
_TABLE_RULE = re.compile(r"\s*\|[-:|\s]+$")
_LIST_MARK = re.compile(r"\s*(?:>\s*)*(?:[-*+•]\s+|\d+[.)]\s+)?")
_LEADING_MARKERS = re.compile(rf"(?:\s*{MARKER.pattern}[\s.]*)+")


@dataclass(frozen=True)
class Claim:
    """A sentence of the report, its end offset in the report, and the numbers of its sources."""

    text: str
    end: int
    numbers: tuple[int, ...]

    @property
    def bare(self) -> str:
        """The sentence without its markers, on one line."""
        return one_line(re.sub(rf"\s*{MARKER.pattern}", "", self.text)).strip()


class Unproven(Struct, frozen=True):
    """A claim that its sources do not support, and why."""

    claim: str
    reason: str


class _Objection(Struct):
    claim: int
    reason: str = ""


class _Objections(Struct):
    unsupported: list[_Objection] = field(default_factory=list)


def claims_of(report: str) -> list[Claim]:
    """The claims of a report. A sentence without a marker cites the sources of the next one in its line."""
    found: list[Claim] = []
    for start, line in _prose(report):
        claims: list[Claim] = []
        for text, end in _sentences(line):
            markers = MARKER.findall(text)
            numbers = tuple(dict.fromkeys(n for marker in markers for n in marked_numbers(marker)))
            claim = Claim(text, start + end, numbers)
            if len(claim.bare.split()) >= MIN_WORDS and not claim.bare.endswith(_NO_CLAIM):
                claims.append(claim)
        for index in range(len(claims) - 2, -1, -1):
            if not claims[index].numbers:
                claims[index] = Claim(claims[index].text, claims[index].end, claims[index + 1].numbers)
        found += claims
    return found


def _prose(report: str) -> Iterator[tuple[int, str]]:
    """The lines that can contain claims, with their start offsets."""
    start, in_code = 0, False
    lines = report.splitlines(keepends=True)
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if _FENCE.match(line):
            in_code = not in_code
        elif not (in_code or _HEADING_OR_RULE.match(line) or _TABLE_RULE.match(following)):
            mark = _LIST_MARK.match(line)
            skipped = mark.end() if mark else 0
            yield start + skipped, line[skipped:].rstrip()
        start += len(line)


def _sentences(line: str) -> Iterator[tuple[str, int]]:
    """The sentences of a line with their trailing markers and end offsets. A table row is one sentence."""
    if line.startswith("|"):
        yield line, len(line)
        return
    spans: list[tuple[int, int]] = []
    for start, end in sentence_spans(line):
        if spans and (leading := _LEADING_MARKERS.match(line[start:end])):
            spans[-1] = spans[-1][0], start + len(leading.group().rstrip())
            start += leading.end()
        if start < end:
            spans.append((start, end))
    for start, end in spans:
        yield line[start:end], end


def check_words(claims: Sequence[Claim], hits: Mapping[int, Hit], question: str) -> dict[int, str]:
    """Flawed claims by index: no source, a wrong quotation, or facts that the source does not contain."""
    return {index: reason for index, one in enumerate(claims) if (reason := _flaw(one, hits, question))}


def _flaw(claim: Claim, hits: Mapping[int, Hit], question: str) -> str:
    if not claim.numbers:
        return "it cites no source"
    if unknown := [n for n in claim.numbers if n not in hits]:
        return f"there is no source {_listed(unknown)}"
    cited = {n: hits[n] for n in claim.numbers}
    text = f"{claim.bare} {''.join(f'[{n}]' for n in cited)}"
    # A quotation may be from any source of its sentence.
    wrong = [found.quote for found in check(text, cited).citations if found.verified is False]
    if wrong:
        return f'"{one_line(wrong[0])}" is not in source {_listed(cited)} word for word'
    if facts := [fact for found in unsupported(text, cited, question) for fact in found.facts]:
        return f"{listed(facts)}: not in source {_listed(cited)}"
    return ""


def _listed(numbers: Sequence[int] | Mapping[int, Hit]) -> str:
    return ", ".join(map(str, numbers))


async def check_meaning(
    model: Model, prompt: str, claims: Sequence[Claim], known: Mapping[int, str], hits: Mapping[int, Hit]
) -> dict[int, str] | None:
    """The claims, by index, that the model finds unsupported; None if it did not reply in JSON.

    The `known` flawed ones are skipped. Raises ModelError, TokensUsedUp.
    """
    asked = [index for index in range(len(claims)) if index not in known]
    if not asked:
        return {}
    cited = {n: hits[n] for index in asked for n in claims[index].numbers}
    listed = "\n".join(
        f"{position}. {claims[index].bare} {''.join(f'[{n}]' for n in claims[index].numbers)}"
        for position, index in enumerate(asked, 1)
    )
    messages = [
        {"role": "system", "content": prompt},
        {"role": "user", "content": f"{quote(dict(sorted(cited.items())))}\n\nThe claims:\n{listed}"},
    ]
    replied = await ask_json(model, messages, _Objections)
    if replied is None:
        return None
    return {
        asked[one.claim - 1]: one_line(one.reason, REASON_CHARACTERS) or "its source does not say so"
        for one in replied.unsupported
        if 0 < one.claim <= len(asked)
    }


def marked(report: str, claims: Sequence[Claim], flaws: Mapping[int, str]) -> str:
    """The report with the flawed claims marked, and listed at its end."""
    for index in sorted(flaws, reverse=True):
        end = claims[index].end
        if report[:end].endswith("|"):  # inside the last cell of a table row
            end = len(report[: end - 1].rstrip())
        report = report[:end] + MARK + report[end:]
    if not flaws:
        return report
    listed = [f"- {claims[index].bare} ({flaws[index].rstrip('.')})" for index in sorted(flaws)]
    return "\n".join([report.rstrip(), "", HEADING, "", *listed])
