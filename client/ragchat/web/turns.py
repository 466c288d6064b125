"""Asking: an answer as a stream of JSON lines, one event each.

A turn goes on when the page is left, which can follow it again, from the first event on. Events are those of
`turn.events`, each with its name as `type`; text arrives as `blocks`, the rendered end of the answer from
block `from` on.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Any

import anyio
import msgspec
from msgspec import structs
from starlette.requests import Request
from starlette.routing import Route

from ragchat.console import describe
from ragchat.conversation import Conversation
from ragchat.ingest.loading import load_text
from ragchat.llm.discovery import AUTO
from ragchat.llm.errors import ModelError
from ragchat.llm.selection import ModelSelection
from ragchat.llm.types import OFFLINE
from ragchat.markdown import split_finished
from ragchat.sanitize import one_line, sanitize, visible_json
from ragchat.sessions.document import report_as_document
from ragchat.settings import ModelSettings
from ragchat.turn import events
from ragchat.turn.approval import Approve
from ragchat.turn.events import Emit, Event
from ragchat.turn.scope import EVERYTHING, Scope
from ragchat.turn.types import Turn
from ragchat.web.asking import approve
from ragchat.web.dialogs import RunningTurn
from ragchat.web.errors import Stopped
from ragchat.web.markup import nodes
from ragchat.web.showing import turn_document, why_document
from ragchat.web.site import Site, body, route
from ragchat.web.streaming import Run, Streamed, Tell
from ragmcp.concurrency import background_task

# Deltas are collected for this long, because models send single words.
DRAW_SECONDS = 0.05
# A long block, which is rendered again as it grows, is drawn less often: after one second at this length.
CHARACTERS_PER_SECOND = 200_000


class Ask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`last` is the id of the last turn that the page shows, "" if it shows none.

    `scope` names the documents to ask, "" for all; `model` is the model, "" for the configured one.
    """

    question: str = ""
    last: str | None = None
    scope: str = ""
    model: str = ""


Take = Callable[[Conversation, Ask, Emit, Approve], Awaitable[Turn]]


def _asking(path: str, take: Take) -> Route:
    """A route that answers with the events of a turn, then `turn` or `error`."""

    async def handler(site: Site, request: Request) -> Streamed:
        asked, session_id = await body(request, Ask), request.path_params["session_id"]
        run = site.chats.begin(session_id, asked.question)
        site.chats.tasks.start_soon(run.do, partial(_take_turn, site, session_id, asked, take))
        return Streamed(partial(_follow, site, session_id, run))

    return route(f"/api/sessions/{{session_id}}/{path}", handler, "POST")


async def _ask(chat: Conversation, asked: Ask, emit: Emit, approve: Approve) -> Turn:
    return await chat.ask(asked.question, emit, approve)


async def _retry(chat: Conversation, _: Ask, emit: Emit, approve: Approve) -> Turn:
    return await chat.retry(emit, approve, answered=chat.last_turn is not None)


async def _research(chat: Conversation, asked: Ask, emit: Emit, approve: Approve) -> Turn:
    return (await chat.research(asked.question, emit, approve)).turn


async def answer(site: Site, request: Request) -> Streamed:
    """The events of the answer that is being made, from the first on; none if there is no such answer."""
    session_id = request.path_params["session_id"]
    return Streamed(partial(_follow, site, session_id, site.chats.runs.get(session_id)))


async def stop(site: Site, request: Request) -> dict[str, Any]:
    """Stop the answer that is being made. Its events end with the turn, if something was written."""
    site.chats.stop(request.path_params["session_id"])
    return {}


async def _follow(site: Site, session_id: str, run: Run | None, tell: Tell) -> None:
    if run is None:
        return
    await run.follow(tell)
    if site.chats.runs.get(session_id) is run:  # It failed, and the page says so.
        del site.chats.runs[session_id]


async def answer_dialog(site: Site, request: Request) -> dict[str, Any]:
    site.dialogs.answer(request.path_params["id"], await body(request, dict[str, Any]))
    return {}


async def models(site: Site, _: Request) -> dict[str, Any]:
    """The models to choose from, and the configured one; `failed`: why the server lists none."""
    settings = site.settings.table("model", ModelSettings)
    async with aclosing(ModelSelection(settings, os.environ)) as selection:
        try:
            choices, failed = await selection.choices(), ""
        except ModelError as error:  # One can still be asked without a model.
            choices, failed = [AUTO, OFFLINE], describe(error).message
        return {"choices": [*map(one_line, choices)], "name": one_line(selection.name), "failed": failed}


