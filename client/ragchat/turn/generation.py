"""The answer of a model: prompt, requests, rounds of tool calls, the check of the citations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

import anyio

from ragchat.formatting import counted
from ragchat.grounding.citations import Checked, check
from ragchat.grounding.facts import unsupported
from ragchat.grounding.judging import State
from ragchat.llm import tokens
from ragchat.llm.client import Model
from ragchat.llm.completion import CUT_AT, Completion
from ragchat.llm.errors import EmptyAnswer, LimitReached, ModelError, ModelTimedOut, ToolCallsUsedUp
from ragchat.llm.images import IMAGE_TOKENS, MOST_IMAGES, Images, add_images, image_tokens
from ragchat.memory.types import ToolResult
from ragchat.offline.small_talk import small_talk
from ragchat.sanitize import one_line
from ragchat.servers.clock import Clock
from ragchat.turn.approval import Approve, foreign_texts
from ragchat.turn.grounding import Grounding
from ragchat.turn.limits import Budget, Reached, TurnLimits
from ragchat.turn.passages import ATTACHED, Passages, judge, quote
from ragchat.turn.prompt import Prompt, Prompts, build
from ragchat.turn.scope import QUERY
from ragchat.turn.tools import CANNOT_ASK, OWN, ToolCall
from ragchat.types import (
    NOT_GROUNDED,
    Answer,
    Delta,
    Emit,
    Message,
    Notice,
    Reasoning,
    Retrieved,
    ToolFinished,
    ToolRequest,
    ToolStarted,
    Turn,
    Unsupported,
    Usage,
)
from ragchat.uris import short_uri
from ragcommon.hosts import SERVER_NAME
from ragmcp.concurrency import in_daemon_thread

SUMMARY_CHARACTERS = 80
# Shorter pauses between two attempts, in seconds, are not announced.
NOTICED_PAUSE = 2.0
# The calls of one round that are carried out.
MOST_CALLS = 16
TOO_MANY = f"Only the first {MOST_CALLS} calls of a message are carried out. Repeat this one if you need it."
LIMIT_REACHED = "The model called tools until the limit ({setting}); its answer may lack something."
UNCITED = "The answer cites no passage: nothing in it was checked against your documents."
# Added to the last result: many chat templates refuse a message of the system's or the user's there.
LAST_RESULT = (
    "\n\n[You can call no more tools for this question: {reason}. Answer with what you have, and say what is "
    "missing.]"
)
NO_MORE_CALLS = "This was not called: you can call no more tools. Answer now, in words, with what you have."
CUT = "[Cut here: the first {shown:,} of {size:,} characters. If you need more, ask for less at once.]"
FAILED = "The call failed: {text}"
NO_TEXT = "(no text)"
LEFT_OUT = "[There is no room for {more} found. Ask for less at once.]"
KNOWN = "[Found as well, and given above: {passages}.]"
NO_TOOLS_TAKEN = "{model} takes no tools: it answers from what memory was searched for."
NO_IMAGES_TAKEN = "{model} takes no images: it got only their names."


class Tools(Protocol):
    """The part of `Toolbox` that a conversation needs."""

    @property
    def clock(self) -> Clock: ...
    async def descriptions(self) -> list[dict[str, Any]]: ...
    async def permit(
        self, request: ToolRequest, approve: Approve | None, foreign: Sequence[str] = ...
    ) -> ToolCall: ...
    async def run(self, calls: Sequence[ToolCall], seconds: float = ...) -> list[ToolResult]: ...


@dataclass(frozen=True)
class Answerer:
    """A model with its prompts, the tools it may call, and the user's approval of those calls.

    `foreign` names what in the question is not the user's own text, `images` are attached to it (data URLs).
    """

    model: Model
    prompts: Prompts
    toolbox: Tools
    approve: Approve | None = None
    foreign: Sequence[str] = ()
    images: Sequence[str] = ()


async def generate(
    question: str,
    history: Sequence[Turn],
    grounding: Grounding,
    answerer: Answerer,
    limits: TurnLimits,
    emit: Emit,
) -> Answer:
    """The answer of a model, with its citations checked. Raises ModelError."""
    tools = await answerer.toolbox.descriptions()
    prompt = build(
        question,
        history,
        grounding,
        answerer.prompts,
        limits.budget,
        other_tokens=tokens.prompt_at_most(tools) + IMAGE_TOKENS * len(answerer.images[:MOST_IMAGES]),
    )
    emit(Retrieved(prompt.passages.candidates))
    if grounding.is_attached:
        cut = (one for one in prompt.passages.candidates if one.reason != ATTACHED)
        for text in dict.fromkeys(f"{short_uri(one.hit.uri, one.hit.title)} is {one.reason}." for one in cut):
            emit(Notice(text))
    if text := _dropped(prompt, history, limits.budget):
        emit(Notice(text))
    earlier = [name for turn in history[prompt.dropped_turns :] for name in turn.trace.foreign]
    exchange = await converse(answerer, prompt, limits, emit, [*earlier, *answerer.foreign])
    hits = exchange.passages.numbered()
    asked = " ".join([question, grounding.question.text, *(word.text for word in grounding.question.carried)])
    checked, wrong = await in_daemon_thread(
        lambda: (check(exchange.text, hits), unsupported(exchange.text, hits, asked))
    )
    cited = [*dict.fromkeys(c.n for c in checked.citations if c.verified is not False)]
    judged, parts = await grounding.of({n: hits[n] for n in cited} or hits)
    grounded = bool(cited) and not wrong and judged.state is State.GROUNDED
    if cited and not grounded:
        _, parts = await grounding.of(hits)
    missing = judged.missing if hits else []
    for text in _flaws(checked, wrong):
        emit(Notice(text))
    if hits and not checked.citations and not checked.unknown and not small_talk(question):
        emit(Notice(UNCITED))
    if missing and cited and not grounded:
        emit(Notice(f"Not mentioned in the cited passages: {', '.join(missing)}."))
    ungrounded = "" if hits else f"\n\n{NOT_GROUNDED}"
    if ungrounded:
        emit(Delta(ungrounded))
    return Answer(
        exchange.text + ungrounded,
        checked.citations,
        exchange.passages.candidates,
        grounded=grounded,
        nearest=[] if grounded else parts,
        missing=missing,
        model=answerer.model.name,
        usage=exchange.usage,
        passages_tokens=exchange.passages.tokens,
        prompt_tokens=prompt.tokens,
        dropped_turns=prompt.dropped_turns,
        unknown_citations=checked.unknown,
        unsupported=wrong,
        messages=exchange.messages,
        foreign=exchange.foreign,
        judgement=judged.recorded,
    )


def _dropped(prompt: Prompt, history: Sequence[Turn], budget: Budget) -> str:
    """The notice for turns that no longer fit, "" if the turn before had it."""
    dropped, before = prompt.dropped_turns, history[-1].trace.dropped_turns if history else 0
    if dropped <= before:
        return ""
    turns = "The oldest turn" if dropped == 1 else f"The {dropped} oldest turns"
    return (
        f"{turns} of this session no longer fit and were left out: beside passages, tools and the answer, "
        f"{prompt.history_room:,} of the context's {budget.context:,} tokens are left for the history."
    )


def _flaws(checked: Checked, facts: Sequence[Unsupported]) -> Iterator[str]:
    """Notices for unknown citations, for wrong quotations, and for facts that cited passages do not hold."""
    if checked.unknown:
        yield f"The answer cites {_markers(checked.unknown)}, but no such passage was given."
    if wrong := sorted({citation.n for citation in checked.citations if citation.verified is False}):
        yield f"A quotation attributed to {_markers(wrong)} is not in it word for word."
    for found in facts:
        yield f"{', '.join(found.facts)}: not in {_markers(found.passages)}."


def _markers(numbers: Sequence[int]) -> str:
    return ", ".join(f"[{n}]" for n in numbers)


@dataclass(frozen=True)
class Exchange:
    """All rounds with the model: its text, the messages both ways, and the passages it has.

    `foreign` are the texts among them that are not the user's own.
    """

    text: str
    messages: list[Message]
    passages: Passages
    usage: Usage
    foreign: list[str]


async def converse(
    answerer: Answerer,
    prompt: Prompt,
    limits: TurnLimits,
    emit: Emit,
    foreign: Iterable[str],
) -> Exchange:
    """Ask the model, and again with the results of its tool calls until it calls none.

    `foreign` are the texts in the history that are not the user's own. Raises ModelError.
    """
    messages, passages = list(prompt.messages), prompt.passages
    read = dict.fromkeys([*foreign, *foreign_texts(passages.numbered().values())])
    images: dict[int, list[str]] = {}
    add_images(images, len(messages) - 1, answerer.images)
    texts: list[str] = []
    usage = Usage()
    seconds, model_seconds = limits.tool_seconds, limits.model_seconds
    reached: Reached | None = None

    async def ask(offered: Sequence[dict[str, Any]] = ()) -> Completion:
        nonlocal usage, model_seconds
        began = anyio.current_time()
        try:
            completion = await _complete(
                answerer.model, messages, images, offered, emit, model_seconds, is_first=not texts
            )
        except LimitReached as error:
            if not texts:
                raise
            emit(Notice(CUT_AT.format(setting=error.setting)))
            return Completion("", [], Usage())
        model_seconds -= anyio.current_time() - began
        reply = _message(completion)
        usage += completion.usage + _estimate([*messages, *offered], reply)
        messages.append(reply)
        texts.extend([completion.text] if completion.text else [])
        return completion

    for rounds_left in range(limits.rounds, -1, -1):
        may_call = rounds_left > 0 and reached is None
        # Described again in each round: a search may have found more of them.
        offered = await answerer.toolbox.descriptions() if may_call else []
        completion = await ask(offered)
        if completion.requests and not may_call and not completion.text.strip():
            # Some models call tools that they were not offered. They are told, and asked for words once more.
            messages += [
                {"role": "tool", "tool_call_id": request.id, "content": NO_MORE_CALLS}
                for request in completion.requests
            ]
            await ask()
        if not completion.requests or not may_call:
            break
        calls = await _permitted(answerer, completion.requests, emit, [*read])
        began = answerer.toolbox.clock.now()
        results = await answerer.toolbox.run(calls, seconds)
        seconds -= answerer.toolbox.clock.now() - began
        add_images(images, len(messages) + len(calls) - 1, [url for one in results for url in one.images])
        left = _left(limits.budget, messages, offered, images)
        room = max(0, min(limits.budget.passages, left // len(calls)))
        for call, result in zip(calls, results, strict=True):
            request = call.request
            if _is_foreign(call, result):
                read[f"the result of {request.name}"] = None
            read |= dict.fromkeys(foreign_texts(result.hits))
            had = {hit.chunk_id for hit in passages.numbered().values()}
            judged = [judge(hit, limits.retrieval.min_score) for hit in result.hits]
            passages = passages.extended(judged, room)
            text, summary = _readable(call, result, passages, had, room)
            messages.append({"role": "tool", "tool_call_id": request.id, "content": text})
            emit(ToolFinished(request.name, result.ok, summary))
            for note in result.notes:
                emit(Notice(note))
        reached = limits.reached(rounds_left - 1, seconds, _left(limits.budget, messages, offered, images))
        if reached is not None:
            messages[-1]["content"] += LAST_RESULT.format(reason=reached.reason)
    text = "\n\n".join(texts)
    if not text.strip():
        name = answerer.model.name
        raise ToolCallsUsedUp(name, reached.setting) if reached else EmptyAnswer(name)
    if images and not answerer.model.takes_images:
        emit(Notice(NO_IMAGES_TAKEN.format(model=answerer.model.name)))
    if reached is not None:
        emit(Notice(LIMIT_REACHED.format(setting=reached.setting)))
    return Exchange(text, messages, passages, usage, [*read])


def _is_foreign(call: ToolCall, result: ToolResult) -> bool:
    """Whether a result may hold text that is not the user's own and is not judged as a passage."""
    tool = call.tool
    if tool is None or call.refusal:
        return False
    if tool.server == SERVER_NAME:  # Whole documents, titles, other versions.
        return tool.only_reads and tool.name != QUERY and not result.hits
    return tool.server not in OWN


