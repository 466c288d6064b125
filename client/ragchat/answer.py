"""An answer, the passages it was made from, and the cards it shows. Pure."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter

from msgspec import Struct, field
from msgspec.structs import replace

from ragchat.grounding.types import Citation, Unsupported
from ragchat.llm.types import OFFLINE, Message, Usage
from ragcommon.contract.search import Hit
from ragcommon.text.places import short_path


class Candidate(Struct, frozen=True):
    """A passage that was found for a question, and whether the prompt or the answer has it."""

    hit: Hit
    used: bool
    reason: str  # why it was used or not
    n: int = 0  # its number in the prompt or the offline answer; 0: not used


class Card(Struct, frozen=True):
    """A part of a document, verbatim, that an answer without a model shows.

    `best` is the range of `text`, in characters, that most likely holds the answer. `score` orders the cards
    of an answer. `chunk_id` is that of the best passage in the card.
    """

    n: int  # from 1
    location: str  # such as "thesis.pdf p. 12" or "notes.md:3–5"
    heading: str
    text: str
    best: tuple[int, int]
    score: float
    chunk_id: int
    is_code: bool = False

    @property
    def headings(self) -> str:
        """`heading` as it is shown: `Setup › Ports`; "" if the location has it."""
        return "" if short_path(self.heading) in self.location else self.heading.replace(" > ", " › ")

    @property
    def first_line(self) -> str:
        """What is above its text: `[1] notes.md:3–5  Setup › Ports`."""
        return f"[{self.n}] {self.location}" + (f"  {self.headings}" if self.headings else "")


class Further(Struct, frozen=True):
    """Cards that /more shows, with their citations."""

    cards: list[Card]
    citations: list[Citation]


class Answer(Struct, frozen=True):
    """An answer and how it was made, by a model or offline. Token counts are our estimates.

    `grounded`: the quoted text holds what the question asks for. `nearest` are passages on the topic, where
    none holds it. `missing` are the words of the question that neither the quoted text nor its headings hold.
    """

    text: str
    citations: list[Citation] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    grounded: bool = False
    nearest: list[Citation] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    model: str = OFFLINE
    usage: Usage = Usage()
    passages_tokens: int = 0
    prompt_tokens: int = 0  # of the first request
    dropped_turns: int = 0  # of the history, because the budget was full
    unknown_citations: list[int] = field(default_factory=list)  # [n] of the answer that name no passage
    messages: list[Message] = field(default_factory=list)  # as sent, tool rounds included; empty offline
    wordings: list[str] = field(default_factory=list)  # rephrasings of the query, by the model
    unsupported: list[Unsupported] = field(default_factory=list)
    # Texts the model read that are not the user's own. Saved turns use the older name.
    untrusted: list[str] = field(default_factory=list, name="foreign")
    cards: list[Card] = field(default_factory=list)  # without a model
    further: Further | None = None  # what /more shows
    judgement: dict[str, float] = field(default_factory=dict)  # see `grounding.judging`
    cut_off: str = ""  # why the text is incomplete

    @property
    def sources(self) -> list[Citation]:
        """The passages that the answer shows: the cited ones; without a model also the nearest."""
        return [*self.citations, *(self.nearest if self.model == OFFLINE else [])]

    @property
    def has_content(self) -> bool:
        """Whether it says anything: without a model, it may be a sentence about memory, or a greeting."""
        return self.model != OFFLINE or self.grounded or bool(self.sources)

    @property
    def cited(self) -> list[list[Citation]]:
        """The `sources` of each passage, by its number."""
        by_number = attrgetter("n")
        return [[*same] for _, same in groupby(sorted(self.sources, key=by_number), by_number)]

    def with_further(self, count: int | None = None) -> Answer:
        """The answer as if it had shown `count` more of its cards at once; None: all of them."""
        further = self.further or Further([], [])
        cards = further.cards[:count]
        rest = further.cards[len(cards) :]
        left = {card.n for card in rest}
        shown = [citation for citation in further.citations if citation.n not in left]
        citations = [*self.sources, *shown]
        numbers = {citation.chunk_id: citation.n for citation in shown}
        candidates = [
            replace(one, used=True, n=numbers[one.hit.chunk_id], reason="shown as a further card")
            if one.hit.chunk_id in numbers
            else one
            for one in self.candidates
        ]
        return replace(
            self,
            cards=[*self.cards, *cards],
            citations=citations if self.grounded else [],
            nearest=[] if self.grounded else citations,
            candidates=candidates,
            further=Further(rest, [one for one in further.citations if one.n in left]) if rest else None,
        )
