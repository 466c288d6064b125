"""What one turn may take: passages, tokens, seconds, rounds of tool calls."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class RetrievalLimits:
    """How many passages memory is asked for, the score from which one is relevant, and the deadline."""

    top_k: int
    min_score: float  # in [0, 1]
    seconds: float


@dataclass(frozen=True)
class Budget:
    """Tokens: the model's context, the part of it kept free for the answer, the most for passages."""

    context: int
    answer: int
    passages: int


@dataclass(frozen=True)
class TurnLimits:
    retrieval: RetrievalLimits
    budget: Budget
    rounds: int  # of tool calls
    tool_seconds: float = inf  # for all tool calls together
    rewrite_seconds: float = 0.0  # for other wordings of a question from the model; 0: it is not asked
