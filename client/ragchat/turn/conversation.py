"""The conversation as the model sees it: which past turns fit, and how they read. Pure.

Not the store of sessions, and not the follow-up questions (`followup`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragchat.llm import tokens
from ragchat.turn.citations import MARK
from ragchat.types import NOT_GROUNDED, Message, Turn

_MARKS = re.compile(rf"\s?{MARK.pattern}")


def history_messages(turns: Sequence[Turn]) -> list[Message]:
    """Questions and answers as messages of the API, oldest first.

    The marks [n] are taken out of old answers: the passages they named are not in this prompt, and their
    numbers now name others. So is what we ourselves added to an answer.
    """
    messages: list[Message] = []
    for turn in turns:
        messages.append({"role": "user", "content": turn.question})
        answer = _MARKS.sub("", turn.answer.removesuffix(NOT_GROUNDED)).strip()
        messages.append({"role": "assistant", "content": answer})
    return messages


def turn_tokens(turn: Turn) -> int:
    """An upper estimate of what a past turn takes of the prompt."""
    return tokens.prompt_at_most(history_messages([turn]))


def newest_that_fit(turns: Sequence[Turn], budget: int) -> list[Turn]:
    """The newest turns, without a gap, whose tokens are within the budget; oldest first."""
    kept = 0
    for turn in reversed(turns):
        budget -= turn_tokens(turn)
        if budget < 0:
            break
        kept += 1
    return list(turns[len(turns) - kept :])
