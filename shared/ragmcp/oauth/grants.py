"""Ways to obtain a token: a user's login, a refresh token.

Source: OAuth 2.1, RFC 7636 (PKCE), RFC 8707 (resource), RFC 9207 (issuer).
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import parse_qs, quote, urlsplit

import msgspec
from httpx2 import URL
from msgspec import Struct

from ragmcp.oauth.discovery import ServerMetadata
from ragmcp.oauth.dpop import Prover, base64url
from ragmcp.oauth.errors import AuthorizationFailed
from ragmcp.oauth.redirect import has_state
from ragmcp.oauth.registration import Identity, register
from ragmcp.oauth.store import Grant, Registration, Store
from ragmcp.oauth.web import Answer, Web
from ragmcp.protocol.decoding import DECODE_ERRORS


class TokenRequest(Struct, frozen=True):
    """A token to obtain; `scope` has names separated by spaces."""

    server: ServerMetadata
    resource: str
    scope: str


class TokenSource(Protocol):
    """A way to obtain a token."""

    async def obtain(self, web: Web, wanted: TokenRequest, prover: Prover | None, store: Store) -> Grant:
        """Raises AuthorizationFailed."""


class UserAgent(Protocol):
    """The user's browser, and its redirect URI."""

    @property
    def redirect_uri(self) -> str: ...

    async def visit(self, url: str, state: str) -> str:
        """Let the user visit `url`; returns the address of the redirect with this `state`."""


class Login:
    """A user logs in: the authorization code grant with PKCE."""

    def __init__(self, identity: Identity, user_agent: UserAgent) -> None:
        self._identity = identity
        self._user_agent = user_agent

    async def obtain(self, web: Web, wanted: TokenRequest, prover: Prover | None, store: Store) -> Grant:
        """As `TokenSource.obtain`."""
        server, redirect_uri = wanted.server, self._user_agent.redirect_uri
        if not server.authorization_endpoint:
            raise AuthorizationFailed(server.issuer, "it has no page to log in")
        if "S256" not in server.code_challenge_methods_supported:
            raise AuthorizationFailed(
                server.issuer, "it does not support PKCE, without which codes are stolen"
            )
        us = await register(web, server, self._identity, redirect_uri, store)
        verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(24)
        query = {
            "response_type": "code",
            "client_id": us.client_id,
            "redirect_uri": redirect_uri,
            "state": state,
            "code_challenge": base64url(hashlib.sha256(verifier.encode()).digest()),
            "code_challenge_method": "S256",
            "resource": wanted.resource,
            **scope_of(wanted),
        }
        # Normalized like our requests: a browser might see another host in the unencoded address.
        page = URL(server.authorization_endpoint).copy_merge_params(query)
        returned = await self._user_agent.visit(str(page), state)
        form = {
            "grant_type": "authorization_code",
            "code": code_of(returned, server, state),
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        return await request_token(web, wanted, us, form, prover)


async def refresh(
    web: Web, grant: Grant, us: Registration, server: ServerMetadata, prover: Prover | None
) -> Grant:
    """A new token by a refresh token. Raises AuthorizationFailed."""
    wanted = TokenRequest(server, grant.resource, grant.scope)
    form = {"grant_type": "refresh_token", "refresh_token": grant.refresh_token}
    renewed = await request_token(web, wanted, us, form, prover)
    return msgspec.structs.replace(renewed, refresh_token=renewed.refresh_token or grant.refresh_token)


class _Token(Struct, frozen=True):
    access_token: str
    token_type: str = "Bearer"
    expires_in: float | None = None
    refresh_token: str = ""
    scope: str = ""


class _Refusal(Struct, frozen=True):
    error: str = ""
    error_description: str = ""


async def request_token(
    web: Web, wanted: TokenRequest, us: Registration, form: Mapping[str, str], prover: Prover | None
) -> Grant:
    """Ask the token endpoint. Raises AuthorizationFailed."""
    endpoint = wanted.server.token_endpoint
    headers, credentials = _authentication(us, wanted.server, form)
    whole = {**form, **credentials, "resource": wanted.resource}

    async def ask() -> Answer:
        proof = {"dpop": prover.proof("POST", endpoint)} if prover else {}
        return await web.post(endpoint, form=whole, headers={**headers, **proof})

    answer = await ask()
    if prover and (nonce := answer.headers.get("dpop-nonce")):
        prover.note_nonce(endpoint, nonce)
        if _refusal(answer).error == "use_dpop_nonce":
            answer = await ask()
    if answer.status != 200:
        refusal = _refusal(answer)
        reason = refusal.error_description or refusal.error or f"its status is {answer.status}"
        raise AuthorizationFailed(wanted.server.issuer, f"it gave no token ({reason.rstrip('.')})")
    try:
        token = msgspec.json.decode(answer.body, type=_Token)
    except DECODE_ERRORS as error:
        raise AuthorizationFailed(wanted.server.issuer, f"its token is not usable: {error}") from None
    return Grant(
        issuer=wanted.server.issuer,
        token_endpoint=endpoint,
        resource=wanted.resource,
        scope=token.scope or wanted.scope,
        access_token=token.access_token,
        token_type=token.token_type,
        refresh_token=token.refresh_token,
        expires_at=None if token.expires_in is None else time.time() + token.expires_in,
        key=prover.pem if prover else "",
    )


def _authentication(
    us: Registration, server: ServerMetadata, form: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The headers and form fields of client authentication."""
    if "client_assertion" in form:
        return {}, {}
    methods = server.token_endpoint_auth_methods_supported
    method = us.token_endpoint_auth_method or ("basic" if "client_secret_basic" in methods else "post")
    if not us.client_secret or method == "none":
        return {}, {"client_id": us.client_id}
    if method.endswith("post"):
        return {}, {"client_id": us.client_id, "client_secret": us.client_secret}
    pair = f"{quote(us.client_id, safe='')}:{quote(us.client_secret, safe='')}"
    return {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}, {}


def _refusal(answer: Answer) -> _Refusal:
    try:
        return msgspec.json.decode(answer.body, type=_Refusal)
    except DECODE_ERRORS:
        return _Refusal()


def code_of(returned: str, server: ServerMetadata, state: str) -> str:
    """The code in the redirect address. Raises AuthorizationFailed.

    The issuer is compared first and exactly: nothing else in a response of another server may be used.
    """
    query = {name: values[0] for name, values in parse_qs(urlsplit(returned).query).items()}
    issuer = query.get("iss")
    if issuer is None and server.authorization_response_iss_parameter_supported:
        raise AuthorizationFailed(server.issuer, "the response to the login does not name its issuer")
    if issuer is not None and issuer != server.issuer:
        raise AuthorizationFailed(server.issuer, "the response to the login is from another server")
    if not has_state(returned, state):
        raise AuthorizationFailed(server.issuer, "the response belongs to another login")
    if "code" not in query:
        reason = query.get("error_description") or query.get("error") or "the response has no code"
        raise AuthorizationFailed(server.issuer, reason.rstrip("."))
    return query["code"]


def scope_of(wanted: TokenRequest) -> dict[str, Any]:
    return {"scope": wanted.scope} if wanted.scope else {}
