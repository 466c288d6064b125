"""An MCP server that wants tokens, and the authorization server that gives them, as one application."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import httpx2

from ragmcp.http.asgi import Endpoint
from ragmcp.http.exchange import Header, Receive, Scope, Send
from tests.support.http_server import limits, served
from tests.support.mcp_server import make_server


class Protected:
    """`good` are the tokens and refresh tokens that are accepted; `count` what was asked for, by path.

    Calls of tools need the right `for_calls`, if it is not "". `metadata` replaces members of what the
    authorization server says of itself; `place`, `resource` and `issuer` are where the MCP server says that
    its metadata, itself and the authorization server are ("": as it is).
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.url = ""
        self.good: set[str] = set()
        self.count: Counter[str] = Counter()
        self.expires_in = 3600
        self.for_calls = ""
        self.metadata: dict[str, Any] = {}
        self.place = self.resource = self.issuer = ""
        self._scope = ""
        self._scopes: dict[str, str] = {}  # by token
        self._endpoint = endpoint
        self._made = 0

    def revoke(self, *, refresh_tokens: bool = False) -> None:
        """Accept no token any more that was given so far."""
        self.good = {token for token in self.good if token.startswith("refresh") and not refresh_tokens}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        self.count[path] += 1
        if path != "/mcp":
            await self._authorize(path, scope, receive, send)
            return
        headers = dict(scope["headers"])
        token = headers.get(b"authorization", b"")[len("Bearer ") :].decode()
        place = self.place or f"{self.url}/.well-known/oauth-protected-resource/mcp"
        if token not in self.good:
            challenge = f'Bearer resource_metadata="{place}", scope="notes"'
            await _respond(send, 401, {}, (b"www-authenticate", challenge.encode()))
        elif headers.get(b"mcp-method") == b"tools/call" and self.for_calls not in self._scopes[token]:
            wanted = f'error="insufficient_scope", scope="{self.for_calls}"'
            challenge = f'Bearer resource_metadata="{place}", {wanted}'
            await _respond(send, 403, {}, (b"www-authenticate", challenge.encode()))
        else:
            await self._endpoint(scope, receive, send)

    async def _authorize(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        if path.startswith("/.well-known/oauth-protected-resource"):
            resource, issuer = self.resource or f"{self.url}/mcp", self.issuer or self.url
            await _respond(send, 200, {"resource": resource, "authorization_servers": [issuer]})
        elif path == "/.well-known/oauth-authorization-server":
            await _respond(send, 200, self._metadata())
        elif path == "/register":
            await _respond(send, 201, {"client_id": "us"})
        elif path == "/authorize":
            query = parse_qs(scope["query_string"].decode())
            self._scope = query["scope"][0]
            back = urlencode({"code": "a-code", "state": query["state"][0], "iss": self.url})
            await _respond(send, 302, {}, (b"location", f"{query['redirect_uri'][0]}?{back}".encode()))
        elif path == "/token":
            await self._token(parse_qs((await receive()).get("body", b"").decode()), send)
        else:
            await _respond(send, 404, {})

    def _metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": True,
            **self.metadata,
        }

    async def _token(self, form: dict[str, list[str]], send: Send) -> None:
        self.count[form["grant_type"][0]] += 1
        if form["grant_type"] == ["refresh_token"] and form["refresh_token"][0] not in self.good:
            await _respond(send, 400, {"error": "invalid_grant", "error_description": "It was revoked."})
            return
        self._made += 1
        token = {"access_token": f"access-{self._made}", "refresh_token": f"refresh-{self._made}"}
        self.good |= {*token.values()}
        self._scopes[token["access_token"]] = self._scope
        await _respond(send, 200, {**token, "token_type": "Bearer", "expires_in": self.expires_in})


async def _respond(send: Send, status: int, body: Any, *headers: Header) -> None:
    start = [(b"content-type", b"application/json"), *headers]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})


@asynccontextmanager
async def protected(host: str = "127.0.0.1", certificate: Path | None = None) -> AsyncIterator[Protected]:
    """The application, served, with TLS if there is a `certificate`; its `url` is its root, by this name."""
    # Its tests name it as they like.
    async with Endpoint(make_server(), limits(), guard=None) as endpoint:
        app = Protected(endpoint)
        async with served(app, certificate=certificate) as url:
            app.url = url.replace("127.0.0.1", host)
            yield app


class Agreeing:
    """A user's browser; the user agrees to everything."""

    redirect_uri = "http://127.0.0.1:9/callback"

    def __init__(self) -> None:
        self.visited: list[str] = []

    async def visit(self, url: str, state: str) -> str:  # noqa: ARG002
        """Where the page redirects to."""
        self.visited.append(url)
        async with httpx2.AsyncClient() as client:
            return str((await client.get(url)).headers["location"])