def _estimate(sent: Sequence[Message], reply: Message) -> Usage:
    return Usage(
        estimated_prompt_tokens=tokens.about(sent), estimated_completion_tokens=tokens.about([reply])
    )


def _left(
    budget: Budget, messages: Sequence[Message], tools: Sequence[dict[str, Any]], images: Images
) -> int:
    """The tokens of the context that are left for results of tools."""
    return budget.context - budget.answer - tokens.prompt_at_most([*messages, *tools]) - image_tokens(images)


async def _complete(
    model: Model,
    messages: Sequence[Message],
    images: Images,
    tools: Sequence[dict[str, Any]],
    emit: Emit,
    seconds: float,
    *,
    is_first: bool,
) -> Completion:
    """One request to the model. The text of each request is a paragraph of its own in the answer."""
    separator = "" if is_first else "\n\n"

    def show(text: str) -> None:
        nonlocal separator
        emit(Delta(separator + text))
        separator = ""

    def wait(error: ModelError, pause: float) -> None:
        if pause >= NOTICED_PAUSE or isinstance(error, ModelTimedOut):
            emit(Notice(f"{error} Trying again in {pause:.0f} s."))

    size, took_tools = tokens.prompt_at_most(messages), model.takes_tools
    completion = await model.complete(
        messages,
        tools,
        tokens=size,
        on_text=show,
        on_reasoning=lambda text: emit(Reasoning(text)),
        on_retry=wait,
        images=images,
        seconds=seconds,
    )
    if took_tools and not model.takes_tools:
        emit(Notice(NO_TOOLS_TAKEN.format(model=model.name)))
    if text := _truncated(completion.usage, messages, model.name):
        emit(Notice(text))
    if completion.cut_off:
        emit(Notice(completion.cut_off))
    return completion


