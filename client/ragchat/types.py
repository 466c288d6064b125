"""The data types of a conversation: citations, turns, sessions, and the events of a turn. Pure.

msgspec encodes all of them as JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ragchat.quotes import quoted_lines
from ragcommon.contract.search import Hit
from ragcommon.text.places import Place, file_name, location, with_cell

OFFLINE = "offline"

# Appended to a model's answer if memory had nothing relevant: models do not reliably say so. Stored sessions
# contain this sentence, and prompts leave it out: do not change it.
NOT_GROUNDED = (
    "*Nothing in memory is relevant to this question; this answer does not rest on your documents.*"
)

# Levels of the arguments of a tool: what is shown, sent and stored of them is written recursively.
DEEPEST = 100

Message = dict[str, Any]  # one message of the chat-completions API


class Citation(Struct, frozen=True):
    """A reference of an answer to passage `n`. A passage that is quoted twice has two.

    `quote` is what the answer quotes from it, "" if it quotes nothing. `verified` says whether the passage
    contains the quotation, None if there is none. The lines of the quotation are None if it was not found.
    `location` is the place of the quotation, else of the passage; `places` are those of the passage's lines.
    """

    n: int
    chunk_id: int
    document_id: str
    uri: str
    title: str
    heading: str
    start_line: int
    end_line: int
    quote: str
    verified: bool | None
    quote_start_line: int | None = None
    quote_end_line: int | None = None
    location: str = ""
    places: list[Place] = field(default_factory=list)

    @property
    def cited_lines(self) -> tuple[int, int]:
        """The lines of the quotation, else those of the passage."""
        if self.quote_start_line is not None and self.quote_end_line is not None:
            return self.quote_start_line, self.quote_end_line
        return self.start_line, self.end_line

    @classmethod
    def of(
        cls, n: int, hit: Hit, quote: str, verified: bool = True, lines: tuple[int, int] | None = None
    ) -> Citation:
        """A citation of the passage `hit`, which has the number `n`; without `lines`, they are searched."""
        if quote and lines is None:
            lines = quoted_lines(quote, hit.text, hit.start_line)
        first, last = lines or (None, None)
        places = hit.places
        if first is not None and first == last:
            row = hit.text.split("\n")[first - hit.start_line : first - hit.start_line + 1]
            places = with_cell(places, first, "".join(row), quote.strip())
        return cls(
            n=n,
            chunk_id=hit.chunk_id,
            document_id=hit.document_id,
            uri=hit.uri,
            title=hit.title,
            heading=hit.heading if first is None else hit.heading_at(first),
            start_line=hit.start_line,
            end_line=hit.end_line,
            quote=quote,
            verified=verified if quote else None,
            quote_start_line=first,
            quote_end_line=last,
            location=location(
                file_name(hit.uri, hit.title), [lines or (hit.start_line, hit.end_line)], places
            ),
            places=places,
        )


class Card(Struct, frozen=True):
    """A part of a document that an answer without a model shows, as it was written.

    `best` is where what answers most likely begins and ends in `text`, in characters. `score` orders the
    cards of an answer. `chunk_id` is that of the best passage in it.
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
        """`heading` as it is shown: `Setup › Ports`."""
        return self.heading.replace(" > ", " › ")


class Unsupported(Struct, frozen=True):
    """Numbers, dates, names and identifiers of a sentence that none of the passages it cites contains."""

    facts: list[str]
    passages: list[int]  # by their numbers


class Usage(Struct, frozen=True):
    """Tokens as counted by the model's server, summed over the requests of a turn.

    None: the server did not report them. The estimates are ours, whether it did or not.
    """

    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    cached_tokens: int | None = 0  # of the prompt
    estimated_prompt_tokens: int = 0
    estimated_completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            _sum(self.prompt_tokens, other.prompt_tokens),
            _sum(self.completion_tokens, other.completion_tokens),
            _sum(self.cached_tokens, other.cached_tokens),
            self.estimated_prompt_tokens + other.estimated_prompt_tokens,
            self.estimated_completion_tokens + other.estimated_completion_tokens,
        )

    @property
    def is_reported(self) -> bool:
        return self.prompt_tokens is not None and self.completion_tokens is not None

    @property
    def best(self) -> tuple[int, int]:
        """The tokens of the prompts and of the answers: as reported, else as estimated."""
        prompt, completion = self.prompt_tokens, self.completion_tokens
        return (
            self.estimated_prompt_tokens if prompt is None else prompt,
            self.estimated_completion_tokens if completion is None else completion,
        )


