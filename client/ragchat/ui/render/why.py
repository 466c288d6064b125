"""/why: what was found, what went into the prompt, what the answer cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import UNSET
from rich.table import Table
from rich.text import Text

from ragchat.formatting import counted, seconds
from ragchat.sanitize import one_line
from ragchat.types import OFFLINE
from ragchat.uris import short_location

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ragchat.types import Candidate, Trace, Turn
    from ragcommon.contract.search import Hit


def why(turn: Turn) -> Iterator[RenderableType]:
    """The trace of a turn, in the order in which things happened."""
    trace = turn.trace
    yield _line("Question", turn.question)
    if trace.query and trace.query != turn.question:
        yield _line("Searched for", trace.query)
    if trace.wordings:
        yield _line("Also searched for", " | ".join(trace.wordings))
    if trace.candidates:
        yield Text()
        yield _candidates(trace.candidates)
        yield Text()
    else:
        yield _line("Found", "nothing")
    yield _line("Passages", _passages(trace))
    yield _line("History", _history(trace))
    yield _line("Model", turn.model)
    if turn.model != OFFLINE:
        yield _line("Tokens", _tokens(turn))
    yield _line("Times", _times(turn))
    if trace.judgement:
        yield _line("Judged", _judgement(trace.judgement))
    if not turn.grounded:
        yield _line("Grounded", f"no: {_lacking(turn)}")
    for citation in turn.citations:
        if citation.verified is False:
            yield _line("Quotation", f"[{citation.n}] does not contain “{one_line(citation.quote, 60)}”")
    for notice in trace.notices:
        yield _line("Notice", notice)


def _judgement(judgement: Mapping[str, float]) -> str:
    """`the passages answer with probability 0.83: best late 0.91, words 1.1, …`"""
    parts = ", ".join(f"{name} {value:.2f}" for name, value in judgement.items() if name != "probability")
    said = f"the passages answer with probability {judgement.get('probability', 0.0):.2f}"
    return f"{said}: {parts}" if parts else said


def _lacking(turn: Turn) -> str:
    if not turn.citations and not turn.nearest:
        return "memory has nothing on the topic"
    if turn.model != OFFLINE and not turn.citations:
        return "the answer cites none of the passages"
    if turn.citations and all(citation.verified is False for citation in turn.citations):
        return "the cited passages do not contain the quotations"
    if turn.unsupported:
        facts = ", ".join(fact for found in turn.unsupported for fact in found.facts)
        return f"the cited passages do not contain {facts}"
    if turn.missing:
        return f"the passages do not mention {', '.join(turn.missing)}"
    return "no passage clearly holds what is asked"


def _times(turn: Turn) -> str:
    """`retrieval 12 ms, first token 0.8 s, total 2.1 s`; without a model, there are no tokens."""
    names = [name for name in turn.timings if turn.model != OFFLINE or name != "first_token"]
    return ", ".join(f"{name.replace('_', ' ')} {seconds(turn.timings[name])}" for name in names)


def _candidates(candidates: list[Candidate]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="heading")
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    is_reranked = any(candidate.hit.rerank_score is not UNSET for candidate in candidates)
    if is_reranked:
        table.add_column("reranked", justify="right", no_wrap=True)
    table.add_column("passage", overflow="fold")
    table.add_column("used", overflow="fold")
    for candidate in candidates:
        hit = candidate.hit
        where = Text(short_location(hit.uri, [(hit.start_line, hit.end_line)], hit.title, hit.places))
        if hit.heading:
            where.append(f"  {one_line(hit.heading, 40)}", "heading")
        table.add_row(
            Text(f"[{candidate.n}]" if candidate.n else "", "citation"),
            f"{hit.score:.2f}",
            *([_rerank_score(hit)] if is_reranked else []),
            where,
            Text.assemble(("yes: " if candidate.used else "no: "), (one_line(candidate.reason), "heading")),
            style="" if candidate.used else "dim",
        )
    return table


def _rerank_score(hit: Hit) -> str:
    return f"{hit.rerank_score:.2f}" if isinstance(hit.rerank_score, float) else ""


def _passages(trace: Trace) -> str:
    used = sum(candidate.used for candidate in trace.candidates)
    text = f"{used} of {len(trace.candidates)} used"
    return f"{text}, about {trace.passages_tokens:,} tokens" if trace.passages_tokens else text


def _history(trace: Trace) -> str:
    turns = counted(trace.history_turns, "earlier turn")
    return f"{turns}; {trace.dropped_turns} left out, the budget was full" if trace.dropped_turns else turns


def _tokens(turn: Turn) -> str:
    prompt, completion = turn.usage.best
    if not turn.usage.is_reported:
        return f"prompt about {prompt:,}, answer about {completion:,} (the server reported none)"
    return f"prompt {prompt:,} (our estimate {turn.trace.prompt_tokens:,}), answer {completion:,}"


def _line(name: str, value: str) -> Text:
    return Text.assemble((f"{name}: ", "name"), one_line(value))
