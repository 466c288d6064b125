"""Tokens of an identity provider: JWTs (RFC 9068) that are signed with one of its published keys.

Needs the package PyJWT with `cryptography`, which is imported at the first token.
"""

from __future__ import annotations

import logging
from time import monotonic
from typing import TYPE_CHECKING, Any

import anyio

from ragmcp.errors import RagMcpError
from ragmcp.http.reach import Reach
from ragmcp.oauth.discovery import find_server
from ragmcp.oauth.errors import AuthorizationFailed
from ragmcp.oauth.web import check_secure, open_web
from ragmemory.types.rights import RIGHTS, Right

if TYPE_CHECKING:
    from jwt import PyJWK

log = logging.getLogger(__name__)

# Signatures with a public key. With HS256 a public key, which everyone knows, could serve as the secret.
ALGORITHMS = ("RS256", "ES256", "EdDSA")
# By how much the clocks of the two machines may differ.
LEEWAY_SECONDS = 30
# Keys are read again when a token names an unknown one, and after an hour: the provider may withdraw one.
KEYS_SECONDS = 3600.0
# Not more often, whatever tokens come.
RETRY_SECONDS = 60.0
FETCH_SECONDS = 10.0


class InvalidToken(Exception):
    """The message is the end of a sentence."""


class Issuer:
    """The provider at the URL `issuer`; its keys are at `jwks`, by default where its metadata says."""

    def __init__(self, issuer: str, jwks: str = "") -> None:
        """Raises AuthorizationFailed for a URL that is neither HTTPS nor loopback."""
        check_secure(issuer)
        check_secure(jwks)
        self.url = issuer
        self._jwks = jwks
        self._keys: dict[str | None, PyJWK] = {}
        self._read_at = self._tried_at = float("-inf")
        self._reading = anyio.Lock()

    async def check(self, token: str, audience: str) -> tuple[Right | None, float, str]:
        """What a token for `audience` allows, None if nothing; when it ends, as Unix time; and whose it is.

        Raises InvalidToken.
        """
        import jwt

        try:
            key = await self._key(jwt.get_unverified_header(token).get("kid"))
            claims = jwt.decode(
                *(token, key, ALGORITHMS),
                audience=audience,
                issuer=self.url,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud"], "enforce_minimum_key_length": True},
            )
        except jwt.ExpiredSignatureError:
            raise InvalidToken("the token sent has expired") from None
        # RecursionError: JSON that is nested too deeply.
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
            raise InvalidToken("the token sent is wrong") from None
        # Some providers call it `scp`, and some write a list.
        scopes: Any = claims.get("scope", claims.get("scp"))
        if isinstance(scopes, str):
            scopes = scopes.split()
        rights = [right for right in RIGHTS if isinstance(scopes, list) and right in scopes]
        right = rights[-1] if rights else None
        return right, float(claims["exp"]) + LEEWAY_SECONDS, claims.get("sub", "")

    async def _key(self, id: str | None) -> PyJWK:
        """Raises InvalidToken for a key that the provider does not publish."""
        is_old = monotonic() > self._read_at + KEYS_SECONDS
        # Known keys are used while another request waits for new ones.
        if id not in self._keys or (is_old and not self._reading.locked()):
            async with self._reading:
                if monotonic() > self._tried_at + RETRY_SECONDS:
                    await self._read()
        if id not in self._keys:
            raise InvalidToken("the token sent is wrong")
        return self._keys[id]

    async def _read(self) -> None:
        from jwt import PyJWKSet
        from jwt.exceptions import PyJWTError

        self._tried_at = monotonic()
        try:
            with anyio.fail_after(FETCH_SECONDS):
                async with open_web(Reach(self._jwks or self.url)) as web:
                    place = self._jwks or (await find_server(web, self.url)).jwks_uri
                    found = await web.document(place, dict[str, Any])
            if found is None:
                raise AuthorizationFailed(place, "its answer is not a JSON object")
            keys = PyJWKSet.from_dict(found).keys
            self._keys = {key.key_id: key for key in keys if key.public_key_use != "enc"}
            self._read_at = self._tried_at
        except (RagMcpError, TimeoutError, PyJWTError, ValueError, TypeError) as error:
            reason = str(error) or f"they did not arrive within {FETCH_SECONDS:g} s"
            log.warning("The keys of %s cannot be read: %s", self.url, reason)