NOT_REPORTED = Usage(None, None, None)


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


class Candidate(Struct, frozen=True):
    """A passage that was found for a question, and whether the prompt or the answer has it."""

    hit: Hit
    used: bool
    reason: str  # why it was used or not
    n: int = 0  # its number in the prompt or the offline answer; 0: it is not used


class Further(Struct, frozen=True):
    """Cards that /more shows, with their citations."""

    cards: list[Card]
    citations: list[Citation]


class Answer(Struct, frozen=True):
    """An answer and how it was made, by a model or offline.

    `nearest` are passages on the topic, where none holds what is asked for. `missing` are the words of the
    question that neither the quoted text nor its headings hold.
    """

    text: str
    citations: list[Citation]
    candidates: list[Candidate]
    grounded: bool
    nearest: list[Citation] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    model: str = OFFLINE
    usage: Usage = Usage()
    passages_tokens: int = 0  # our estimate
    prompt_tokens: int = 0  # our estimate, for the first request
    dropped_turns: int = 0  # of the history, because the budget was full
    unknown_citations: list[int] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    wordings: list[str] = field(default_factory=list)  # other ones of the query, by the model
    unsupported: list[Unsupported] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)  # see `Trace`
    cards: list[Card] = field(default_factory=list)  # without a model
    further: Further | None = None  # what /more shows
    judgement: dict[str, float] = field(default_factory=dict)  # see `Trace`


class Trace(Struct, frozen=True):
    """How an answer was made, for /why. Token counts are our estimates."""

    query: str = ""  # to memory; for a follow-up more than the question
    candidates: list[Candidate] = field(default_factory=list)
    passages_tokens: int = 0
    history_turns: int = 0
    dropped_turns: int = 0
    prompt_tokens: int = 0
    unknown_citations: list[int] = field(default_factory=list)  # [n] of the answer that name no passage
    notices: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)  # as sent, tool rounds included; empty offline
    wordings: list[str] = field(default_factory=list)  # other ones of the query, by the model
    foreign: list[str] = field(default_factory=list)  # what the model read that is not the user's own
    images: int = 0  # attached to the question; they are not saved
    is_report: bool = False  # the answer is the report of a research
    further: Further | None = None  # what /more shows
    judgement: dict[str, float] = field(default_factory=dict)  # see `grounding.judging`


class Turn(Struct, frozen=True):
    """One question and its answer.

    `grounded`: the quoted text holds what the question asks for. `nearest` and `missing`: see `Answer`.
    `timings` are seconds: `retrieval`, `first_token` (of the model), `total`.
    """

    turn_id: str
    session_id: str
    question: str
    answer: str
    grounded: bool
    citations: list[Citation]
    model: str
    usage: Usage
    timings: dict[str, float]
    created_at: str  # ISO 8601, UTC
    trace: Trace
    nearest: list[Citation] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    corrections: dict[str, str] = field(default_factory=dict)  # of misspelt words of the question
    unsupported: list[Unsupported] = field(default_factory=list)
    cards: list[Card] = field(default_factory=list)  # without a model

    @property
    def sources(self) -> list[Citation]:
        """The passages that the answer shows: the cited ones; without a model also the nearest."""
        return [*self.citations, *(self.nearest if self.model == OFFLINE else [])]

    def with_further(self) -> Turn:
        """The turn as if it had shown all of its cards at once."""
        further = self.trace.further or Further([], [])
        places = [*self.sources, *further.citations]
        numbers = {citation.chunk_id: citation.n for citation in further.citations}
        candidates = [
            replace(one, used=True, n=numbers[one.hit.chunk_id]) if one.hit.chunk_id in numbers else one
            for one in self.trace.candidates
        ]
        return replace(
            self,
            cards=[*self.cards, *further.cards],
            citations=places if self.grounded else [],
            nearest=[] if self.grounded else places,
            trace=replace(self.trace, candidates=candidates, further=None),
        )

    def public(self) -> dict[str, Any]:
        """The JSON of `ragchat ask --json`."""
        return {
            "question": self.question,
            "answer": self.answer,
            "grounded": self.grounded,
            "citations": msgspec.to_builtins(self.citations),
            "nearest": msgspec.to_builtins(self.nearest),
            "missing": self.missing,
            "corrections": self.corrections,
            "unsupported": msgspec.to_builtins(self.unsupported),
            "cards": msgspec.to_builtins(self.cards),
            "model": self.model,
            "usage": msgspec.to_builtins(self.usage),
            "timings": self.timings,
            "session_id": self.session_id,
            "turn_id": self.turn_id,
            "unknown_citations": self.trace.unknown_citations,
        }


