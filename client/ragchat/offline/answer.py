"""The answer without a model, in Markdown and as data. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ragchat.answer import Answer, Candidate, Card, Further
from ragchat.formatting import listed
from ragchat.grounding.judging import Closeness, Judgement
from ragchat.offline.cards import make_cards
from ragchat.offline.windows import Window
from ragcommon.text.rules import FENCE, is_row

NO_MODEL = "No language model is in use: answers are the best parts of your documents."
NEAREST = "No certain answer. The nearest:"
NOTHING = "Nothing in your documents is relevant to this question."
EMPTY_MEMORY = "Memory is empty. Load documents with /inject, or with `ragchat inject PATH`."


def nothing(candidates: Sequence[Candidate], *, empty: bool = False, missing: Sequence[str] = ()) -> Answer:
    unused = [Candidate(candidate.hit, False, candidate.reason) for candidate in candidates]
    return Answer(EMPTY_MEMORY if empty else NOTHING, candidates=unused, missing=list(missing))


def answer_with(
    shown: Sequence[Window], further: Sequence[Window], candidates: Sequence[Candidate], judged: Judgement
) -> Answer:
    """The answer that shows windows as cards, the `further` ones with /more."""
    cards, citations = make_cards(shown)
    more = Further(*make_cards(further, len(cards) + 1))
    grounded, missing = judged.state is Closeness.GROUNDED, judged.missing
    numbers = {citation.chunk_id: citation.n for citation in citations}
    return Answer(
        markdown(cards, grounded=grounded, missing=missing),
        citations if grounded else [],
        [_judged(candidate, numbers) for candidate in _with_shown(candidates, [*shown, *further])],
        grounded=grounded,
        nearest=[] if grounded else citations,
        missing=missing,
        cards=cards,
        judgement=judged.recorded,
        further=more if more.cards else None,
    )


def notes_of(*, grounded: bool, missing: Sequence[str]) -> tuple[str, str]:
    """The lines before and after the cards of an answer; each may be ""."""
    return "" if grounded else NEAREST, f"Not mentioned there: {listed(missing)}" if missing else ""


def markdown(cards: Sequence[Card], *, grounded: bool, missing: Sequence[str]) -> str:
    before, after = notes_of(grounded=grounded, missing=missing)
    return "\n\n".join(filter(None, [before, *map(markdown_of, cards), after]))


def markdown_of(card: Card) -> str:
    return f"{card.first_line}\n\n{quoted(card)}"


def quoted(card: Card) -> str:
    """The text of a card in Markdown; as a code block where Markdown would change it."""
    if card.is_code or any(FENCE.match(line) or is_row(line) for line in card.text.splitlines()):
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", card.text)), default=0))
        return f"{fence}\n{card.text}\n{fence}"
    return block_quote(card.text)


def block_quote(text: str) -> str:
    """A text as a Markdown block quotation with its line breaks."""
    # Two spaces: a line break in Markdown.
    return "  \n".join(f"> {line}".rstrip() for line in text.splitlines())


def _with_shown(candidates: Sequence[Candidate], windows: Sequence[Window]) -> list[Candidate]:
    """The candidates, and the passages of the windows that are not among them."""
    found = {candidate.hit.chunk_id for candidate in candidates}
    others = {window.hit.chunk_id: window.hit for window in windows if window.hit.chunk_id not in found}
    return [*candidates, *(Candidate(hit, True, "near by meaning") for hit in others.values())]


def _judged(candidate: Candidate, numbers: Mapping[int, int]) -> Candidate:
    """The candidate as used if it is shown."""
    if not (n := numbers.get(candidate.hit.chunk_id, 0)):
        reason = f"{candidate.reason}, but others come closer" if candidate.used else candidate.reason
        return Candidate(candidate.hit, False, reason)
    reason = "shown" if candidate.used else f"shown, though {candidate.reason}"
    return Candidate(candidate.hit, True, reason, n)
