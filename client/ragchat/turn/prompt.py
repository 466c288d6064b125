"""What is said to the model: the system prompt, history, quoted passages, the question.

Passages are other people's text. They go into the message of the user, never into the system role; each
stands between marks that carry a random word which occurs in none of them, so that no passage can end its
own quotation. Pure but for `load_prompts`.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

from msgspec import Struct

from ragchat.errors import PromptUnreadable, QuestionTooLong
from ragchat.formatting import names
from ragchat.llm import tokens
from ragchat.turn.conversation import history_messages, newest_that_fit
from ragchat.types import Candidate, Hit, Message, Turn
from ragconfig.regular_files import read_regular
from ragconfig.settings import Settings

# Of a prompt file: far more than any model can hold.
LARGEST_BYTES = 1 << 20


class PromptSettings(Struct):
    system: str
    passages: str


@dataclass(frozen=True)
class Prompts:
    """The texts that we say to every model."""

    system: str
    passages: str  # introduces the quoted passages
    no_passages: str  # stands in their place when there are none


@dataclass(frozen=True)
class Budget:
    """Tokens: what the model holds, what of it stays free for the answer, what passages may take."""

    context: int
    answer: int
    passages: int


@dataclass(frozen=True)
class Prompt:
    """A prompt that fits, and how it was made to."""

    messages: list[Message]
    candidates: list[Candidate]
    history: list[Turn]
    passages_tokens: int

    @property
    def tokens(self) -> int:
        return tokens.prompt_at_most(self.messages)


def load_prompts(settings: Settings) -> Prompts:
    """The packaged texts, or the files named in the settings. Raises PromptUnreadable."""
    files = settings.table("prompts", PromptSettings)
    return Prompts(
        system=_read("system", files.system),
        passages=_read("passages", files.passages),
        no_passages=_read("no_passages", ""),
    )


def _read(name: str, file: str) -> str:
    if not file:
        return resources.files("ragconfig").joinpath(f"{name}.md").read_text(encoding="utf-8").strip()
    try:
        return read_regular(Path(file).expanduser(), LARGEST_BYTES).decode("utf-8-sig").strip()
    except OSError as error:
        raise PromptUnreadable(f"prompts.{name}", file, error.strerror or str(error)) from error
    except RuntimeError as error:  # `~name` of a user that does not exist
        raise PromptUnreadable(f"prompts.{name}", file, "there is no such home folder") from error
    except UnicodeDecodeError as error:
        raise PromptUnreadable(f"prompts.{name}", file, "it is not text in UTF-8") from error


def build(
    question: str,
    history: Sequence[Turn],
    candidates: Sequence[Candidate],
    prompts: Prompts,
    budget: Budget,
    *,
    tools_tokens: int = 0,
) -> Prompt:
    """The prompt for a question. Raises QuestionTooLong.

    Passages come before history, the better ones first; a quarter of the room is kept for history where there
    is any. The oldest turns go first.
    """
    frame = [{"role": "system", "content": prompts.system}, {"role": "user", "content": question}]
    introduction = tokens.at_most(prompts.passages) + tokens.at_most(prompts.no_passages)
    room = budget.context - budget.answer - tools_tokens - tokens.prompt_at_most(frame) - introduction
    if room < 0:
        asked = tokens.at_most(question)
        raise QuestionTooLong(asked, max(0, room + asked))
    for_passages = min(budget.passages, room * 3 // 4 if history else room)
    numbered, passages_tokens = number(candidates, for_passages)
    kept = newest_that_fit(history, room - passages_tokens)
    hits = [(candidate.n, candidate.hit) for candidate in numbered if candidate.used]
    quoted = f"{prompts.passages}\n\n{quote(hits)}" if hits else prompts.no_passages
    messages: list[Message] = [
        {"role": "system", "content": prompts.system},
        *history_messages(kept),
        # One message, as many chat templates refuse two of the user in a row.
        {"role": "user", "content": f"{quoted}\n\n{question}"},
    ]
    return Prompt(messages, numbered, kept, passages_tokens)


def number(candidates: Sequence[Candidate], budget: int, first: int = 1) -> tuple[list[Candidate], int]:
    """Give the usable candidates that fit into the budget their numbers; also the tokens that they take."""
    numbered, taken = [], 0
    for candidate in candidates:
        if candidate.used:
            size = tokens.at_most(quote([(first, candidate.hit)]))
            if taken + size > budget:
                candidate = cut(candidate)
            else:
                candidate = Candidate(candidate.hit, True, candidate.reason, first)
                first += 1
                taken += size
        numbered.append(candidate)
    return numbered, taken


def cut(candidate: Candidate) -> Candidate:
    return Candidate(candidate.hit, False, "cut: no room within the budget for passages")


def quote(hits: Sequence[tuple[int, Hit]]) -> str:
    """Numbered passages between marks that their text cannot forge."""
    mark = _mark("".join(hit.text + hit.title + hit.heading + hit.uri for _, hit in hits))
    return "\n\n".join(
        f"<passage {n} {mark} from {_source(hit)}>\n{hit.text.strip()}\n</passage {n} {mark}>"
        for n, hit in hits
    )


def _mark(text: str) -> str:
    while (mark := secrets.token_hex(4)) in text:
        pass
    return mark


def _source(hit: Hit) -> str:
    """Title, heading path and place on one line."""
    place = f"{hit.uri}:{hit.start_line}" if not hit.uri.startswith("sha256:") else ""
    return " ".join(" > ".join(names(hit.title, hit.heading)).split() + ([f"({place})"] if place else []))


def with_system(prompts: Prompts, system: str) -> Prompts:
    """The same prompts with another system prompt."""
    return replace(prompts, system=system)