class SessionInfo(Struct, frozen=True):
    """One line of the list of sessions. Times are ISO 8601, UTC."""

    session_id: str
    title: str  # the first question, shortened
    created_at: str
    updated_at: str
    turns: int


class Session(Struct):
    """A conversation. It is stored with its first turn."""

    session_id: str
    title: str = ""
    created_at: str = ""
    turns: list[Turn] = field(default_factory=list)


class SessionMatch(Struct, frozen=True):
    """One turn found by a full-text search over past sessions."""

    session_id: str
    turn_id: str
    title: str
    question: str
    snippet: str
    created_at: str


class ModelPlace(Struct, frozen=True):
    """A model's name, and the endpoint that serves it."""

    name: str
    base_url: str
    key: str = ""

    def __repr__(self) -> str:  # never the key
        return f"ModelPlace({self.name!r}, {self.base_url!r})"


class ToolRequest(Struct, frozen=True):
    """A tool call that the model requests. `arguments` is JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str

    def decoded(self) -> dict[str, Any]:
        """The arguments; none for an empty text. Raises ValueError as `decode_arguments`."""
        return decode_arguments(self.arguments or "{}")

    @property
    def is_readable(self) -> bool:
        """Whether the arguments are a JSON object."""
        try:
            return bool(self.arguments) and self.decoded() is not None
        except ValueError:
            return False


def decode_arguments(text: str) -> dict[str, Any]:
    """The arguments of a tool. Raises ValueError if they are no JSON object, or nested too deep."""
    too_deep = ValueError(f"more than {DEEPEST} levels are nested")
    try:
        arguments = msgspec.json.decode(text, type=dict[str, Any])
    except RecursionError:
        raise too_deep from None
    level: list[Any] = [arguments]
    for _ in range(DEEPEST):
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [value for values in inner for value in values if isinstance(value, (dict, list))]
        if not level:
            return arguments
    raise too_deep


# The events of a turn, in the order in which they are emitted. Notice comes at any time.


class Rephrasing(Struct, frozen=True):
    """The model is about to be asked to put the question in other words."""


class Retrieving(Struct, frozen=True):
    """Memory is about to be queried."""

    query: str


class Retrieved(Struct, frozen=True):
    """Memory has answered. Without candidates: it is down, or has found nothing."""

    candidates: list[Candidate]


class Delta(Struct, frozen=True):
    """The next piece of the answer."""

    text: str


class Shown(Struct, frozen=True):
    """An answer in cards."""

    answer: Answer


class Reasoning(Struct, frozen=True):
    """The next piece of what the model thinks before it answers."""

    text: str


class ToolStarted(Struct, frozen=True):
    name: str
    arguments: dict[str, Any]


class ToolFinished(Struct, frozen=True):
    name: str
    ok: bool
    summary: str  # one line


class Notice(Struct, frozen=True):
    """A sentence that the user should see."""

    text: str


Event = Rephrasing | Retrieving | Retrieved | Reasoning | Delta | Shown | ToolStarted | ToolFinished | Notice
Emit = Callable[[Event], None]


def ignore(event: Event) -> None:
    """An `Emit` for callers that need only the finished turn."""
