"""The part of a turn that a model takes: prompt, stream, rounds of tool calls, the check of what was said.

Changes the draft it is handed, and tells of it as events.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from ragchat.errors import EmptyAnswer, ToolRoundsUsedUp
from ragchat.llm import tokens
from ragchat.llm.client import Model
from ragchat.offline.answer import EMPTY_MEMORY
from ragchat.sanitize import one_line
from ragchat.turn import prompt as prompting
from ragchat.turn.citations import check
from ragchat.turn.draft import Draft
from ragchat.turn.prompt import Prompts
from ragchat.turn.retrieval import Retrieval, judge
from ragchat.turn.tools import Approve, Outcome, Toolbox
from ragchat.types import (
    NOT_GROUNDED,
    Delta,
    Event,
    Message,
    Notice,
    Retrieved,
    ToolFinished,
    ToolRequest,
    ToolStarted,
    Usage,
)

SUMMARY_CHARACTERS = 80


@dataclass(frozen=True)
class Answerer:
    """Who answers: a model, what it is told, the tools it may call, and who approves of them."""

    model: Model
    prompts: Prompts
    toolbox: Toolbox
    approve: Approve | None = None


async def generate(draft: Draft, retrieval: Retrieval, answerer: Answerer) -> AsyncGenerator[Event, None]:
    """The answer of a model, with its tool calls, checked. Raises EmptyAnswer, ToolRoundsUsedUp."""
    tools = await answerer.toolbox.descriptions()
    draft.model = answerer.model.name
    _prepare(draft, retrieval, answerer.prompts, tools)
    yield Retrieved(draft.candidates)
    if retrieval.empty:
        yield draft.note(EMPTY_MEMORY)
    if text := _dropped(draft):
        yield draft.note(text)
    for rounds_left in range(draft.limits.rounds, -1, -1):
        requests: list[ToolRequest] = []
        async with aclosing(_stream(draft, answerer.model, tools if rounds_left else [], requests)) as events:
            async for event in events:
                yield event
        if not requests or not rounds_left:
            break
        async with aclosing(_call_tools(draft, answerer, requests)) as events:
            async for event in events:
                yield event
    if not draft.answer.strip():
        used_up = requests or rounds_left == 0 < draft.limits.rounds
        raise ToolRoundsUsedUp(draft.model, draft.limits.rounds) if used_up else EmptyAnswer(draft.model)
    if requests:
        yield draft.note(
            "The model wanted to call tools beyond the limit (tools.rounds); its answer may lack something."
        )
    for event in _conclude(draft):
        yield event


def _prepare(draft: Draft, retrieval: Retrieval, prompts: Prompts, tools: Sequence[dict[str, Any]]) -> None:
    prompt = prompting.build(
        draft.question,
        draft.history,
        retrieval.candidates,
        prompts,
        draft.limits.budget,
        tools_tokens=tokens.prompt_at_most(tools),
    )
    draft.messages = prompt.messages
    draft.candidates = prompt.candidates
    draft.passages_tokens = prompt.passages_tokens
    draft.prompt_tokens = prompt.tokens
    draft.kept_turns = len(prompt.history)


def _dropped(draft: Draft) -> str:
    """What to say about turns that no longer fit; "" when that was said before."""
    dropped = len(draft.history) - draft.kept_turns
    before = draft.history[-1].trace.dropped_turns if draft.history else 0
    if dropped <= before:
        return ""
    turns = "The oldest turn" if dropped == 1 else f"The {dropped} oldest turns"
    return f"{turns} of this session no longer fit into the model's context and were left out."


async def _stream(
    draft: Draft, model: Model, tools: Sequence[dict[str, Any]], requests: list[ToolRequest]
) -> AsyncGenerator[Event, None]:
    """One request to the model; `requests` takes the tools that it asks for."""
    said = ""
    size = tokens.prompt_at_most(draft.messages)
    async with aclosing(model.stream(draft.messages, tools, tokens=size)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Delta):
                if draft.answer and not said:  # what it said before a tool call is a paragraph of its own
                    yield draft.say("\n\n")
                said += piece.text
                yield draft.say(piece.text)
            elif isinstance(piece, ToolRequest):
                requests.append(piece)
            elif isinstance(piece, Notice):
                yield draft.note(piece.text)
            else:
                if text := _truncated(piece, draft):
                    yield draft.note(text)
                draft.usage = _sum(draft.usage, piece)
    draft.messages.append(_spoken(said, requests))


def _spoken(said: str, requests: Sequence[ToolRequest]) -> Message:
    message: Message = {"role": "assistant", "content": said}
    if requests:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in requests
        ]
    return message


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        one.prompt_tokens + other.prompt_tokens,
        one.completion_tokens + other.completion_tokens,
        one.cached_tokens + other.cached_tokens,
    )


def _truncated(usage: Usage, draft: Draft) -> str:
    """What to say when the server counted fewer prompt tokens than any tokenizer can make of what was sent.

    Some servers leave cached tokens out of their count, so these are added; 0 is no count.
    """
    sent = tokens.prompt_at_least(draft.messages)
    counted = usage.prompt_tokens + usage.cached_tokens
    if not usage.prompt_tokens or counted >= sent:
        return ""
    return (
        f"{draft.model} was sent at least {sent} tokens but counted {counted}: its server may have cut "
        "the prompt. Raise the server's context length, or lower model.context_tokens."
    )


async def _call_tools(
    draft: Draft, answerer: Answerer, requests: Sequence[ToolRequest]
) -> AsyncGenerator[Event, None]:
    calls = [await answerer.toolbox.permit(request, answerer.approve) for request in requests]
    for call in calls:
        yield ToolStarted(call.request.name, call.arguments)
    for outcome in await answerer.toolbox.run(calls):
        text, summary = _taken_in(draft, outcome)
        draft.messages.append({"role": "tool", "tool_call_id": outcome.call.request.id, "content": text})
        yield ToolFinished(outcome.call.request.name, outcome.ok, summary)


def _taken_in(draft: Draft, outcome: Outcome) -> tuple[str, str]:
    """A tool's outcome as the model reads it, and as one line. New passages are numbered on."""
    budget = draft.limits.budget.passages
    if not outcome.hits:
        text = outcome.text[: budget * 3]  # about as many tokens as passages may have
        return text, one_line(text, SUMMARY_CHARACTERS)
    numbers = {hit.chunk_id: n for n, hit in draft.passages().items()}
    judged = [judge(hit, draft.limits.retrieval.min_score) for hit in outcome.hits]
    new = [candidate for candidate in judged if candidate.hit.chunk_id not in numbers]
    numbered, taken = prompting.number(new, budget, first=len(numbers) + 1)
    draft.candidates += numbered
    draft.passages_tokens += taken
    passages = draft.passages()
    found = {hit.chunk_id for hit in outcome.hits}
    shown = [(n, hit) for n, hit in sorted(passages.items()) if hit.chunk_id in found]
    text = prompting.quote(shown) or "Memory holds nothing relevant to this."
    return text, f"{len(shown)} passages"


def _conclude(draft: Draft) -> list[Event]:
    """Check what was said, and say what is to be said about it."""
    events: list[Event] = []
    checked = check(draft.answer, draft.passages())
    draft.citations, draft.unknown = checked.citations, checked.unknown
    if checked.unknown:
        marks = ", ".join(f"[{n}]" for n in checked.unknown)
        events.append(draft.note(f"The answer cites {marks}, but no such passage was given."))
    if wrong := sorted({citation.n for citation in checked.citations if not citation.verified}):
        marks = ", ".join(f"[{n}]" for n in wrong)
        events.append(draft.note(f"A quotation attributed to {marks} does not stand there word for word."))
    if not draft.passages():
        events.append(draft.say(f"\n\n{NOT_GROUNDED}"))
    return events
