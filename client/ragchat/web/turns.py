"""Asking: an answer as a stream of JSON lines, one event each.

The stream is the turn: when the page closes it, the turn is stopped. Events are those of `turn.events`, each
with its name as `type`; text arrives as `blocks`, the rendered end of the answer from block `from` on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import anyio
import msgspec
from starlette.requests import Request

from ragchat.conversation import Conversation
from ragchat.llm.types import decode_arguments
from ragchat.markdown import split_finished
from ragchat.sanitize import one_line, sanitize, visible, visible_json
from ragchat.servers.permissions import Rule
from ragchat.turn.approval import Approve, Question
from ragchat.turn.events import (
    Delta,
    Event,
    Notice,
    Reasoning,
    Rephrasing,
    Retrieved,
    Retrieving,
    Shown,
    ToolFinished,
    ToolStarted,
)
from ragchat.turn.types import Turn
from ragchat.web.markup import Node, nodes
from ragchat.web.site import Site, body, route
from ragchat.web.streaming import Streamed, Tell

# Deltas are collected for this long, because models send single words.
DRAW_SECONDS = 0.05


class Ask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    question: str


class Approval(msgspec.Struct, frozen=True):
    """The answer to the question whether a tool may be called; `arguments` is JSON, "" as asked."""

    decision: Literal["once", "session", "always", "never", "no"]
    arguments: str = ""


async def ask(site: Site, request: Request) -> Streamed:
    asked = await body(request, Ask)
    return streamed(site, request, lambda chat, emit, approve: chat.ask(asked.question, emit, approve))


async def retry(site: Site, request: Request) -> Streamed:
    return streamed(site, request, lambda chat, emit, approve: chat.retry(emit, approve))


async def answer_dialog(site: Site, request: Request) -> dict[str, Any]:
    site.dialogs.answer(request.path_params["id"], await body(request, dict[str, Any]))
    return {}


ROUTES = (
    route("/api/sessions/{session_id}/ask", ask, "POST"),
    route("/api/sessions/{session_id}/retry", retry, "POST"),
    route("/api/dialogs/{id}", answer_dialog, "POST"),
)

_RULES = {"session": Rule.SESSION, "always": Rule.ALWAYS, "never": Rule.NEVER}
Take = Callable[[Conversation, Callable[[Event], None], Approve], Awaitable[Turn]]


def streamed(site: Site, request: Request, take: Take) -> Streamed:
    """The events of a turn of the session in the address, then `turn` or `error`."""
    session_id = request.path_params["session_id"]

    async def work(tell: Tell) -> None:
        written = Written(tell)

        def emit(event: Event) -> None:
            if isinstance(event, Delta):
                written.add(event.text)
            else:
                tell(event_document(event))

        async def approve(question: Question) -> dict[str, Any] | None:
            return await _approval(site, tell, question)

        async with site.chats.taking_turn(session_id) as chat, written:
            turn = await take(chat, emit, approve)
        tell({"type": "turn", "turn": turn_document(turn)})

    return Streamed(work)


class Written:
    """Renders the text of an answer as it grows, at most every DRAW_SECONDS."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._rest = ""
        self._finished = 0  # blocks
        self._more = anyio.Event()

    def add(self, text: str) -> None:
        self._rest += sanitize(text)
        self._more.set()

    async def __aenter__(self) -> Written:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._draw)
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        self._tasks.cancel_scope.cancel()
        return await self._tasks.__aexit__(*error)

    async def _draw(self) -> None:
        while True:
            await self._more.wait()
            await anyio.sleep(DRAW_SECONDS)
            self._more = anyio.Event()
            finished, self._rest = split_finished(self._rest)
            done = nodes(finished)
            self._tell({"type": "blocks", "from": self._finished, "nodes": [*done, *nodes(self._rest)]})
            self._finished += len(done)


def event_document(event: Event) -> dict[str, Any]:
    """An event as the page gets it, without the passages: the finished turn has them."""
    match event:
        case Retrieved(candidates):
            return {"type": "retrieved", "found": len(candidates)}
        case Shown(answer):
            return {"type": "shown", "cards": msgspec.to_builtins(answer.cards)}
        case ToolStarted(name, arguments):
            return {"type": "tool_started", "name": one_line(name), "arguments": arguments}
        case ToolFinished(name, ok, summary):
            return {"type": "tool_finished", "name": one_line(name), "ok": ok, "summary": one_line(summary)}
        case Notice(text):
            return {"type": "notice", "text": one_line(text)}
        case Reasoning(text):
            return {"type": "reasoning", "text": sanitize(text)}
        case Retrieving(query):
            return {"type": "retrieving", "query": query}
        case Rephrasing():
            return {"type": "rephrasing"}
    raise AssertionError(event)


def turn_document(turn: Turn) -> dict[str, Any]:
    """What `ask --json` prints, with the answer as `nodes`."""
    blocks: list[Node] = nodes(turn.answer.text)
    return {
        **turn.public(),
        "nodes": blocks,
        "notices": turn.trace.notices,
        "created_at": turn.created_at,
        "more": turn.answer.further is not None,
    }


async def _approval(site: Site, tell: Tell, question: Question) -> dict[str, Any] | None:
    """The arguments to call the tool with, None if the user does not allow it."""
    tool = question.tool
    asked = {
        "tool": visible(tool.name),
        "server": visible(tool.server),
        # As JSON in which nothing is hidden; the user may edit it.
        "arguments": visible_json(msgspec.json.format(msgspec.json.encode(question.arguments)).decode()),
        "untrusted": [one_line(name) for name in question.untrusted],
        "changes": visible(question.changes),
        "only_reads": tool.only_reads,
    }
    answer = await site.dialogs.ask(tell, "approval", asked)
    try:
        decision = msgspec.convert(answer, Approval)
        arguments = decode_arguments(decision.arguments) if decision.arguments else question.arguments
    except (msgspec.ValidationError, ValueError):
        return None
    if (rule := _RULES.get(decision.decision)) is not None:
        site.servers.permissions.remember(tool.server, [tool.info], rule)
    return arguments if decision.decision in ("once", "session", "always") else None
