"""Ways to obtain a token that the programs do not use: client credentials and an assertion (RFC 7523)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable

from ragmcp.oauth.dpop import Prover
from ragmcp.oauth.grants import TokenRequest, request_token, scope_of
from ragmcp.oauth.store import Grant, Registration, Store
from ragmcp.oauth.web import Web

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ASSERTION_SECONDS = 300


class ClientCredentials:
    """The client credentials grant, with a secret or a private key (PEM)."""

    def __init__(self, registration: Registration, private_key: str = "", algorithm: str = "ES256") -> None:
        self._registration = registration
        self._private_key = private_key
        self._algorithm = algorithm

    async def obtain(self, web: Web, wanted: TokenRequest, prover: Prover | None, store: Store) -> Grant:  # noqa: ARG002
        """As `TokenSource.obtain`."""
        form = {"grant_type": "client_credentials", **scope_of(wanted)}
        if self._private_key:
            form |= {"client_assertion_type": _ASSERTION_TYPE, "client_assertion": self._assertion(wanted)}
        return await request_token(web, wanted, self._registration, form, prover)

    def _assertion(self, wanted: TokenRequest) -> str:
        import jwt

        us, now = self._registration.client_id, int(time.time())
        claims = {"iss": us, "sub": us, "aud": wanted.server.issuer, "iat": now}
        claims |= {"exp": now + _ASSERTION_SECONDS, "jti": secrets.token_urlsafe(16)}
        return jwt.encode(claims, self._private_key, self._algorithm)


class Assertion:
    """The JWT bearer grant: `make` returns an assertion for the token request, such as a workload's."""

    def __init__(
        self, registration: Registration, make: Callable[[Web, TokenRequest], Awaitable[str]]
    ) -> None:
        self._registration = registration
        self._make = make

    async def obtain(self, web: Web, wanted: TokenRequest, prover: Prover | None, store: Store) -> Grant:  # noqa: ARG002
        """As `TokenSource.obtain`."""
        form = {"grant_type": JWT_BEARER, "assertion": await self._make(web, wanted), **scope_of(wanted)}
        return await request_token(web, wanted, self._registration, form, prover)
