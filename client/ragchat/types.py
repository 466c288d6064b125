"""The plain shapes of a conversation: hits, citations, turns, sessions, and the events of a turn.

No behaviour beyond the JSON of a turn, no I/O. Everything here can be saved as JSON by msgspec.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct, field

OFFLINE = "offline"

# Ends a model's answer when memory held nothing relevant: the answer has to say so, and a model may not.
NOT_GROUNDED = (
    "*Nothing in memory is relevant to this question; this answer does not rest on your documents.*"
)

Message = dict[str, Any]  # one message of the chat-completions API


class Hit(Struct, frozen=True):
    """One found chunk, as it comes over the wire. `score` is in [0, 1], comparable between questions."""

    rank: int  # from 1
    score: float
    chunk_id: int
    document_id: str
    uri: str
    title: str
    heading: str
    start_line: int  # 1-based
    end_line: int  # inclusive
    text: str
    metadata: dict[str, Any] = field(default_factory=dict)


class Citation(Struct, frozen=True):
    """One use of passage `n` in an answer; a passage quoted twice gives two.

    `quote` is what the answer quotes from it, "" where it only refers to it. `verified` is false when the
    quotation does not stand in the passage.
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
    verified: bool

    @classmethod
    def of(cls, n: int, hit: Hit, quote: str, verified: bool = True) -> Citation:
        """A citation of the passage `hit`, which has the number `n`."""
        return cls(
            n=n,
            chunk_id=hit.chunk_id,
            document_id=hit.document_id,
            uri=hit.uri,
            title=hit.title,
            heading=hit.heading,
            start_line=hit.start_line,
            end_line=hit.end_line,
            quote=quote,
            verified=verified,
        )


class Usage(Struct, frozen=True):
    """Tokens as the model's server counts them, summed over the rounds of a turn."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0  # of the prompt, where the server says

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
        )


class Candidate(Struct, frozen=True):
    """One passage that was found for a question, and what became of it."""

    hit: Hit
    used: bool
    reason: str  # why it was used or not
    n: int = 0  # its number in the prompt; 0: not in it


class Answer(Struct, frozen=True):
    """An answer and how it was made, by a model or offline."""

    text: str
    citations: list[Citation]
    candidates: list[Candidate]
    model: str = OFFLINE
    usage: Usage = Usage()
    passages_tokens: int = 0  # our estimate
    prompt_tokens: int = 0  # our estimate, for the first request
    dropped_turns: int = 0  # of the history, because the budget was full
    unknown_citations: list[int] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)


class Trace(Struct, frozen=True):
    """How an answer came about, for /why. Token counts are our own estimates."""

    query: str = ""  # what memory was asked; not always the question
    candidates: list[Candidate] = field(default_factory=list)
    passages_tokens: int = 0
    history_turns: int = 0
    dropped_turns: int = 0
    prompt_tokens: int = 0
    unknown_citations: list[int] = field(default_factory=list)  # [n] of the answer that name no passage
    notices: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)  # as sent, tool rounds included; empty offline


class Turn(Struct, frozen=True):
    """One question and its answer.

    `grounded`: memory held at least one relevant passage and it was given to the model, or quoted.
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

    def public(self) -> dict[str, Any]:
        """The shape of `ragchat ask --json`."""
        return {
            "question": self.question,
            "answer": self.answer,
            "grounded": self.grounded,
            "citations": msgspec.to_builtins(self.citations),
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
    """A conversation. It stands in the store once it has a turn."""

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
    """A tool that the model asks for. `arguments` is JSON text, as the model wrote it."""

    id: str
    name: str
    arguments: str


# The events of a turn, in the order in which they can come; Notice at any time.


class Retrieving(Struct, frozen=True):
    """Memory is being asked."""

    query: str


class Retrieved(Struct, frozen=True):
    """Memory has answered (with an empty list when it is down or has nothing)."""

    candidates: list[Candidate]


class Delta(Struct, frozen=True):
    """The next piece of the answer."""

    text: str


class ToolStarted(Struct, frozen=True):
    name: str
    arguments: dict[str, Any]


class ToolFinished(Struct, frozen=True):
    name: str
    ok: bool
    summary: str  # one line


class Notice(Struct, frozen=True):
    """Something the user should know: one sentence."""

    text: str


Event = Retrieving | Retrieved | Delta | ToolStarted | ToolFinished | Notice
Emit = Callable[[Event], None]


def ignore(event: Event) -> None:
    """An `Emit` for callers that need only the finished turn."""
