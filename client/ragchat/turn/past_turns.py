"""Past turns as messages of the prompt. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragchat.grounding.citations import MARKER
from ragchat.llm import tokens
from ragchat.llm.types import Message
from ragchat.turn.types import Turn

# Appended to a model's answer if memory had nothing relevant, or did not answer: models do not reliably say
# so. Stored sessions contain these sentences, and prompts leave them out: do not change them.
NOT_GROUNDED = (
    "*Nothing in memory is relevant to this question; this answer does not rest on your documents.*"
)
NOT_SEARCHED = "*Memory did not answer; this answer does not rest on your documents.*"
_MARKERS = re.compile(rf"\s?{MARKER.pattern}")


def history_messages(turns: Sequence[Turn]) -> list[Message]:
    """Questions and answers as messages of the API, oldest first."""
    messages: list[Message] = []
    for turn in turns:
        messages.append({"role": "user", "content": turn.question})
        messages.append({"role": "assistant", "content": bare_answer(turn)})
    return messages


def bare_answer(turn: Turn) -> str:
    """The answer without our own last line and markers [n], whose numbers are valid in its own turn only."""
    text = turn.answer.text.removesuffix(NOT_GROUNDED).removesuffix(NOT_SEARCHED)
    return _MARKERS.sub("", text).strip()


def turn_tokens(turn: Turn) -> int:
    """An upper estimate of the tokens that a past turn takes of the prompt."""
    return tokens.prompt_at_most(history_messages([turn]))


def newest_that_fit(turns: Sequence[Turn], budget: int) -> list[Turn]:
    """The most recent turns that fit into `budget` tokens, oldest first."""
    kept = 0
    for turn in reversed(turns):
        budget -= turn_tokens(turn)
        if budget < 0:
            break
        kept += 1
    return list(turns[len(turns) - kept :])
