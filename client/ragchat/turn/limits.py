"""The limits of one turn: passages, tokens, seconds, rounds of tool calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from ragcommon.text.rules import counted


@dataclass(frozen=True)
class RetrievalLimits:
    """The number of passages, the minimum score of a relevant one, and the deadline."""

    top_k: int
    min_score: float  # in [0, 1]
    seconds: float


@dataclass(frozen=True)
class Budget:
    """Tokens: the model's context, the part reserved for the answer, the maximum for passages."""

    context: int
    answer: int
    passages: int

    @classmethod
    def of(cls, context: int, answer: int, passages: int) -> Budget:
        """At most a quarter of the context is reserved."""
        return cls(context, min(answer, context // 4), passages)


@dataclass(frozen=True)
class Reached:
    """A limit that ends the tool calls of a turn: its `setting` for the user, the `reason` for the model."""

    setting: str
    reason: str


@dataclass(frozen=True)
class TurnLimits:
    retrieval: RetrievalLimits
    budget: Budget
    rounds: int  # of tool calls
    tool_seconds: float = inf  # for all tool calls together
    model_seconds: float = inf  # for all requests to the model together
    rewrite_seconds: float = 0.0  # for other wordings of a question from the model; 0: it is not asked

    def within(self, context: int | None) -> TurnLimits:
        """Adapt the limits to a smaller model context; None: it is not known."""
        if context is None or context >= self.budget.context:
            return self
        return replace(self, budget=Budget.of(context, self.budget.answer, self.budget.passages))

    def reached(self, rounds: int, seconds: float, tokens: int) -> Reached | None:
        """The limit that ends tool calls when this many rounds, seconds and tokens are left."""
        if rounds <= 0:
            reason = f"the limit of {counted(self.rounds, 'round')} of calls is reached"
            return Reached(f"tools.rounds = {self.rounds}", reason)
        if seconds <= 0:
            return Reached(f"tools.turn_seconds = {self.tool_seconds:g}", "their time is used up")
        if tokens <= 0:
            context = f"model.context_tokens = {self.budget.context}"
            return Reached(context, "your context has no room for more results")
        return None
