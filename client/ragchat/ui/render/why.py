"""/why: the passages found and used, the tokens, the times and the judgement of the last answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import UNSET
from rich.table import Table
from rich.text import Text

from ragchat.formatting import counted, seconds
from ragchat.llm.types import OFFLINE
from ragchat.sanitize import one_line
from ragchat.uris import short_location

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ragchat.answer import Answer, Candidate
    from ragchat.turn.types import Turn
    from ragcommon.contract.search import Hit


def why(turn: Turn) -> Iterator[RenderableType]:
    """The trace of a turn, in the order in which things happened."""
    trace, answer = turn.trace, turn.answer
    yield _line("Question", turn.question)
    if trace.query and trace.query != turn.question:
        yield _line("Searched for", trace.query)
    if answer.wordings:
        yield _line("Also searched for", " | ".join(answer.wordings))
    if answer.candidates:
        yield Text()
        yield _candidates(answer.candidates)
        yield Text()
    else:
        yield _line("Found", "nothing")
    yield _line("Passages", _passages(answer))
    yield _line("History", _history(turn))
    yield _line("Model", answer.model)
    if answer.model != OFFLINE:
        yield _line("Tokens", _tokens(answer))
    yield _line("Times", _times(turn))
    if answer.judgement:
        yield _line("Judged", _judgement(answer.judgement))
    if not answer.grounded:
        yield _line("Grounded", f"no: {_lacking(answer)}")
    for citation in answer.citations:
        if citation.verified is False:
            yield _line("Quotation", f"[{citation.n}] does not contain “{one_line(citation.quote, 60)}”")
    for notice in trace.notices:
        yield _line("Notice", notice)


def _judgement(judgement: Mapping[str, float]) -> str:
    """`the passages answer with probability 0.83: best late 0.91, words 1.1, …`"""
    parts = ", ".join(f"{name} {value:.2f}" for name, value in judgement.items() if name != "probability")
    said = f"the passages answer with probability {judgement.get('probability', 0.0):.2f}"
    return f"{said}: {parts}" if parts else said


def _lacking(answer: Answer) -> str:
    if not answer.citations and not answer.nearest:
        return "memory has nothing on the topic"
    if answer.model != OFFLINE and not answer.citations:
        return "the answer cites none of the passages"
    if answer.citations and all(citation.verified is False for citation in answer.citations):
        return "the cited passages do not contain the quotations"
    if answer.unsupported:
        facts = ", ".join(fact for found in answer.unsupported for fact in found.facts)
        return f"the passages do not contain {facts}"
    if answer.missing:
        return f"the passages do not mention {', '.join(answer.missing)}"
    return "no passage clearly holds what is asked"


def _times(turn: Turn) -> str:
    """`retrieval 12 ms, first token 0.8 s, total 2.1 s`; without a model, there are no tokens."""
    names = [name for name in turn.timings if turn.answer.model != OFFLINE or name != "first_token"]
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


def _passages(answer: Answer) -> str:
    used = sum(candidate.used for candidate in answer.candidates)
    text = f"{used} of {len(answer.candidates)} used"
    return f"{text}, about {answer.passages_tokens:,} tokens" if answer.passages_tokens else text


def _history(turn: Turn) -> str:
    turns = counted(turn.trace.history_turns, "earlier turn")
    dropped = turn.answer.dropped_turns
    return f"{turns}; {dropped} left out, the budget was full" if dropped else turns


def _tokens(answer: Answer) -> str:
    prompt, completion = answer.usage.best
    if not answer.usage.is_reported:
        return f"prompt about {prompt:,}, answer about {completion:,} (the server reported none)"
    return f"prompt {prompt:,} (our estimate {answer.prompt_tokens:,}), answer {completion:,}"


def _line(name: str, value: str) -> Text:
    return Text.assemble((f"{name}: ", "name"), one_line(value))
