"""Answers without any model: short quotations from memory, cited, and whether they hold what was asked. Pure.

Three states: *grounded*, the quoted text holds what the question asks for; *nearest*, nothing does, but some
passages come close; *nothing*, no passage is on the topic.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import groupby

from ragchat.offline.evidence import Question, share
from ragchat.offline.layout import ITEM_MARK
from ragchat.offline.records import FIELD_SEPARATOR
from ragchat.offline.structure import Kind, Unit
from ragchat.offline.windows import Window
from ragchat.offline.words import index_terms
from ragchat.types import Answer, Candidate, Citation

# `ask -f` quotes a file that is not in memory, so these do not name memory.
NO_MODEL = "*No language model is configured: these are the best sentences of your documents, word for word.*"
NEAREST = "Nothing in your documents answers this directly. The nearest:"
NOTHING = "Nothing in your documents is relevant to this question."
# Of a record of a wide CSV file, so many fields are shown.
MOST_FIELDS = 12
# Of the words that are not mentioned, so many are shown.
MOST_LISTED = 10
EMPTY_MEMORY = "Memory is empty. Load documents with /inject, or with `ragchat inject PATH`."

# The share of the question that a grounded answer holds. `tests/benchmarks/grounding.py` prints what other
# thresholds give.
GROUNDED = 0.39
# Of the passage's score from memory, which also goes by meaning, beside the words that are held.
W_RELEVANCE = 0.2
_PRONOUN = re.compile(
    r"(?:it|its|he|his|she|her|they|their|this|these|er|sie|es|ils?|elles?|él|ella)\b", re.IGNORECASE
)
# The nearest window that holds less of the question's words may have a price, but not of what is asked about.
ON_TOPIC = 0.5


def evidence(question: Question, windows: Sequence[Window]) -> float:
    """How well the first window and the others of its passage answer the question, in [0, 1].

    0 if a number, a code, or a value of the type that is asked for is missing. The words decide; that memory
    finds the passage relevant counts for less.
    """
    if not windows:
        return 0.0
    of_passage = [window for window in windows if window.hit.chunk_id == windows[0].hit.chunk_id]
    terms = terms_of(of_passage)
    expected = _is_expected(question, of_passage)
    is_ruled_out = not expected and question.type is not None and question.type.is_certain
    if is_ruled_out or question.lacks_exact(terms) or _named_otherwise(question, of_passage):
        return 0.0
    covered = question.coverage(terms, is_expected=expected)
    return (1 - W_RELEVANCE) * covered + W_RELEVANCE * windows[0].hit.score


def is_grounded(question: Question, windows: Sequence[Window]) -> bool:
    """Whether the windows hold what is asked for."""
    return bool(windows) and evidence(question, windows) >= GROUNDED


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - MOST_LISTED} more" if len(words) > MOST_LISTED else ""
    return ", ".join(f"*{word}*" for word in words[:MOST_LISTED]) + more


def nothing(candidates: Sequence[Candidate], *, empty: bool = False) -> Answer:
    """The answer that quotes nothing."""
    unused = [Candidate(candidate.hit, False, candidate.reason) for candidate in candidates]
    return Answer(EMPTY_MEMORY if empty else NOTHING, [], unused, grounded=False)


def quote_windows(
    question: Question,
    windows: Sequence[Window],
    candidates: Sequence[Candidate],
    *,
    grounded: bool,
    note: str = "",
) -> Answer:
    """The answer that quotes these windows, each with the number of its passage, in Markdown.

    `note` stands below the quotations.
    """
    chunks = dict.fromkeys(window.hit.chunk_id for window in windows)
    numbers = {chunk_id: n for n, chunk_id in enumerate(chunks, start=1)}
    citations = [
        Citation.of(numbers[window.hit.chunk_id], window.hit, window.text, lines=window.lines)
        for window in windows
    ]
    on_topic = [window for window in windows if grounded or share(question.words, window.terms) >= ON_TOPIC]
    missing = question.missing(terms_of(windows), is_expected=_has_value_of_it(question, on_topic))
    missing += [number for number in _named_otherwise(question, windows) if number not in missing]
    parts = [
        *([] if grounded else [NEAREST]),
        *(
            markdown_of(group[0], numbers[group[0].hit.chunk_id], question.terms, group[1:])
            for group in _groups(windows)
        ),
        *filter(None, [note]),
        *([f"Not mentioned there: {_listed(missing)}"] if missing else []),
        NO_MODEL,
    ]
    return Answer(
        "\n\n".join(parts),
        citations if grounded else [],
        [_judged(candidate, numbers, grounded=grounded) for candidate in _with_quoted(candidates, windows)],
        grounded=grounded,
        nearest=[] if grounded else citations,
        missing=missing,
    )


def terms_of(windows: Sequence[Window]) -> frozenset[str]:
    """The terms of the windows, of all that names them, and of the turns of a conversation around them.

    Windows are chosen without these turns: with them, others than the right one are quoted.
    """
    around = {window.hit.surroundings for window in windows}
    return frozenset(index_terms(" ".join(around))).union(*(window.terms for window in windows))


def _is_expected(question: Question, windows: Sequence[Window]) -> bool:
    """Whether any window holds a value of the type that is asked for."""
    return any(question.is_expected(window.text, is_bare=window.is_bare) for window in windows)


def _has_value_of_it(question: Question, windows: Sequence[Window]) -> bool:
    """Whether a unit of any window that is about what is asked has a value of the type.

    "In three years" after a sentence about an apprentice is not how old she is. A unit is about it that holds
    most of those words of the question that any unit holds, or a word that asks for the type: "31 metres
    tall". A sentence that begins with a pronoun is about what the one before it names.
    """
    about: list[tuple[frozenset[str], str, bool]] = []
    for window in windows:
        before = ""
        for unit in window.own:
            before = f"{before if _PRONOUN.match(unit.text) else ''} {unit.context} {unit.reading}"
            text = before if window.is_bare else unit.text
            about.append((frozenset(index_terms(before)), text, window.is_bare))
    telling = [word for word in question.words if not word.is_general]
    local = [word for word in telling if any(word.is_in(terms) for terms, *_ in about)]
    asking = frozenset(index_terms(" ".join(question.asks)))
    return any(
        question.is_expected(text, is_bare=is_bare)
        for terms, text, is_bare in about
        if not local or asking & terms or share(local, terms) >= ON_TOPIC
    )


def _named_otherwise(question: Question, windows: Sequence[Window]) -> list[str]:
    return question.names_another("\n".join(window.named_text for window in windows))


def _groups(windows: Sequence[Window]) -> Iterator[Sequence[Window]]:
    """The windows, with rows of one table and records of one file together."""

    def table(window: Window) -> tuple[int, ...]:
        own = () if window.kind in (Kind.ROW, Kind.RECORD) else (window.first, window.last)
        return window.hit.chunk_id, window.block, *own

    return (list(group) for _, group in groupby(windows, table))


def markdown_of(window: Window, n: int, asked: Set[str], more: Sequence[Window] = ()) -> str:
    """A quotation after its lead, with its citation behind it. Line breaks are kept where they matter.

    `more` are other rows of the same table, or records of the same file.
    """
    first = window.units[window.first]
    rows = [unit for one in (window, *more) for unit in one.own]
    if first.kind is Kind.ROW:
        return f"{_table(rows)}\n\n[{n}]"
    if first.kind is Kind.CODE:
        code = textwrap.dedent("\n".join(filter(None, [first.lead, " " * first.indent + window.text])))
        return f"```\n{code}\n```\n\n[{n}]"
    if first.kind is Kind.RECORD:
        text = "\n".join(_narrowed(unit.reading, asked) for unit in rows)
    elif first.kind is Kind.ITEM and window.first == window.last:
        text = ITEM_MARK.sub("", first.text, count=1)
    else:
        text = _as_laid_out(window)
    lines = [*first.lead.splitlines(), *text.splitlines()]
    # Two spaces: a line break in Markdown.
    return "  \n".join(f"> {line}".rstrip() for line in lines) + f" [{n}]"


def _as_laid_out(window: Window) -> str:
    """The text with each paragraph on one line, and the line breaks of all else."""
    text, before = "", window.own[0]
    for unit in window.own:
        if unit is not before:
            is_paragraph = unit.kind is before.kind is Kind.SENTENCE and unit.block == before.block
            gap = window.hit.text[before.end : unit.start]
            text += gap and " " if is_paragraph else "\n"
        text += " ".join(unit.text.split()) if unit.kind is Kind.SENTENCE else unit.text
        before = unit
    return text


def _narrowed(record: str, asked: Set[str]) -> str:
    """At most MOST_FIELDS fields of a record: the first one, then those with `asked` terms."""
    fields = record.split(FIELD_SEPARATOR)
    if len(fields) <= MOST_FIELDS:
        return record
    rest = range(1, len(fields))
    ranked = sorted(rest, key=lambda place: -len(asked & set(index_terms(fields[place]))))
    shown = [fields[place] for place in (0, *sorted(ranked[: MOST_FIELDS - 1]))]
    return FIELD_SEPARATOR.join([*shown, f"{len(fields) - MOST_FIELDS} more fields"])


def _table(rows: Sequence[Unit]) -> str:
    first = rows[0]
    columns = max(1, first.text.count("|") - 1)
    header = first.lead if first.lead.startswith("|") else "|" + " |" * columns
    return "\n".join([header, f"|{' --- |' * columns}", *(row.text for row in rows)])


def _with_quoted(candidates: Sequence[Candidate], windows: Sequence[Window]) -> list[Candidate]:
    """The candidates, and the passages of the windows that are not among them."""
    found = {candidate.hit.chunk_id for candidate in candidates}
    others = {window.hit.chunk_id: window.hit for window in windows if window.hit.chunk_id not in found}
    return [*candidates, *(Candidate(hit, True, "near by meaning") for hit in others.values())]


def _judged(candidate: Candidate, numbers: Mapping[int, int], *, grounded: bool) -> Candidate:
    """The candidate as used if it is quoted."""
    n = numbers.get(candidate.hit.chunk_id, 0)
    if not n:
        return Candidate(candidate.hit, False, candidate.reason)
    reason = "quoted" if grounded or candidate.used else f"quoted, though {candidate.reason}"
    return Candidate(candidate.hit, True, reason, n)