def _message(completion: Completion) -> Message:
    message: Message = {"role": "assistant", "content": completion.text}
    if completion.requests:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                # Many servers refuse a prompt with malformed arguments.
                "function": {"name": call.name, "arguments": call.arguments if call.is_readable else "{}"},
            }
            for call in completion.requests
        ]
    return message


def _truncated(usage: Usage, messages: Sequence[Message], model: str) -> str:
    """The notice for a prompt that the server may have cut, "" if it has not.

    It has if it counted fewer prompt tokens than any tokenizer can make of the prompt. Some servers leave
    cached tokens out of their count, so these are added.
    """
    sent = tokens.prompt_at_least(messages)
    counted = (usage.prompt_tokens or sent) + (usage.cached_tokens or 0)
    if counted >= sent:
        return ""
    return (
        f"{model} was sent at least {sent} tokens but counted {counted}: its server may have cut "
        "the prompt. Raise the server's context length, or lower model.context_tokens."
    )


async def _permitted(
    answerer: Answerer, requests: Sequence[ToolRequest], emit: Emit, foreign: Sequence[str]
) -> list[ToolCall]:
    """The calls of one round, once all of them are decided on. Refused ones are shown to the user."""
    calls = [
        await answerer.toolbox.permit(request, answerer.approve, foreign)
        if number < MOST_CALLS
        else ToolCall(request, refusal=TOO_MANY)
        for number, request in enumerate(requests)
    ]
    for call in calls:
        if call.refusal == CANNOT_ASK:
            name = call.request.name
            emit(Notice(f"{name} was not called: it needs your permission. Allow it in the chat."))
        emit(ToolStarted(call.request.name, call.arguments))
    return calls


def _readable(
    call: ToolCall, result: ToolResult, passages: Passages, had: Set[int], budget: int
) -> tuple[str, str]:
    """The result of a tool for the model, and as one line for the user.

    Passages that the model `had` already are named by their numbers.
    """
    if not result.hits:
        shown, size = tokens.beginning(result.text, budget), len(result.text)
        text = shown or NO_TEXT
        if len(shown) < size:
            text = f"{shown}\n{CUT.format(shown=len(shown), size=size)}".lstrip()
        if not result.ok and not call.refusal:
            text = FAILED.format(text=text)
        return text, one_line(result.text, SUMMARY_CHARACTERS)
    found = {hit.chunk_id for hit in result.hits}
    quoted = {n: hit for n, hit in passages.numbered().items() if hit.chunk_id in found}
    new = {n: hit for n, hit in quoted.items() if hit.chunk_id not in had}
    parts = [quote(new)] if new else []
    if known := [n for n in quoted if n not in new]:
        parts.append(KNOWN.format(passages=_markers(known)))
    if left_out := passages.left_out(found):
        parts.append(LEFT_OUT.format(more=counted(left_out, "passage")))
    text = "\n\n".join(parts) or "Memory holds nothing relevant to this."
    return text, counted(len(quoted), "passage")
