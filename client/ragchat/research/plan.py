"""Splits a question into sub-questions, by a model or by its punctuation."""

from __future__ import annotations

import re

from msgspec import Struct, field

from ragchat.llm.client import Model
from ragchat.research.requests import ask_json
from ragchat.research.state import SubQuestion
from ragchat.sanitize import one_line
from ragchat.turn.events import Emit, Notice

MAX_WORDINGS = 3
MAX_CHARACTERS = 300  # of a sub-question or a wording
# The boundary between questions: a question mark, a semicolon, or "and" before a question word.
_PARTS = re.compile(
    r"(?<=[?;])\s+|\s+(?:and|und|et|y)\s+(?=(?:what|when|where|which|who|why|how|was|wann|wo|wer|warum|wie|welche[rs]?)\b)",
    re.IGNORECASE,
)


class _Part(Struct):
    question: str
    wordings: list[str] = field(default_factory=list)


class _Plan(Struct):
    questions: list[_Part]


async def plan(question: str, model: Model, prompt: str, most: int, emit: Emit) -> list[SubQuestion]:
    """At most `most` sub-questions; the question itself if the model does not plan.

    Raises ModelError, TokensUsedUp.
    """
    messages = [
        {"role": "system", "content": prompt.replace("{most}", str(most))},
        {"role": "user", "content": question},
    ]
    planned = await ask_json(model, messages, _Plan)
    if planned is None:
        emit(Notice("The model's plan could not be read: the question is searched for as it was asked."))
    found: dict[str, SubQuestion] = {}
    for part in planned.questions if planned else ():
        if text := one_line(part.question, MAX_CHARACTERS):
            wordings = [one_line(wording, MAX_CHARACTERS) for wording in part.wordings[:MAX_WORDINGS]]
            found.setdefault(text.casefold(), SubQuestion(text, [*filter(None, wordings)]))
    return [*found.values()][:most] or [SubQuestion(question)]


def parts(question: str, most: int) -> list[SubQuestion]:
    """The question, and its parts if there are several."""
    pieces = [piece.strip(" ;") for piece in _PARTS.split(question)]
    several = [piece for piece in pieces if piece] if len(pieces) > 1 else []
    return [SubQuestion(text) for text in dict.fromkeys([question, *several])][:most]
