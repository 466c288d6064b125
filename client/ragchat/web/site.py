"""What the routes share: the memory, the sessions, the servers, and how requests are read and answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ragchat.memory.client import MemoryClient
from ragchat.servers.manager import ServerManager
from ragchat.sessions.store import SessionStore
from ragchat.web.chats import Chats
from ragchat.web.dialogs import Dialogs
from ragchat.web.errors import BadRequest, TooLarge, error_response
from ragchat.web.loads import Loads
from ragchat.web.programs import Programs
from ragchat.web.streaming import Streamed, Tell
from ragcommon.errors import DECODE_ERRORS, decode_reason
from ragconfig.settings import Settings

T = TypeVar("T")

# Larger bodies than any question, form or setting; files have their own limit.
MAX_BODY = 2 << 20


@dataclass(frozen=True)
class Site:
    """One running page. Every view uses the same memory; each open session has a conversation of its own."""

    settings: Settings
    memory: MemoryClient
    servers: ServerManager
    sessions: SessionStore
    chats: Chats
    loads: Loads
    programs: Programs
    dialogs: Dialogs = field(default_factory=Dialogs)


Handler = Callable[[Site, Request], Awaitable[Any]]


def route(
    path: str, handler: Handler, *methods: str, refusal: Callable[[Exception], Response] = error_response
) -> Route:
    """A route whose handler returns a Response, or what is sent as JSON; `refusal` makes one of an error.

    Without `methods` it answers GET.
    """

    async def endpoint(request: Request) -> Response:
        try:
            result = await handler(request.app.state.site, request)
        except Exception as error:
            return refusal(error)
        return result if isinstance(result, Response) else json_response(result)

    return Route(path, endpoint, methods=methods or ["GET"])


def streamed(path: str, work: Callable[[Site, Tell], Awaitable[None]], *methods: str) -> Route:
    """A route that answers with the events that the work tells."""

    async def handler(site: Site, _: Request) -> Response:
        return Streamed(partial(work, site))

    return route(path, handler, *methods)


def json_response(document: object) -> Response:
    return Response(
        msgspec.json.encode(document),
        media_type="application/json",
        headers={"cache-control": "no-store"},
    )


async def body(request: Request, kind: type[T]) -> T:
    """The JSON body of a request. Raises BadRequest, TooLarge."""
    # A form of another page can send text, but not this type.
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise BadRequest("its type is not application/json")
    try:
        return msgspec.json.decode(await read_body(request), type=kind)
    except RecursionError:
        raise BadRequest("it is nested too deeply") from None
    except DECODE_ERRORS as error:
        raise BadRequest(decode_reason(error)) from None


async def read_body(request: Request) -> bytes:
    """Raises TooLarge."""
    read = bytearray()
    async for part in request.stream():
        read += part
        if len(read) > MAX_BODY:
            raise TooLarge("The request", f"{MAX_BODY:,} bytes")
    return bytes(read)
