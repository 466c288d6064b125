"""A client's cache of results, as long as the server says they stay fresh. Source: server/utilities/caching.

One client is one authorization context, so `cacheScope` makes no difference here.
"""

from __future__ import annotations

import time
from typing import TypeAlias, TypeVar

from msgspec import UNSET, Struct

from ragmcp.protocol.schema.base import CacheableResult
from ragmcp.protocol.schema.subscriptions import RESOURCE_UPDATED, Change, list_changed

T = TypeVar("T", bound=CacheableResult)

CACHE_BYTES = 16 * 2**20

# A method, and the parameter that its result depends on: the cursor of a list, the URI of a resource.
Key: TypeAlias = tuple[str, str]

STALE_AFTER = {
    list_changed("tools").method: ("tools/list",),
    list_changed("prompts").method: ("prompts/list",),
    list_changed("resources").method: ("resources/list", "resources/templates/list"),
}


class _Entry(Struct, frozen=True):
    result: CacheableResult
    until: float
    size: int


class ResultCache:
    """The newest results, `CACHE_BYTES` at most."""

    def __init__(self) -> None:
        self.age = 0
        """The number of invalidations. An answer to a request sent before the latest one must not be kept."""
        self._entries: dict[Key, _Entry] = {}
        self._size = 0

    def find(self, key: Key, type: type[T]) -> T | None:
        """The fresh result of that type, or None."""
        entry = self._entries.get(key)
        if entry is None or time.monotonic() >= entry.until:
            return None
        return entry.result if isinstance(entry.result, type) else None

    def keep(self, key: Key, result: CacheableResult, size: int, age: int) -> None:
        """Keep a result of `size` bytes while it is fresh. `age` is the cache's when it was requested."""
        if result.ttl_ms is UNSET or result.ttl_ms <= 0 or age != self.age or size > CACHE_BYTES:
            return
        self._remove(key)
        self._entries[key] = _Entry(result, time.monotonic() + result.ttl_ms / 1000, size)
        self._size += size
        while self._size > CACHE_BYTES:
            self._remove(next(iter(self._entries)))

    def invalidate(self, change: Change) -> None:
        """Remove the results that a change makes stale."""
        self.age += 1
        if change.method == RESOURCE_UPDATED:
            self._remove(("resources/read", change.subject))
        for method in STALE_AFTER.get(change.method, ()):
            self.forget(method)

    def forget(self, method: str) -> bool:
        """Remove all results of a method. Returns whether there were any."""
        keys = [key for key in self._entries if key[0] == method]
        for key in keys:
            self._remove(key)
        return bool(keys)

    def clear(self) -> None:
        """Forget everything."""
        self.age += 1
        self._entries.clear()
        self._size = 0

    def _remove(self, key: Key) -> None:
        if entry := self._entries.pop(key, None):
            self._size -= entry.size
