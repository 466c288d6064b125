"""/why: the passages found and used, the tokens, the times and the judgement of the last answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import UNSET
from rich.table import Table
from rich.text import Text

from ragchat.sanitize import one_line
from ragchat.turn.grounding import ON_TOPIC_SCORE
from ragchat.turn.why import answered, searched
from ragchat.uris import passage_location

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ragchat.answer import Candidate
    from ragchat.turn.types import Turn
    from ragcommon.contract.search import Hit


def why(turn: Turn, *, is_narrow: bool = False) -> Iterator[RenderableType]:
    """The trace of a turn, in the order in which things happened.

    `is_narrow`: the reasons are below their places.
    """
    for name, value in searched(turn):
        yield _line(name, value)
    if turn.answer.candidates:
        on_topic = [one for one in turn.answer.candidates if one.used or one.hit.score >= ON_TOPIC_SCORE]
        yield Text()
        if on_topic:
            yield _candidates(on_topic, is_narrow=is_narrow)
        if others := len(turn.answer.candidates) - len(on_topic):
            yield Text(f"{'and ' if on_topic else ''}{others:,} more with the score 0.00", "dim")
        yield Text()
    for name, value in answered(turn):
        yield _line(name, value)


def _candidates(candidates: list[Candidate], *, is_narrow: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="heading")
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    is_reranked = any(candidate.hit.rerank_score is not UNSET for candidate in candidates)
    if is_reranked:
        table.add_column("reranked", justify="right", no_wrap=True)
    table.add_column("passage", overflow="fold")
    if not is_narrow:
        table.add_column("used", overflow="fold")
    for candidate in candidates:
        hit = candidate.hit
        where = Text(passage_location(hit))
        if hit.heading:
            where.append(f"  {one_line(hit.heading, 40)}", "heading")
        used = Text.assemble(("yes: " if candidate.used else "no: "), (one_line(candidate.reason), "heading"))
        table.add_row(
            Text(f"[{candidate.n}]" if candidate.n else "", "citation"),
            f"{hit.score:.2f}",
            *([_rerank_score(hit)] if is_reranked else []),
            *([Text("\n").join([where, used])] if is_narrow else [where, used]),
            style="" if candidate.used else "dim",
        )
    return table


def _rerank_score(hit: Hit) -> str:
    return f"{hit.rerank_score:.2f}" if isinstance(hit.rerank_score, float) else ""


def _line(name: str, value: str) -> Text:
    return Text.assemble((f"{name}: ", "name"), one_line(value))
