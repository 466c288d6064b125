"""Lists from all their pages, and cached results. Source: server/utilities/pagination and caching."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from msgspec import UNSET, UnsetType

from ragmcp.client.core import Core
from ragmcp.errors import InvalidParams, UnreadableAnswer, WireError
from ragmcp.protocol.results import UNKNOWN_SERVER, complete, server_info
from ragmcp.protocol.schema.base import CacheableResult, ListParams, Page, Params

C = TypeVar("C", bound=CacheableResult)
P = TypeVar("P", bound=Page)
T = TypeVar("T")

# A list with more pages is taken to be endless.
MAX_PAGES = 10_000


async def list_all(
    core: Core, method: str, type: type[P], items: Callable[[P], Iterable[T]], timeout: float | None
) -> list[T]:
    """The `items` of all pages; `timeout` (seconds) is for each page. Raises as `Core.request`."""
    try:
        pages = await _pages(core, method, type, timeout)
    except WireError as error:
        # "If a cursor becomes invalid, discard all cached pages and re-fetch from the beginning."
        if error.code != InvalidParams.rpc_code or not core.cache.forget(method):
            raise
        pages = await _pages(core, method, type, timeout)
    return [item for page in pages for item in items(page)]


async def _pages(core: Core, method: str, type: type[P], timeout: float | None) -> list[P]:
    pages: list[P] = []
    cursor: str | UnsetType = UNSET
    while len(pages) < MAX_PAGES:
        params = ListParams(meta=core.meta(), cursor=cursor)
        page = await request_cached(core, method, cursor or "", params, type, timeout)
        pages.append(page)
        if core.server is UNKNOWN_SERVER:
            core.server = server_info(page)
        cursor = page.next_cursor
        if cursor is UNSET:
            return pages
    raise UnreadableAnswer(method, f"its list does not end within {MAX_PAGES:,} pages")


async def request_cached(
    core: Core, method: str, subject: str, params: Params, type: type[C], timeout: float | None
) -> C:
    """As `Core.request`, or the cached result if the last answer about this `subject` is still fresh.

    A result that required input is not cached: it depends on more than the request.
    """
    age = core.cache.age
    if (cached := core.cache.find((method, subject), type)) is not None:
        return cached
    answer = await core.channel.request(method, params, timeout)
    if (result := complete(method, answer, type)) is None:
        return await core.go_on(method, params, type, timeout, answer)
    core.cache.keep((method, subject), result, len(memoryview(answer)), age)
    return result
