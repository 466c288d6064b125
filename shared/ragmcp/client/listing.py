"""Lists from all their pages, and what of it is still fresh. Source: server/utilities/pagination, caching."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from msgspec import UNSET, UnsetType

from ragmcp.errors import InvalidParams, UnreadableAnswer, WireError
from ragmcp.protocol.results import UNKNOWN_SERVER, complete, server_info
from ragmcp.protocol.schema.base import CacheableResult, ListParams, Page, Params

if TYPE_CHECKING:
    from ragmcp.client.client import Client

C = TypeVar("C", bound=CacheableResult)
P = TypeVar("P", bound=Page)

# A list that goes on beyond this has no end.
MAX_PAGES = 10_000


async def every_page(client: Client, method: str, type: type[P], timeout: float | None) -> list[P]:
    """The pages of a list; `timeout` (seconds) is for each. Raises as `Client.request`."""
    try:
        return await _pages(client, method, type, timeout)
    except WireError as error:
        # "If a cursor becomes invalid, discard all cached pages and re-fetch from the beginning."
        if error.code != InvalidParams.rpc_code or not client.cache.forget(method):
            raise
    return await _pages(client, method, type, timeout)


async def _pages(client: Client, method: str, type: type[P], timeout: float | None) -> list[P]:
    pages: list[P] = []
    cursor: str | UnsetType = UNSET
    while len(pages) < MAX_PAGES:
        params = ListParams(meta=client.meta(), cursor=cursor)
        page = await fresh(client, method, cursor or "", params, type, timeout)
        pages.append(page)
        if client.server is UNKNOWN_SERVER:
            client.server = server_info(page)
        cursor = page.next_cursor
        if cursor is UNSET:
            return pages
    raise UnreadableAnswer(method, f"its list does not end within {MAX_PAGES:,} pages")


async def fresh(
    client: Client, method: str, subject: str, params: Params, type: type[C], timeout: float | None
) -> C:
    """As `Client.request`, unless the last answer about this `subject` is still fresh.

    What took input is not kept: it depends on more than was asked.
    """
    age = client.cache.age
    if (found := client.cache.find((method, subject), type)) is not None:
        return found
    answer = await client.channel.request(method, params, timeout)
    if (result := complete(method, answer, type)) is None:
        return await client.go_on(method, params, type, timeout, answer)
    client.cache.keep((method, subject), result, len(memoryview(answer)), age)
    return result
