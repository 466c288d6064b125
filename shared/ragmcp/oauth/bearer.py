"""The server's half: bearer tokens, and refusals that say where to get one.

Source: basic/authorization, RFC 6750, RFC 9728.
"""

from __future__ import annotations

import hmac

from ragmcp.http.errors import HttpError
from ragmcp.http.exchange import Scope


class Unauthorized(HttpError):
    """No token, or a wrong one."""

    reason: str
    # Where the resource metadata says who gives tokens (RFC 9728); "" if there is no such metadata.
    metadata: str = ""
    status = 401
    sentence = "This server requires its token: {reason}."
    hint = "Send the server's token as `Authorization: Bearer …`."

    def headers(self) -> dict[str, str]:
        at = f', resource_metadata="{self.metadata}", scope="read"' if self.metadata else ""
        return {"www-authenticate": f'Bearer realm="mcp"{at}'}


class InsufficientScope(HttpError):
    """A valid token whose rights do not suffice. Source: basic/authorization, "Scope Challenge Handling"."""

    what: str
    scope: str
    metadata: str = ""
    status = 403
    sentence = "This token may not use {what}, which needs the right {scope!r}."
    hint = "Ask for a token with that right."

    def headers(self) -> dict[str, str]:
        at = f', resource_metadata="{self.metadata}"' if self.metadata else ""
        return {"www-authenticate": f'Bearer error="insufficient_scope", scope="{self.scope}"{at}'}


class SharedToken:
    """Lets in what carries this token, as `authorize` of `ragmcp.http.access.Guard`."""

    def __init__(self, token: str) -> None:
        """Raises ValueError for an empty token: that of an `Authorization` header of another scheme."""
        if not token:
            raise ValueError("The token is empty, so any client could send it.")
        self._token = token.encode()

    async def __call__(self, _: Scope, authorization: str | None) -> None:
        """Raises Unauthorized."""
        if authorization is None:
            raise Unauthorized("none was sent")
        if not hmac.compare_digest(bearer_token(authorization).encode("latin-1"), self._token):
            raise Unauthorized("the token sent is wrong")


def bearer_token(authorization: str) -> str:
    """The token of an `Authorization` header; "" for another scheme."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
