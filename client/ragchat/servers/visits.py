"""Pages that a server of 2025-11-25 wants the user to visit before it answers a request.

It refuses the request with an error that names them. Once the user is done, the request is repeated.
Source: client/elicitation, "URL Elicitation Required Error".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import anyio
import msgspec

from ragmcp.errors import InputDeclined, WireError
from ragmcp.protocol.decoding import DECODE_ERRORS
from ragmcp.protocol.schema.input import PAGES_REQUIRED, Elicit, PagesRequired

if TYPE_CHECKING:
    from ragchat.servers.asking import User
    from ragchat.servers.clock import Clock

T = TypeVar("T")

# A server that wants more visits than this for one request will not stop by itself.
MAX_VISITS = 5
NOT_VISITED = "The user did not visit the page that the server asked for: {url}"


class Visits:
    """The visits to the pages of one server. `clock` pauses during a visit."""

    def __init__(self, server: str, user: User | None, clock: Clock) -> None:
        self._server = server
        self._user = user
        self._clock = clock
        # Two requests at once may need the same page.
        self._open: list[tuple[str, anyio.Event]] = []

    def complete(self, elicitation_id: str) -> None:
        """The server says that the user is done with a page; unknown ones are ignored."""
        for id, done in self._open:
            if id == elicitation_id:
                done.set()

    async def answer(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer of a request, after the visits that it needs.

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
    """The pages that an error names; none if it is another error."""
    if error.code != PAGES_REQUIRED:
        return []
    try:
        found = msgspec.convert(error.data, PagesRequired).elicitations
    except DECODE_ERRORS:
        return []
    return [page for page in found if page.mode == "url"]
