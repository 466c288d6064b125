"""The rounds with a model: ask it, run its tool calls, and ask it again with the results.

`TurnLimits` bounds seconds, tokens and the number of rounds.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio

from ragchat.llm import tokens
from ragchat.llm.client import Model
from ragchat.llm.completion import CUT_AT, Completion
from ragchat.llm.errors import (
    EmptyAnswer,
    LimitReached,
    ModelError,
    ModelLoading,
    ModelTimedOut,
    ToolCallsUsedUp,
)
from ragchat.llm.images import add_images, image_tokens
from ragchat.llm.reasoning import END, split_whole
from ragchat.llm.types import NOT_REPORTED, Message, ToolRequest, Usage
from ragchat.memory.types import ToolResult
from ragchat.sanitize import one_line
from ragchat.servers.clock import Clock
from ragchat.turn.approval import Approve, untrusted_texts
from ragchat.turn.events import Delta, Emit, Notice, Reasoning, ToolFinished, ToolStarted
from ragchat.turn.limits import Reached, TurnLimits
from ragchat.turn.passages import Passages, as_candidate, markers, quote
from ragchat.turn.prompt import Prompt, Prompts
from ragchat.turn.scope import QUERY
from ragchat.turn.tools import CANNOT_ASK, OWN, ToolCall
from ragchat.turn.why import STOPPED
from ragcommon.hosts import SERVER_NAME
from ragcommon.text.rules import counted

SUMMARY_CHARACTERS = 80
# Shorter pauses between two attempts, in seconds, are not announced.
NOTICED_PAUSE = 2.0
# The calls of one round that are run.
MAX_CALLS = 16
TOO_MANY = f"Only the first {MAX_CALLS} calls of a message are carried out. Repeat this one if you need it."
LIMIT_REACHED = "The model called tools until the limit ({setting}); its answer may lack something."
# Appended to the last result: many chat templates reject a system or user message there.
LAST_RESULT = (
    "\n\n[You can call no more tools for this question: {reason}. Answer with what you have, and say what is "
    "missing.]"
)
REASONING_SHOWN = f"The text before {END} is the reasoning of the model: it is not part of the answer."
ONLY_REASONING = (
    "It has only reasoned, which /reasoning shows in the chat. "
    "Ask again, let it use more tokens, or choose another model."
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
        self, request: ToolRequest, approve: Approve | None, untrusted: Sequence[str] = ...
    ) -> ToolCall: ...
    async def run(self, calls: Sequence[ToolCall], seconds: float = ...) -> list[ToolResult]: ...


class Stopping:
    """Lets the user stop an answer while it is written; what was written by then is kept."""

    scope: anyio.CancelScope | None = None  # of the rounds, once there is text

    def stop(self) -> bool:
        """Returns False if there is nothing to keep. An answer that is being checked is kept."""
        if self.scope is None:
            return False
        self.scope.cancel()
        return True


@dataclass(frozen=True)
class Answerer:
    """A model with its prompts, its tools, and the user's approval of tool calls.

    `untrusted` names the parts of the question that are not the user's own text; `images` are data URLs.
    `instructions` are those of another program, in front of the question.
    """

    model: Model
    prompts: Prompts
    toolbox: Tools
    approve: Approve | None = None
    untrusted: Sequence[str] = ()
    images: Sequence[str] = ()
    instructions: str = ""
    stopping: Stopping = field(default_factory=Stopping)


@dataclass(frozen=True)
class Exchange:
    """The result of all rounds: the model's text, the messages sent and received, and its passages.

    `untrusted` names the texts among them that are not the user's own. `cut_off` says why the text is
    incomplete, "" if it is complete.
    """

    text: str
    messages: list[Message]
    passages: Passages
    usage: Usage
    untrusted: list[str]
    cut_off: str


class Rounds:
    """`earlier` names the texts in the history that are not the user's own."""

    def __init__(
        self, answerer: Answerer, prompt: Prompt, limits: TurnLimits, emit: Emit, earlier: Sequence[str] = ()
    ) -> None:
        self._answerer = answerer
        self._model = answerer.model
        self._toolbox = answerer.toolbox
        self._limits = limits
        self._emit = emit
        self._messages = list(prompt.messages)
        self._passages = prompt.passages
        # An ordered set of the texts that the model has read and that are not the user's own.
        self._untrusted = dict.fromkeys(
            [*earlier, *answerer.untrusted, *untrusted_texts(prompt.passages.numbered().values())]
        )
        self._images: dict[int, list[str]] = {}
        add_images(self._images, len(self._messages) - 1, answerer.images)
        self._texts: list[str] = []
        self._written = ""  # the text of the request that is answered
        self._has_reasoned = False
        self._cut_off = ""
        self._usage = Usage()
        self._tool_seconds, self._model_seconds = limits.tool_seconds, limits.model_seconds

    async def run(self) -> Exchange:
        """Ask until the model calls no tools, or the user stops the answer. Raises ModelError."""
        reached: Reached | None = None
        with anyio.CancelScope() as self._scope:
            reached = await self._ask_and_call()
        if self._scope.cancelled_caught:
            _, answer = ("", "") if self._has_reasoned else split_whole(self._written)
            written = answer or self._written
            self._take(Completion(written, [], NOT_REPORTED, STOPPED).estimated(self._messages))
        text, name = "\n\n".join(self._texts), self._model.name
        if not text.strip():
            if reached is not None:
                raise ToolCallsUsedUp(name, reached.setting)
            raise EmptyAnswer(name, ONLY_REASONING) if self._has_reasoned else EmptyAnswer(name)
        if self._images and not self._model.takes_images:
            self._emit(Notice(NO_IMAGES_TAKEN.format(model=name)))
        if reached is not None:
            self._emit(Notice(LIMIT_REACHED.format(setting=reached.setting)))
        return Exchange(text, self._messages, self._passages, self._usage, [*self._untrusted], self._cut_off)

    async def _ask_and_call(self) -> Reached | None:
        """Ask, and run the tool calls of each answer. Returns the limit that has ended them."""
        reached: Reached | None = None
        for rounds_left in range(self._limits.rounds, -1, -1):
            may_call = rounds_left > 0 and reached is None
            # Again in each round: a tool search may have added some.
            offered = await self._toolbox.descriptions() if may_call else []
            completion = await self._ask(offered)
            if completion.requests and not may_call and not completion.text.strip():
                # Some models call tools that they were not offered: ask for text once more.
                self._messages += [_result(request, NO_MORE_CALLS) for request in completion.requests]
                await self._ask()
            if not completion.requests or not may_call:
                break
            await self._call_tools(completion.requests, offered)
            reached = self._limits.reached(rounds_left - 1, self._tool_seconds, self._tokens_left(offered))
            if reached is not None:
                self._messages[-1]["content"] += LAST_RESULT.format(reason=reached.reason)
        return reached

    async def _ask(self, offered: Sequence[dict[str, Any]] = ()) -> Completion:
        """One request. After text from earlier rounds, reaching a limit is not an error."""
        began = anyio.current_time()
        try:
            completion = await self._complete(offered)
        except LimitReached as error:
            if not self._texts:
                raise
            completion = Completion("", [], Usage(), CUT_AT.format(setting=error.setting))
        self._model_seconds -= anyio.current_time() - began
        self._take(completion)
        return completion

    def _take(self, completion: Completion) -> None:
        self._usage += completion.usage
        if completion.text or completion.requests:
            self._messages.append(completion.message)
        self._texts.extend([completion.text] if completion.text else [])
        if completion.text.strip() != self._written.strip():
            self._emit(Notice(REASONING_SHOWN))
        self._written, self._cut_off = "", completion.cut_off
        if completion.cut_off:
            self._emit(Notice(completion.cut_off))

    async def _complete(self, offered: Sequence[dict[str, Any]]) -> Completion:
        """One request; its text becomes a separate paragraph of the answer."""
        model, emit = self._model, self._emit
        separator = "\n\n" if self._texts else ""

        def show(text: str) -> None:
            nonlocal separator
            self._written += text
            if self._written.strip():
                self._answerer.stopping.scope = self._scope
            emit(Delta(separator + text))
            separator = ""

        def reason(text: str) -> None:
            self._has_reasoned = True
            emit(Reasoning(text))

        is_loading = False

        def wait(error: ModelError, pause: float) -> None:
            nonlocal is_loading
            if isinstance(error, ModelLoading):
                if not is_loading:
                    emit(Notice(f"{error} Waiting for it, for at most {error.seconds:g} s."))
                is_loading = True
            elif pause >= NOTICED_PAUSE or isinstance(error, ModelTimedOut):
                emit(Notice(f"{error} Trying again in {pause:.0f} s."))

        took_tools = model.takes_tools
        completion = await model.complete(
            self._messages,
            offered,
            on_text=show,
            on_reasoning=reason,
            on_retry=wait,
            images=self._images,
            seconds=self._model_seconds,
        )
        if took_tools and not model.takes_tools:
            emit(Notice(NO_TOOLS_TAKEN.format(model=model.name)))
        if text := _truncated(completion.usage, self._messages, model.name):
            emit(Notice(text))
        return completion

    async def _call_tools(self, requests: Sequence[ToolRequest], offered: Sequence[dict[str, Any]]) -> None:
        """Run the calls of one round, and add their results to the messages and passages."""
        calls = await self._permitted(requests)
        began = self._toolbox.clock.now()
        results = await self._toolbox.run(calls, self._tool_seconds)
        self._tool_seconds -= self._toolbox.clock.now() - began
        images = [url for one in results for url in one.images]
        add_images(self._images, len(self._messages) + len(calls) - 1, images)
        room = max(0, min(self._limits.budget.passages, self._tokens_left(offered) // len(calls)))
        for call, result in zip(calls, results, strict=True):
            if _is_untrusted(call, result):
                self._untrusted[f"the result of {call.request.name}"] = None
            self._untrusted |= dict.fromkeys(untrusted_texts(result.hits))
            had = {hit.chunk_id for hit in self._passages.numbered().values()}
            judged = [as_candidate(hit, self._limits.retrieval.min_score) for hit in result.hits]
            self._passages = self._passages.extended(judged, room)
            text, summary = _readable(call, result, self._passages, had, room)
            self._messages.append(_result(call.request, text))
            self._emit(ToolFinished(call.request.name, result.ok, summary))
            for note in result.notes:
                self._emit(Notice(note))

    async def _permitted(self, requests: Sequence[ToolRequest]) -> list[ToolCall]:
        """Decide on all calls of one round, and show them to the user."""
        untrusted = [*self._untrusted]
        calls = [
            await self._toolbox.permit(request, self._answerer.approve, untrusted)
            if number < MAX_CALLS
            else ToolCall(request, refusal=TOO_MANY)
            for number, request in enumerate(requests)
        ]
        for call in calls:
            name = call.request.name
            if call.refusal == CANNOT_ASK:
                self._emit(Notice(f"{name} was not called: it needs your permission. Allow it in the chat."))
            self._emit(ToolStarted(name, call.arguments))
        return calls

    def _tokens_left(self, offered: Sequence[dict[str, Any]]) -> int:
        """The tokens of the context that are left for tool results."""
        budget, sent = self._limits.budget, tokens.prompt_at_most([*self._messages, *offered])
        return budget.context - budget.answer - sent - image_tokens(self._images)


def _result(request: ToolRequest, text: str) -> Message:
    return {"role": "tool", "tool_call_id": request.id, "content": text}


def _is_untrusted(call: ToolCall, result: ToolResult) -> bool:
    """Whether a result may contain text from others that is not in its passages."""
    tool = call.tool
    if tool is None or call.refusal:
        return False
    if tool.server == SERVER_NAME:  # Whole documents, titles, other versions.
        return tool.only_reads and tool.name != QUERY and not result.hits
    return tool.server not in OWN


def _truncated(usage: Usage, messages: Sequence[Message], model: str) -> str:
    """The notice that the server may have truncated the prompt, or "".

    A server that counts fewer tokens than any tokenizer can produce has truncated it. Some servers do not
    count cached tokens, so these are added.
    """
    sent = tokens.prompt_at_least(messages)
    counted = (usage.prompt_tokens or sent) + (usage.cached_tokens or 0)
    if counted >= sent:
        return ""
    return (
        f"{model} was sent at least {sent} tokens but counted {counted}: its server may have cut "
        "the prompt. Raise the server's context length, or lower model.context_tokens."
    )


def _readable(
    call: ToolCall, result: ToolResult, passages: Passages, had: Set[int], budget: int
) -> tuple[str, str]:
    """The result of a tool for the model, and as one line for the user.

    Passages that the model already `had` are referred to by number.
    """
    if not result.hits:
        return _readable_text(call, result, budget), one_line(result.text, SUMMARY_CHARACTERS)
    found = {hit.chunk_id for hit in result.hits}
    quoted = {n: hit for n, hit in passages.numbered().items() if hit.chunk_id in found}
    new = {n: hit for n, hit in quoted.items() if hit.chunk_id not in had}
    parts = [quote(new)] if new else []
    if known := [n for n in quoted if n not in new]:
        parts.append(KNOWN.format(passages=markers(known)))
    if left_out := passages.left_out(found):
        parts.append(LEFT_OUT.format(more=counted(left_out, "passage")))
    text = "\n\n".join(parts) or "Memory holds nothing relevant to this."
    return text, counted(len(quoted), "passage")


def _readable_text(call: ToolCall, result: ToolResult, budget: int) -> str:
    """The text of a result, cut to `budget` tokens."""
    shown, size = tokens.beginning(result.text, budget), len(result.text)
    text = shown or NO_TEXT
    if len(shown) < size:
        text = f"{shown}\n{CUT.format(shown=len(shown), size=size)}".lstrip()
    return text if result.ok or call.refusal else FAILED.format(text=text)
