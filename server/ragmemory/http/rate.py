"""The limit on the requests of one address. It comes before the tokens, because guesses of them count too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from time import monotonic

from ragmcp.http.access import Authorize
from ragmcp.http.errors import HttpError
from ragmcp.http.exchange import Scope, client_address

# Addresses with a bucket; the least recently used bucket is evicted.
MAX_ADDRESSES = 10_000


class RateLimited(HttpError):
    """Too many requests from one address."""

    retry_after: int
    status = 429
    sentence = "Too many requests; try again in {retry_after} s."

    def headers(self) -> dict[str, str]:
        return {"retry-after": str(self.retry_after)}


@dataclass(eq=False)
class RateLimit:
    """Counts a request, then passes it on to `authorize`. Token buckets by address.

    A bucket gets `rate` tokens a second; 0: there is no limit. After a pause `burst` requests may come at
    once.
    """

    rate: float
    burst: int
    authorize: Authorize | None = None
    clock: Callable[[], float] = monotonic  # in seconds
    # The tokens of an address, and when they were counted; the most recently used is last.
    _buckets: dict[str, tuple[float, float]] = field(default_factory=dict, init=False)

    async def __call__(self, scope: Scope, authorization: str | None) -> None:
        """Raises RateLimited, and what `authorize` raises."""
        if self.rate and (wait := self.wait(client_address(scope))):
            raise RateLimited(ceil(wait))
        if self.authorize is not None:
            await self.authorize(scope, authorization)

    def wait(self, address: str) -> float:
        """Take a token and return 0, or return the seconds until there is one."""
        now = self.clock()
        tokens, then = self._buckets.pop(address, (float(self.burst), now))
        tokens = min(self.burst, tokens + (now - then) * self.rate)
        self._buckets[address] = max(tokens - 1, 0) if tokens >= 1 else tokens, now
        if len(self._buckets) > MAX_ADDRESSES:
            del self._buckets[next(iter(self._buckets))]
        return 0 if tokens >= 1 else (1 - tokens) / self.rate
