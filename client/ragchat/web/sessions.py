"""The conversations: their list, and what has been asked in each."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request

from ragchat.sessions.types import Session
from ragchat.web.site import Site, route
from ragchat.web.turns import turn_document

LISTED = 200


async def ls(site: Site, _: Request) -> dict[str, Any]:
    return {"sessions": msgspec.to_builtins(await site.sessions.list(LISTED))}


async def new(site: Site, _: Request) -> dict[str, Any]:
    return session_document((await site.chats.new()).session)


async def show(site: Site, request: Request) -> dict[str, Any]:
    chat = await site.chats.get(request.path_params["session_id"])
    return session_document(chat.session)


ROUTES = (
    route("/api/sessions", ls),
    route("/api/sessions", new, "POST"),
    route("/api/sessions/{session_id}", show),
)


def session_document(session: Session) -> dict[str, Any]:
    return {
        "session_id": session.session_id,
        "title": session.title,
        "created_at": session.created_at,
        "turns": [turn_document(turn) for turn in session.turns],
    }