async def scope(site: Site, request: Request) -> dict[str, Any]:
    """Whether `?name=` means documents. Raises NoDocumentMatches, SeveralDocumentsMatch."""
    chosen = Scope(site.memory)
    await chosen.narrow(request.query_params.get("name", "").strip() or EVERYTHING)
    return {"name": chosen.name}


async def more(site: Site, request: Request) -> dict[str, Any]:
    """The turn with all cards that were found for it."""
    turn = await _turn(site, request)
    return turn_document(structs.replace(turn, answer=turn.answer.with_further()))


async def why(site: Site, request: Request) -> dict[str, Any]:
    return why_document(await _turn(site, request))


async def store(site: Site, request: Request) -> dict[str, Any]:
    """Store a report in memory."""
    stored = await load_text(site.memory, *report_as_document(await _turn(site, request)))
    return {"uri": sanitize(stored.uri), "error": stored.error}


async def _turn(site: Site, request: Request) -> Turn:
    return await site.sessions.turn(request.path_params["session_id"], request.path_params["turn_id"])


_TURN = "/api/sessions/{session_id}/turns/{turn_id}"
ROUTES = (
    _asking("ask", _ask),
    _asking("retry", _retry),
    _asking("research", _research),
    route("/api/sessions/{session_id}/answer", answer),
    route("/api/sessions/{session_id}/stop", stop, "POST"),
    route("/api/dialogs/{id}", answer_dialog, "POST"),
    route("/api/models", models),
    route("/api/scope", scope),
    route(f"{_TURN}/more", more),
    route(f"{_TURN}/why", why),
    route(f"{_TURN}/store", store, "POST"),
)


async def _take_turn(site: Site, session_id: str, asked: Ask, take: Take, run: Run) -> dict[str, Any]:
    """The last event. Raises RagChatError; Stopped if there is nothing to keep of a turn that was stopped."""
    tell = run.tell
    written = Written(tell)

    def emit(event: Event) -> None:
        if isinstance(event, events.Delta):
            written.add(event.text)
        elif not isinstance(event, events.Shown):  # The finished turn has the cards.
            tell(event_document(event))

    async with site.chats.taking_turn(session_id, asked.last) as chat:
        last = chat.last_turn
        run.question = run.question or (last.question if last else "")
        site.chats.runs[session_id] = run
        running = RunningTurn(chat, tell)
        approving = partial(approve, site.dialogs, running, site.servers.permissions)
        with site.dialogs.during(running), run.scope:
            await _prepare(chat, asked)
            try:
                async with background_task(written.draw):
                    await take(chat, asked, emit, approving)
            finally:
                written.draw_rest()  # The part that came before an error or a stop stays on the page.
        if (turn := chat.last_turn) is None or turn is last:
            raise Stopped
        del site.chats.runs[session_id]
    return {"type": "turn", "turn": turn_document(turn)}


async def _prepare(chat: Conversation, asked: Ask) -> None:
    """Use the notebook of the session, and the scope and the model of the page. Raises RagChatError."""
    # Its file may have changed since the last turn.
    await chat.use_notebook_of(chat.session)
    if (asked.scope or chat.scope.whole) != chat.scope.name:
        await chat.scope.narrow(asked.scope or EVERYTHING)
    model = asked.model or chat.configured_model
    if model not in (chat.model.selected, chat.model.name):
        await chat.model.select(model)


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

    async def draw(self) -> None:
        while True:
            await self._more.wait()
            await anyio.sleep(max(DRAW_SECONDS, len(self._rest) / CHARACTERS_PER_SECOND))
            self.draw_rest()

    def draw_rest(self) -> None:
        if not self._more.is_set():
            return
        self._more = anyio.Event()
        finished, self._rest = split_finished(self._rest)
        done = nodes(finished)
        self._tell({"type": "blocks", "from": self._finished, "nodes": [*done, *nodes(self._rest)]})
        self._finished += len(done)


def event_document(event: Event) -> dict[str, Any]:
    """An event as the page gets it, without the passages: the finished turn has them."""
    match event:
        case events.Retrieved(candidates):
            return {"type": "retrieved", "found": len(candidates)}
        case events.ToolStarted(name, arguments):
            shown = visible_json(msgspec.json.encode(arguments).decode())
            return {"type": "tool_started", "name": one_line(name), "arguments": shown}
        case events.ToolFinished(name, ok, summary):
            return {"type": "tool_finished", "name": one_line(name), "ok": ok, "summary": one_line(summary)}
        case events.Notice(text):
            return {"type": "notice", "text": one_line(text)}
        case events.Reasoning(text):
            return {"type": "reasoning", "text": sanitize(text)}
        case events.Retrieving(query):
            return {"type": "retrieving", "query": one_line(query)}
        case events.Rephrasing():
            return {"type": "rephrasing"}
    raise AssertionError(event)
