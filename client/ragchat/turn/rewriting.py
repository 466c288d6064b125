"""Other wordings of a question, from a model, to search again where the passages found only come close."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import anyio
from msgspec import Struct

from ragchat.llm import tokens
from ragchat.llm.client import Model, ignore_text
from ragchat.llm.errors import ModelError
from ragchat.sanitize import one_line
from ragchat.turn.limits import RetrievalLimits
from ragchat.turn.retrieval import Memory, Retrieval, retrieve
from ragchat.types import Candidate, Message, Usage

MAX_WORDINGS = 3
WORDING_CHARACTERS = 200
# What models put around the lines of a list.
_MARK = re.compile(r"^(?:[-*•]|\d+[.):])\s+")


class Rewriting(Struct, frozen=True):
    """`wordings` that were searched for, the `usage` of the request, and why there was no answer."""

    wordings: Sequence[str] = ()
    usage: Usage = Usage()
    failure: str = ""


async def rewrite(query: str, model: Model, prompt: str, seconds: float) -> Rewriting:
    """Ask a model for other wordings. Raises nothing: the turn goes on without them."""
    messages: list[Message] = [{"role": "system", "content": prompt}, {"role": "user", "content": query}]
    try:
        with anyio.fail_after(seconds):
            completion = await model.complete(messages, on_text=ignore_text)
    except TimeoutError:
        return Rewriting(failure=f"{model.name} gave no other wordings within {seconds:g} s.")
    except ModelError as error:
        return Rewriting(failure=f"{model.name} gave no other wordings. {error}")
    estimate = Usage(
        estimated_prompt_tokens=tokens.about(messages),
        estimated_completion_tokens=tokens.about([{"role": "assistant", "content": completion.text}]),
    )
    return Rewriting(_wordings(completion.text, query), completion.usage + estimate)


async def search_again(
    memory: Memory, retrieval: Retrieval, wordings: Sequence[str], limits: RetrievalLimits
) -> Retrieval:
    """Search for each wording, and merge what is found: each passage once, with its best score."""
    found: list[Retrieval] = []

    async def search(wording: str) -> None:
        found.append(await retrieve(memory, wording, limits))

    async with anyio.create_task_group() as group:
        for wording in wordings:
            group.start_soon(search, wording)
    best: dict[int, Candidate] = {}
    for candidate in (candidate for one in [retrieval, *found] for candidate in one.candidates):
        known = best.get(candidate.hit.chunk_id)
        if known is None or candidate.hit.score > known.hit.score:
            best[candidate.hit.chunk_id] = candidate
    ranked = sorted(best.values(), key=lambda candidate: -candidate.hit.score)
    return replace(retrieval, candidates=ranked[: limits.top_k])


def _wordings(text: str, query: str) -> list[str]:
    """The lines of a model's answer, without the marks of a list and quotation marks."""
    lines = (_MARK.sub("", line.strip()).strip(" \"'“”*`") for line in text.splitlines())
    unique = dict.fromkeys(one_line(line, WORDING_CHARACTERS) for line in lines if line)
    return [line for line in unique if line.casefold() != query.casefold()][:MAX_WORDINGS]
