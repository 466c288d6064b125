"""The routes of the HTTP server, and which of them need the token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from ragcommon.peer import is_of_another_user
from ragcommon.server_note import CHALLENGE, OWNER_PATH, PROOF, Note
from ragmcp.http.access import Access, Authorize, Guard
from ragmcp.http.asgi import Endpoint
from ragmcp.http.errors import HttpError
from ragmcp.oauth.bearer import SharedToken
from ragmcp.protocol.eras import LEGACY_REVISIONS, MODERN_REVISIONS
from ragmemory.http import openapi, page
from ragmemory.http.memories import METADATA, NamedMemories
from ragmemory.http.metrics import CONTENT_TYPE, Metrics

HEALTH, LIVE, READY = "/health", "/health/live", "/health/ready"
MCP, SSE, MESSAGES = "/mcp", "/sse", "/messages"
OPENAPI = "/openapi.json"


def make_app(
    views: Views,
    access: Access,
    limited: Callable[[Authorize | None], Authorize],
    authorize: Authorize | None,
    owner: Endpoint,
    note: Note,
    memories: NamedMemories | None,
) -> ASGIApp:
    """The whole application; `memories` have their own tokens.

    The page and the paths of `/health` need no token: they contain nothing private, and neither a browser nor
    a supervisor has a token. `authorize` allows all other paths, even paths that do not exist. `owner` serves
    the bearer of the key in `note`. `limited` adds the limit on requests.
    """
    endpoint = views.endpoint
    router = Router(
        [
            Route("/", views.home),
            Route(HEALTH, views.health),
            Route(LIVE, views.live),
            Route(READY, views.ready),
            Route("/.well-known/mcp", views.description),
            Route("/metrics", views.metrics_text),
            Route(OPENAPI, views.openapi),
        ],
        redirect_slashes=False,
    )
    # Not among the routes, which would call a method with a request.
    apps: dict[str, ASGIApp] = {
        MCP: endpoint,
        SSE: endpoint.sse,
        MESSAGES: endpoint.messages,
        OWNER_PATH: owner,
    }

    def guard(authorize: Authorize | None) -> Guard:
        return Guard(access, views.metrics.count_refused, limited(authorize))

    private, public = guard(authorize), guard(None)
    guards = dict.fromkeys(("/", HEALTH, LIVE, READY), public)
    guards[OWNER_PATH] = guard(SharedToken(note.key))
    named = guard(memories.authorize) if memories else private

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if memories is not None and path.startswith(f"{MCP}/"):
            await named.admit(memories, scope, receive, send)
        elif memories is not None and memories.issuer is not None and path.startswith(f"{METADATA}{MCP}/"):
            await public.admit(memories.describe, scope, receive, send)
        else:
            await guards.get(path, private).admit(apps.get(path, router), scope, receive, send)

    return app


class UserNotAllowed(HttpError):
    """The server has no token."""

    status = 403
    sentence = "This memory belongs to another user of this machine; to share it, its server needs a token."


async def own_user(scope: Scope, _: str | None) -> None:
    """Allow the user who runs the server, where the system can tell. Raises UserNotAllowed."""
    if is_of_another_user(scope["client"], scope["server"]):
        raise UserNotAllowed


@dataclass(frozen=True)
class Views:
    """The answers to all requests that are not MCP."""

    endpoint: Endpoint
    metrics: Metrics
    command: Sequence[str]  # that starts `ragmemory`, as the page shows it
    proof: Callable[[str], str]
    why_not_ready: Callable[[], Awaitable[str]]  # returns a sentence, or ""
    needs_token: bool
    plain_form: bool  # whether the endpoint reads it

    async def home(self, request: Request) -> Response:
        """The page for a browser; the same as JSON for a program."""
        if "text/html" not in request.headers.get("accept", ""):
            return JSONResponse(self._description(request), headers={"Vary": "Accept"})
        server, url = self.endpoint.server, _url(request, MCP)
        html = page.render(server.info.version, url, server.tools, self.command, token=self.needs_token)
        return HTMLResponse(html, headers=page.HEADERS)

    async def description(self, request: Request) -> Response:
        """The server's tools and endpoints."""
        return JSONResponse(self._description(request))

    async def openapi(self, request: Request) -> Response:
        """The paths, and in the plain form the tools, for programs that read OpenAPI."""
        server = self.endpoint.server
        described = openapi.describe(
            server.info.version,
            _url(request, ""),
            server.tools.values(),
            plain_form=self.plain_form,
            needs_token=self.needs_token,
        )
        return JSONResponse(described)

    def _description(self, request: Request) -> dict[str, Any]:
        server = self.endpoint.server
        return {
            "name": server.info.name,
            "version": server.info.version,
            "endpoints": {
                "mcp": _url(request, MCP),
                "sse": _url(request, SSE),
                "messages": _url(request, MESSAGES),
                "openapi": _url(request, OPENAPI),
            },
            "transports": ["streamable-http", "sse"],
            "revisions": [*MODERN_REVISIONS, *LEGACY_REVISIONS],
            "capabilities": msgspec.to_builtins(server.capabilities),
            "tools": list(server.tools),
            "authorization": "bearer" if self.needs_token else "none",
        }

    async def health(self, request: Request) -> Response:
        """Whether the server runs; with a challenge, which server it is."""
        info = self.endpoint.server.info
        answer = {"status": "ok", "name": info.name, "version": info.version}
        if challenge := request.query_params.get(CHALLENGE):
            answer[PROOF] = self.proof(challenge)
        return JSONResponse(answer)

    async def live(self, _: Request) -> Response:
        """Whether the process runs."""
        return JSONResponse({"status": "ok"})

    async def ready(self, _: Request) -> Response:
        """Whether the memory can be read; if not, why."""
        if reason := await self.why_not_ready():
            return JSONResponse({"status": "unavailable", "reason": reason}, 503)
        return JSONResponse({"status": "ok"})

    async def metrics_text(self, _: Request) -> Response:
        """The metrics."""
        return Response(await self.metrics.text(self.endpoint), media_type=CONTENT_TYPE)


def _url(request: Request, path: str) -> str:
    """The address as the client wrote it, because this server may have many names."""
    # Not `request.url`, which fails for an invalid host: with a token any host is allowed.
    host = request.headers.get("host") or "{}:{}".format(*request.scope["server"])
    # A proxy with TLS in front says so. As with Host, only the client itself sees what it claims.
    forwarded = request.headers.get("x-forwarded-proto")
    scheme = forwarded if forwarded in ("http", "https") else request.scope["scheme"]
    return f"{scheme}://{host}{path}"
