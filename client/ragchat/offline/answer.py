"""Answers without a model: the best sentences of memory for a question, quoted verbatim and cited. Pure.

The score of a sentence grows with the rare words that it shares with the question, with the score of its
passage, and if it contains what the question asks for (a number for "how many", a name for "who"). A block
of code is scored by its best few lines, and its words count less the more it has: a long block contains the
words of many questions by chance. A sentence that is a question itself is no answer.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ragchat.offline.answer_types import answer_type
from ragchat.offline.sentences import Kind, Unit, units
from ragchat.offline.words import index_terms
from ragchat.types import Answer, Candidate, Citation, Hit
from ragconfig.text_rules import MAX_QUERY_CHARACTERS

NO_MODEL = "*No language model is configured: these are the best sentences of your memory, word for word.*"
NOTHING = "Nothing in memory is relevant to this question."
EMPTY_MEMORY = "Memory is empty. Load documents with /inject, or with `ragchat inject PATH`."

MOST_SENTENCES = 3
# A further sentence needs this share of the best score.
WORTH = 0.65
CODE_LINES = 12
# Neighbouring lines of code that are scored together: about the words of a sentence.
SCORED_LINES = 3
# Terms of an average sentence. The scores of code with more terms are divided as in BM25, with b = 0.5. Those
# of sentences are not: with that, fewer answers to the questions of XQuAD were found.
USUAL_TERMS = 12

# The weights of the parts of a score; the share of the question's rare words has the weight 1.
W_PASSAGE = 0.5
W_EXPECTED = 0.25
W_CONTEXT = 0.25
# The weight of a word of an earlier question; one of this question has the weight 1.
W_CARRIED = 0.3


@dataclass(frozen=True)
class _Scored:
    passage: int  # index among the relevant hits
    place: int  # index within the passage
    unit: Unit
    terms: frozenset[str]
    asked: bool  # whether it contains a word of the question
    score: float


def compose(question: str, candidates: list[Candidate], *, query: str = "", empty: bool = False) -> Answer:
    """The answer in Markdown: each quotation with its [n], then the line `NO_MODEL`.

    `candidates` are what memory found; those of the answer are marked as used if they are quoted. `query` is
    the query to memory, which for a follow-up is more than the question. `empty`: memory has no documents.
    """
    hits = [candidate.hit for candidate in candidates if candidate.used]
    chosen = choose(question, hits, query)
    if not chosen:
        return Answer(EMPTY_MEMORY if empty else NOTHING, [], candidates)
    numbers = {
        passage: n for n, passage in enumerate(dict.fromkeys(best.passage for best in chosen), start=1)
    }
    quotations = list(_quotations(chosen, hits))
    parts = [_markdown(unit, numbers[passage]) for passage, unit in quotations]
    citations = [Citation.of(numbers[passage], hits[passage], unit.text) for passage, unit in quotations]
    by_chunk = {hits[passage].chunk_id: n for passage, n in numbers.items()}
    judged = [_judged(candidate, by_chunk) for candidate in candidates]
    return Answer("\n\n".join([*parts, NO_MODEL]), citations, judged)


def choose(question: str, hits: Sequence[Hit], query: str = "") -> list[_Scored]:
    """The units to quote: the best passage first, and in each passage in the order of the text."""
    scored = _score(question, hits, query)
    if not scored:
        return []
    ranked = sorted(scored, key=lambda unit: (-unit.score, unit.passage, unit.place))
    chosen = _worthy(ranked)
    if len(chosen) < MOST_SENTENCES:
        chosen += _before(chosen[0], scored, chosen)
    passages = list(dict.fromkeys(unit.passage for unit in chosen))
    return sorted(chosen, key=lambda unit: (passages.index(unit.passage), unit.place))


def _quotations(chosen: Sequence[_Scored], hits: Sequence[Hit]) -> Iterator[tuple[int, Unit]]:
    """The quotations, each with its passage. Sentences that follow one another are one quotation."""
    passage, whole = chosen[0].passage, chosen[0].unit
    for best in chosen[1:]:
        run = _run_of(whole, best.unit, hits[passage].text) if best.passage == passage else ""
        if run:
            whole = replace(whole, text=run)
        else:
            yield passage, whole
            passage, whole = best.passage, best.unit
    yield passage, whole


def _run_of(one: Unit, next_one: Unit, text: str) -> str:
    """Two sentences with the white space between them in `text`; "" if they are not neighbours."""
    if not one.kind is next_one.kind is Kind.SENTENCE:
        return ""
    run = re.search(rf"{re.escape(one.text)}\s*{re.escape(next_one.text)}", text)
    return run.group() if run else ""


def _worthy(ranked: Sequence[_Scored]) -> list[_Scored]:
    """The best unit, and those that are nearly as good and say something else.

    A unit of another passage must contain a word of the question: nothing else says what it is about.
    """
    chosen = [ranked[0]]
    for unit in ranked[1:]:
        if len(chosen) == MOST_SENTENCES or unit.score < WORTH * ranked[0].score:
            break
        fits = unit.asked or unit.passage == ranked[0].passage
        if fits and not any(_same(unit, other) for other in chosen):
            chosen.append(unit)
    return chosen


def _before(best: _Scored, scored: Sequence[_Scored], chosen: Sequence[_Scored]) -> list[_Scored]:
    """The sentence before the best one: it explains the pronouns of that, and often is the answer."""
    return [
        unit
        for unit in scored
        if (unit.passage, unit.place) == (best.passage, best.place - 1)
        and unit.unit.kind is best.unit.kind is Kind.SENTENCE
        and not any(_same(unit, other) for other in chosen)
    ]


def _score(question: str, hits: Sequence[Hit], query: str) -> list[_Scored]:
    question, query = question[:MAX_QUERY_CHARACTERS], query[:MAX_QUERY_CHARACTERS]
    carried, now = dict.fromkeys(index_terms(query), W_CARRIED), dict.fromkeys(index_terms(question), 1.0)
    asked = carried | now
    expected = answer_type(question)
    cut = [units(hit.text) for hit in hits]
    terms = [[frozenset(index_terms(f"{unit.header} {unit.text}")) for unit in passage] for passage in cut]
    weights = _weights(asked, terms)
    best_hit = max((hit.score for hit in hits), default=1.0) or 1.0
    scored = []
    for p, hit in enumerate(hits):
        around = frozenset(index_terms(f"{hit.title} {hit.heading}"))
        for i, unit in enumerate(cut[p]):
            whole = terms[p][i]
            before = terms[p][i - 1] if i and cut[p][i - 1].kind is not Kind.CODE else frozenset[str]()
            near = around | before
            density = _density(unit, len(whole))
            best = max(
                density * _share(weights, own)
                + W_CONTEXT * _share(weights, near - own)
                + W_EXPECTED * bool(expected and expected.search(text))
                for text, own in _stretches(unit)
            )
            score = best + W_PASSAGE * hit.score / best_hit
            scored.append(_Scored(p, i, unit, whole, not whole.isdisjoint(weights), score))
    return scored


def _share(weights: Mapping[str, float], terms: frozenset[str]) -> float:
    """The share of the question that `terms` contain, by weight, in [0, 1]."""
    shared = sum(weight for term, weight in weights.items() if term in terms)
    return shared / (sum(weights.values()) or 1.0)


def _density(unit: Unit, terms: int) -> float:
    """The factor for the share of a unit, in (0, 1], by the number of its terms."""
    return 1.0 if unit.kind is not Kind.CODE else 2 / (1 + max(1.0, terms / USUAL_TERMS))


def _stretches(unit: Unit) -> list[tuple[str, frozenset[str]]]:
    """The texts by which a unit is scored, with their terms: the whole; of code, all runs of a few lines."""
    lines = unit.text.splitlines() if unit.kind is Kind.CODE else [unit.text]
    terms = [
        frozenset() if _asks(line) else frozenset(index_terms(f"{unit.header} {line}")) for line in lines
    ]
    return [
        ("\n".join(lines[i : i + SCORED_LINES]), frozenset[str]().union(*terms[i : i + SCORED_LINES]))
        for i in range(max(1, len(lines) - SCORED_LINES + 1))
    ]


def _asks(text: str) -> bool:
    """Whether a text is a question, as in a transcript: it has the words of ours, but not the answer."""
    return text.rstrip(" *_\"'”’»").endswith(("?", "？"))


def _weights(asked: Mapping[str, float], terms: Sequence[Sequence[frozenset[str]]]) -> dict[str, float]:
    """The weight of each term of the question: its own, times its rarity among the units of the passages."""
    found = [unit for passage in terms for unit in passage]
    counts = Counter(term for unit in found for term in unit if term in asked)
    return {term: weight * math.log(1 + len(found) / (1 + counts[term])) for term, weight in asked.items()}


def _same(one: _Scored, other: _Scored) -> bool:
    """Whether two units have nearly the same terms, as in two versions of a document."""
    return len(one.terms & other.terms) > 0.8 * max(1, min(len(one.terms), len(other.terms)))


def _markdown(unit: Unit, n: int) -> str:
    """A unit as Markdown, with the marker [n] at its end."""
    if unit.kind is Kind.CODE:
        return f"{_shortened(unit.text)}\n\n[{n}]"
    if unit.kind is Kind.ROW:
        columns = max(1, unit.text.count("|") - 1)
        header = unit.header or "|" + " |" * columns
        return f"{header}\n|{' --- |' * columns}\n{unit.text}\n\n[{n}]"
    line = re.sub(r"^(?:[-*+•]|\d{1,3}[.)])\s+", "", " ".join(unit.text.split()))
    return f"> {line} [{n}]"


def _shortened(code: str) -> str:
    lines = code.splitlines()
    return code if len(lines) <= CODE_LINES else "\n".join([*lines[:CODE_LINES], lines[-1]])


def _judged(candidate: Candidate, numbers: dict[int, int]) -> Candidate:
    if not candidate.used:
        return candidate
    n = numbers.get(candidate.hit.chunk_id, 0)
    return Candidate(candidate.hit, bool(n), "quoted" if n else "relevant, but others answer better", n)
