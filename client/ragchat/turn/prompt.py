"""The prompt of a turn: the system prompt, history, quoted passages, the question.

Passages are untrusted: they go into the user's message, never into the system role. Pure except for
`load_prompts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import Struct

from ragchat.errors import PromptUnreadable, UnknownRole
from ragchat.grounding.judging import Closeness
from ragchat.llm import tokens
from ragchat.llm.errors import ContextTooSmall, QuestionTooLong
from ragchat.llm.types import Message
from ragchat.turn.grounding import Grounding
from ragchat.turn.limits import Budget
from ragchat.turn.passages import Passages, number, quote, shortened
from ragchat.turn.past_turns import history_messages, newest_that_fit
from ragchat.turn.types import Turn
from ragcommon.errors import os_reason
from ragcommon.files.safe_open import read_regular
from ragconfig.prompt_files import ROLES, role_files
from ragconfig.settings import MAX_PROMPT_BYTES, Settings, packaged_text

# The missing words that a prompt names at most.
MAX_MISSING = 10
# Tokens: with less room, the question is not what is too long.
SHORT_QUESTION = 20


class PromptSettings(Struct):
    system: str
    passages: str


@dataclass(frozen=True)
class Prompts:
    """The fixed texts of every prompt."""

    system: str
    passages: str  # introduction of the quoted passages
    nearest: str  # appended if they only come close
    missing: str  # appended if they lack {words} of the question
    no_passages: str  # used instead of passages if there are none
    rewrite: str  # system prompt of the request for other wordings of a question
    standalone: str  # system prompt of the request to rewrite a follow-up as a standalone question
    role: str = ""  # follows the system prompt

    @property
    def instructions(self) -> str:
        """What the system role says."""
        return f"{self.system}\n\n{self.role}".strip()


@dataclass(frozen=True)
class Prompt:
    """A prompt that fits the model's context. `dropped_turns` of the history did not fit."""

    messages: list[Message]
    passages: Passages
    dropped_turns: int
    tokens: int  # an upper estimate
    history_room: int = 0  # the tokens that were left for the history


def load_prompts(settings: Settings) -> Prompts:
    """The packaged prompts, or those of the files named in the settings. Raises PromptUnreadable."""
    files = settings.table("prompts", PromptSettings)
    return Prompts(
        system=_read("system", files.system),
        passages=_read("passages", files.passages),
        nearest=packaged_prompt("nearest"),
        missing=packaged_prompt("missing"),
        no_passages=packaged_prompt("no_passages"),
        rewrite=packaged_prompt("rewrite"),
        standalone=packaged_prompt("standalone"),
    )


def instructed(prompts: Prompts, instructions: str) -> Prompts:
    """The prompts with the user's own instructions in the system prompt."""
    if not instructions.strip():
        return prompts
    added = packaged_prompt("notebook").format(instructions=instructions.strip())
    return replace(prompts, system=f"{prompts.system}\n\n{added}")


def _read(name: str, file: str) -> str:
    return text_of(file, f"the setting prompts.{name}") if file else packaged_prompt(name)


def load_role(name: str, settings: Settings) -> str:
    """The text of a role. Raises UnknownRole, PromptUnreadable."""
    path = UnknownRole.look_up(name, role_files(settings.home.config / ROLES))
    return text_of(str(path), f"the role {name}")


def text_of(file: str, check: str) -> str:
    """The text of a file of prompts; `check` says in an error what to check. Raises PromptUnreadable."""
    try:
        return read_regular(Path(file).expanduser(), MAX_PROMPT_BYTES).decode("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise PromptUnreadable(check, file, os_reason(error)) from error
    except RuntimeError as error:  # `~name` of an unknown user
        raise PromptUnreadable(check, file, "there is no such home folder") from error


def packaged_prompt(name: str) -> str:
    """A packaged prompt."""
    return packaged_text(f"prompts/{name}.md").strip()


def build(
    question: str,
    history: Sequence[Turn],
    grounding: Grounding,
    prompts: Prompts,
    budget: Budget,
    *,
    other_tokens: int = 0,
) -> Prompt:
    """The prompt for a question; `other_tokens` are for tools and images.

    Raises QuestionTooLong, and ContextTooSmall if another question would not fit either.

    Passages are added first, best first, then the history, newest turn first. A history gets at least a
    quarter of the room.
    """
    frame = [{"role": "system", "content": prompts.instructions}, {"role": "user", "content": question}]
    introduction = _introduction(grounding, prompts)
    introductions = tokens.at_most(introduction) + tokens.at_most(prompts.no_passages)
    room = budget.context - budget.answer - other_tokens - tokens.prompt_at_most(frame) - introductions
    if room < 0:
        asked = tokens.at_most(question)
        if room + asked < SHORT_QUESTION:
            fixed = budget.context - budget.answer - room - asked
            raise ContextTooSmall(budget.context, budget.answer, fixed)
        raise QuestionTooLong(asked, room + asked)
    for_passages, candidates = room * 3 // 4 if history else room, grounding.candidates
    if grounding.is_attached:
        passages = number(shortened(candidates, for_passages), for_passages)
    else:
        passages = number(candidates, for_passages, budget=budget.passages)
    history_room = max(0, room - passages.tokens)
    kept = newest_that_fit(history, history_room)
    hits = passages.numbered()
    quoted = f"{introduction}\n\n{quote(hits)}" if hits else prompts.no_passages
    messages: list[Message] = [
        {"role": "system", "content": prompts.instructions},
        *history_messages(kept),
        # One message: many chat templates reject two user messages in a row.
        {"role": "user", "content": f"{quoted}\n\n{question}"},
    ]
    size = tokens.prompt_at_most(messages)
    return Prompt(messages, passages, len(history) - len(kept), size, history_room)


def _introduction(grounding: Grounding, prompts: Prompts) -> str:
    """The text before the passages. It contains no untrusted text."""
    missing = grounding.judgement.missing[:MAX_MISSING]
    notes = [
        prompts.passages,
        *([prompts.nearest] if grounding.state is not Closeness.GROUNDED else []),
        *([prompts.missing.format(words=", ".join(missing))] if missing else []),
    ]
    return " ".join(notes)
