"""The same question with other settings or models: what differs from the answer then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from ragchat.errors import NotRepeatable
from ragchat.grounding.facts import lacking
from ragchat.uris import passage_location

if TYPE_CHECKING:
    from ragchat.conversation import Conversation
    from ragchat.grounding.types import Citation
    from ragchat.sessions.types import Session
    from ragchat.settings import Price
    from ragchat.turn.events import Emit
    from ragchat.turn.types import Turn


class Replayed(Struct, frozen=True):
    """An answer, and what it cites, says and costs; of a new answer also what differs from the one before.

    Token counts are estimates unless they are `reported`. `cost` is None without a price of the model.
    """

    model: str
    answer: str
    grounded: bool
    citations: list[str]  # as they are shown
    prompt_tokens: int
    answer_tokens: int
    reported: bool
    seconds: float
    cost: float | None
    facts_gone: list[str] = []
    facts_new: list[str] = []
    citations_gone: list[str] = []
    citations_new: list[str] = []


async def ask_again(conversation: Conversation, session: Session, model: str, emit: Emit) -> Turn:
    """Ask the last question of a session again, which is not changed; `model` as for `ModelSelection.select`.

    Raises NotRepeatable, and what `Conversation.retry` raises.
    """
    turns = session.turns
    if turns[-1].trace.is_report:
        raise NotRepeatable(turns[-1].turn_id)
    if model != conversation.model.selected:
        await conversation.model.select(model)
    conversation.session = session
    try:
        return await conversation.retry(emit, answered=True)
    finally:
        session.turns = turns


def replayed(turn: Turn, prices: Mapping[str, Price], before: Turn | None = None) -> Replayed:
    """What is compared of a turn; with the turn `before`, also the differences."""
    answer, text, cited = turn.answer, _said(turn), turn.answer.sources
    prompt, completion = answer.usage.best
    price = prices.get(answer.model)
    then, text_then = (before.answer.sources, _said(before)) if before else (cited, text)
    return Replayed(
        model=answer.model,
        answer=answer.text,
        grounded=answer.grounded,
        citations=_places(cited),
        prompt_tokens=prompt,
        answer_tokens=completion,
        reported=answer.usage.is_reported,
        seconds=turn.timings.get("total", 0.0),  # a turn of a shared notebook may lack it
        cost=(prompt * price.prompt + completion * price.answer) / 1e6 if price else None,
        facts_gone=lacking(text_then, text, turn.question),
        facts_new=lacking(text, text_then, turn.question),
        citations_gone=_places([one for one in then if not any(_overlap(one, other) for other in cited)]),
        citations_new=_places([one for one in cited if not any(_overlap(one, other) for other in then)]),
    )


def _said(turn: Turn) -> str:
    """The text of an answer, without the places and headings of its cards."""
    return "\n".join(card.text for card in turn.answer.cards) or turn.answer.text


def _places(cited: Sequence[Citation]) -> list[str]:
    return list(dict.fromkeys(map(passage_location, cited)))


def _overlap(one: Citation, other: Citation) -> bool:
    """Whether two citations have lines in common: a model cites a passage, a card some lines of it."""
    (start, end), (first, last) = one.cited_lines, other.cited_lines
    return one.uri == other.uri and start <= last and first <= end
