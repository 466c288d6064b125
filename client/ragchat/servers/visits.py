"""URL elicitation of 2025-11-25: pages that the user must visit before a server answers a request.

The server rejects the request with an error that names the pages. Once the user is done, the request is
repeated. Source: client/elicitation, "URL Elicitation Required Error".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import anyio
import msgspec
from msgspec import UNSET, UnsetType

from ragcommon.errors import DECODE_ERRORS
from ragmcp.errors import InputDeclined, WireError
from ragmcp.protocol.schema.input import PAGES_REQUIRED, Elicit, PagesRequired

if TYPE_CHECKING:
    from ragchat.servers.asking import User
    from ragchat.servers.clock import Clock

T = TypeVar("T")

# The maximum of visits for one request: a server could ask endlessly.
MAX_VISITS = 5
NOT_VISITED = "The user did not visit the page that the server asked for: {url}"


@dataclass(frozen=True)
class Address:
    """The address of a page that a server wants the user to open, with its `host` as browsers read it.

    An address that is no web page must be declined without asking; `warnings` are shown first.
    """

    url: str
    host: str
    is_web_page: bool
    warnings: list[str]

    @classmethod
    def of(cls, url: str | UnsetType) -> Address:
        text = "" if url is UNSET else url
        try:
            parts = urlsplit(text)
            host = (parts.hostname or "").encode("idna").decode()
        except ValueError:
            parts, host = urlsplit(""), ""
        # Browsers read a backslash as a slash, so the host could differ from the one shown.
        is_plain = text.isprintable() and not set(text) & set(" \\")
        if parts.scheme not in ("https", "http") or not host or not is_plain:
            return cls(text, host, False, ["This is not the address of a web page: it is declined."])
        warnings = {
            "The address is not encrypted, or hides its host behind a name.": parts.scheme == "http"
            or parts.username is not None,
            "The page is on this machine or in your own network.": _is_near(host),
            "The host has letters that may look like others.": "xn--" in host,
        }
        return cls(text, host, True, [warning for warning, holds in warnings.items() if holds])


def _is_near(host: str) -> bool:
    """Whether the host is not on the public internet, as far as its name or address shows."""
    from ragmcp.http.reach import Zone, is_loopback, zone_of

    try:
        return zone_of(host) is not Zone.PUBLIC
    except ValueError:
        return is_loopback(host)


class Visits:
    """The visits to the pages of one server. `clock` pauses during a visit."""

    def __init__(self, server: str, user: User | None, clock: Clock) -> None:
        self._server = server
        self._user = user
        self._clock = clock
        # A list: concurrent requests may need the same page.
        self._open: list[tuple[str, anyio.Event]] = []

    def complete(self, elicitation_id: str) -> None:
        """Handle the server's notification that the user is done with a page; unknown ids are ignored."""
        for id, done in self._open:
            if id == elicitation_id:
                done.set()

    async def answer(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The response to a request, after the visits that it needs.

        Raises InputDeclined if the user does not visit a page, and what `ask` raises.
        """
        left = MAX_VISITS
        while True:
            try:
                return await ask()
            except WireError as error:
                pages = _pages(error)
                left -= len(pages)
                if self._user is None or not pages or left < 0:
                    raise
            for page in pages:
                await self._go_to(self._user, page)

    async def _go_to(self, user: User, page: Elicit) -> None:
        done = anyio.Event()
        visit = (page.elicitation_id or "", done)
        self._open.append(visit)
        try:
            with self._clock.stopped():
                if not await user.visit(self._server, page, done):
                    raise InputDeclined(NOT_VISITED.format(url=page.url))
        finally:
            self._open.remove(visit)


def _pages(error: WireError) -> list[Elicit]:
    """The pages that an error names; none for other errors."""
    if error.code != PAGES_REQUIRED:
        return []
    try:
        found = msgspec.convert(error.data, PagesRequired).elicitations
    except DECODE_ERRORS:
        return []
    return [page for page in found if page.mode == "url"]
