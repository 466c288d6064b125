"""Tokens and registrations, kept by the program between runs or in memory for one run."""

from __future__ import annotations

import time
from typing import Protocol

from msgspec import Struct

# A token is renewed this many seconds before it expires.
EARLY_SECONDS = 30.0


class Registration(Struct, frozen=True):
    """Our identity at one authorization server."""

    client_id: str
    client_secret: str = ""
    # "": as the server's metadata says.
    token_endpoint_auth_method: str = ""


class Grant(Struct, frozen=True):
    """A token for one MCP server, with the data to renew it."""

    issuer: str
    token_endpoint: str
    resource: str
    scope: str
    access_token: str
    token_type: str = "Bearer"
    refresh_token: str = ""
    expires_at: float | None = None  # seconds since 1970; None: the server did not say
    key: str = ""  # the private key that the token is bound to, in PEM (DPoP)

    @property
    def is_expired(self) -> bool:
        """Whether it expires within `EARLY_SECONDS`."""
        return self.expires_at is not None and time.time() > self.expires_at - EARLY_SECONDS

    def __repr__(self) -> str:
        return f"Grant(issuer={self.issuer!r})"  # The repr may be logged.


class Store(Protocol):
    """Registrations by issuer, which must never reach another server; grants by the MCP server's address."""

    def registration(self, issuer: str) -> Registration | None: ...
    def keep_registration(self, issuer: str, registration: Registration) -> None: ...
    def grant(self, url: str) -> Grant | None: ...
    def keep_grant(self, url: str, grant: Grant | None) -> None: ...


class RunStore:
    """Keeps everything until the program ends."""

    def __init__(self) -> None:
        self._registrations: dict[str, Registration] = {}
        self._grants: dict[str, Grant | None] = {}

    def registration(self, issuer: str) -> Registration | None:
        """Our registration at `issuer`."""
        return self._registrations.get(issuer)

    def keep_registration(self, issuer: str, registration: Registration) -> None:
        """Keep a registration."""
        self._registrations[issuer] = registration

    def grant(self, url: str) -> Grant | None:
        """The grant for the server at `url`."""
        return self._grants.get(url)

    def keep_grant(self, url: str, grant: Grant | None) -> None:
        """Keep a grant; None: drop it."""
        self._grants[url] = grant
