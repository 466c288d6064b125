"""The conversations: their list, what has been asked in each, and their names, copies and files."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from ragchat.errors import UnknownSession
from ragchat.formatting import local
from ragchat.notebooks.definitions import Notebook, folder_of, load
from ragchat.notebooks.definitions import listed as listed_notebooks
from ragchat.sanitize import one_line, sanitize
from ragchat.sessions.export import export_session
from ragchat.sessions.store import session_title
from ragchat.sessions.types import Session, SessionInfo
from ragchat.web.export import export_html
from ragchat.web.showing import turn_document
from ragchat.web.site import Site, body, route
from ragconfig.settings import COMMAND_LINE

LISTED = 200
# Turns that are sent at once.
PAGE = 20


class Title(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    title: str


class New(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`notebook` is the one that the session belongs to, "" for none."""

    notebook: str = ""


class Fork(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`before` is the id of the first turn that is left out, "" for none."""

    before: str = ""


async def ls(site: Site, request: Request) -> dict[str, Any]:
    """The sessions, the last used first; with `?q=`, the turns that contain these words.

    With `?notebook=`, only those of it.
    """
    notebook = request.query_params.get("notebook", "")
    if words := request.query_params.get("q", "").strip():
        found = [
            {"session_id": one.session_id, "turn_id": one.turn_id, "title": one_line(one.question)}
            | {"snippet": one_line(one.snippet), "at": local(one.created_at)}
            for one in await site.sessions.search(words, LISTED, notebook)
        ]
        return {"sessions": found}
    asked = [
        (one, run.question)
        for id, run in reversed(site.chats.runs.items())
        if (one := site.chats.session(id)) and notebook in ("", one.notebook)
    ]
    listed = await site.sessions.list(LISTED, one_shots=False, notebook=notebook)
    stored = {one.session_id for one in listed}
    # A session is stored with its first turn; until then, its question is found here.
    new = [
        _listed(one, one.title or session_title(question), one.created_at)
        for one, question in asked
        if one.session_id not in stored
    ]
    return {"sessions": new + [_listed(one, one.title, one.updated_at) for one in listed]}


def _listed(one: Session | SessionInfo, title: str, at: str) -> dict[str, str]:
    return {
        "session_id": one.session_id,
        "title": one_line(title),
        "at": local(at),
        "notebook": one.notebook,
    }


async def notebooks(site: Site, _: Request) -> dict[str, Any]:
    """The notebooks; those that cannot be used have an `error`."""
    found = await to_thread.run_sync(lambda: [*listed_notebooks(folder_of(site.settings))])
    may_choose = site.settings.origins.get("model.name") != COMMAND_LINE
    usable = [one for one in found if isinstance(one, Notebook)]
    return {
        "notebooks": [
            {
                "name": one.name,
                "scope": one_line(one.scope),
                "model": one_line(one.model) if may_choose else "",
            }
            | {"instructions": sanitize(one.instructions)}
            for one in usable
        ],
        "failed": [f"{one} {one.hint}".rstrip() for one in found if not isinstance(one, Notebook)],
    }


async def new(site: Site, request: Request) -> dict[str, Any]:
    """A session, which is stored with its first turn."""
    return await _new(site, (await body(request, New)).notebook)


async def _new(site: Site, name: str) -> dict[str, Any]:
    notebook = load(folder_of(site.settings), name) if name else None
    return {"session_id": (await site.chats.new(notebook)).session.session_id}


async def show(site: Site, request: Request) -> dict[str, Any]:
    """The last turns, or those before the turn `?before=`, or from the turn `?start=` on.

    `asked` is the question that is being answered, or "".
    """
    id, asked = request.path_params["session_id"], request.query_params
    run = site.chats.runs.get(id)
    new = site.chats.session(id) if run else None
    info: Session | SessionInfo
    try:
        info = await site.sessions.info(id)
    except UnknownSession:  # It is stored with its first turn.
        if new is None:
            raise
        info = new
    start = asked.get("start", "")
    turns = [*await site.sessions.turns(id, PAGE + 1, before=asked.get("before", ""), start=start)]
    has_more, kept = len(turns) > PAGE, turns[:PAGE] if start else turns[-PAGE:]
    return {
        "session_id": info.session_id,
        "title": one_line(info.title),
        "at": local(info.created_at),
        "notebook": info.notebook,
        "turns": [turn_document(turn) for turn in kept],
        "has_more": has_more,
        "asked": sanitize(run.question) if run else "",
    }


async def rename(site: Site, request: Request) -> dict[str, Any]:
    await site.sessions.rename(request.path_params["session_id"], (await body(request, Title)).title)
    return {}


async def fork(site: Site, request: Request) -> dict[str, Any]:
    """A new session with the turns of this one; without any, it is stored with its first turn."""
    forked = await site.sessions.fork(request.path_params["session_id"], (await body(request, Fork)).before)
    if not forked.turns:
        return {**await _new(site, forked.notebook), "turns": 0}
    return {"session_id": forked.session_id, "turns": len(forked.turns)}


async def delete(site: Site, request: Request) -> dict[str, Any]:
    id = request.path_params["session_id"]
    await site.chats.forget(id)
    with suppress(UnknownSession):  # Another page has deleted it.
        await site.sessions.info(id)  # `remove` would take a prefix of an id, too.
        await site.sessions.remove(id)
    return {}


async def export(site: Site, request: Request) -> Response:
    """The conversation as a file: `?as=markdown` or `html`."""
    info = await site.sessions.info(request.path_params["session_id"])
    session = await site.sessions.load(info.session_id)
    is_html = request.query_params.get("as") == "html"
    text = export_html(session) if is_html else export_session(session, "markdown")
    name = f"ragchat-{session.session_id}.{'html' if is_html else 'md'}"
    return Response(
        text.encode(errors="replace"),
        media_type="text/html; charset=utf-8" if is_html else "text/markdown; charset=utf-8",
        headers={"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"},
    )


_SESSION = "/api/sessions/{session_id}"
ROUTES = (
    route("/api/sessions", ls),
    route("/api/sessions", new, "POST"),
    route("/api/notebooks", notebooks),
    route(_SESSION, show),
    route(_SESSION, delete, "DELETE"),
    route(f"{_SESSION}/title", rename, "POST"),
    route(f"{_SESSION}/fork", fork, "POST"),
    route(f"{_SESSION}/export", export),
)
