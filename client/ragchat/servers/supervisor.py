"""A client that restarts its server when it dies: in the background, with growing pauses.

It knows neither processes nor addresses: `open` starts a server or connects to one.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from types import TracebackType
from typing import Self, TypeVar

import anyio

from ragmcp.backoff import Backoff
from ragmcp.client.features import Client
from ragmcp.concurrency import background_task
from ragmcp.errors import ConnectionClosed, RagMcpError, RequestTimedOut, ServerUnreachable

log = logging.getLogger(__name__)

T = TypeVar("T")

# Pauses between starts: the first restart follows at once; the pauses grow while the server keeps dying.
FIRST_PAUSE_SECONDS = 0.1
MAX_PAUSE_SECONDS = 10.0
# After a run of this length the pauses start from the first again.
STEADY_SECONDS = 10.0


class _Life:
    """One start of the server: `client` once it runs, `failure` once it ended or failed to start."""

    def __init__(self) -> None:
        self.client: Client | None = None
        self.failure: RagMcpError | None = None
        self.begun = anyio.Event()
        self.ended = anyio.Event()
        self.replaced = anyio.Event()

    def begin(self, client: Client) -> None:
        self.client = client
        self.begun.set()

    def end(self, failure: RagMcpError) -> None:
        self.failure = failure
        self.begun.set()
        self.ended.set()


@contextmanager
def time_limit(what: str, seconds: float | None) -> Iterator[None]:
    """Raises RequestTimedOut after this time; None: never."""
    try:
        with anyio.fail_after(seconds):
            yield
    except TimeoutError:
        raise RequestTimedOut(what, seconds or 0) from None


class Supervised:
    """A client that outlives its server. Entering returns at once; the first call waits for the start."""

    def __init__(
        self,
        open: Callable[[], AbstractAsyncContextManager[Client]],
        longest_pause: float = MAX_PAUSE_SECONDS,
        *,
        lazy: bool = False,
    ) -> None:
        """`longest_pause` is in seconds, between two starts of a server that keeps dying.

        With `lazy`, the first call starts the server.
        """
        self._open = open
        self._longest_pause = longest_pause
        self._lazy = lazy
        self._life = _Life()
        self._wanted = anyio.Event()
        self._stack = AsyncExitStack()
        self._running = anyio.CancelScope()  # while the client runs
        self.failure: RagMcpError | None = None
        """Why it could not be started or ended last, until it runs again."""

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(background_task(self._keep_running))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)

    @property
    def is_running(self) -> bool:
        """Whether the server has started and not ended yet."""
        return self._life.client is not None and self._life.failure is None

    async def wait_started(self) -> None:
        """Return once this start has succeeded or failed."""
        await self._life.begun.wait()

    async def restart(self) -> None:
        """End the server, and start it again at once. Returns when it has started or failed."""
        life = self._life
        if self.is_running:
            self._running.cancel()
            await life.ended.wait()
        self._wanted.set()
        if life.ended.is_set():
            await life.replaced.wait()
        await self.wait_started()

    async def ask(
        self,
        what: str,
        request: Callable[[Client], Awaitable[T]],
        *,
        repeatable: bool = True,
        timeout: float | None = None,
    ) -> T:
        """Send any request; if `repeatable`, it is repeated when the server dies during the first one.

        `what` names it in errors; `timeout` (seconds) includes waiting for a start. Raises what `open` raises
        if the server cannot be started, and ConnectionClosed if it died during the request, which it may have
        carried out.
        """
        with time_limit(what, timeout):
            try:
                return await self._try(what, request)
            except (ConnectionClosed, ServerUnreachable) as error:
                # Any call that never reached a server may be repeated: it was not carried out.
                if not repeatable and isinstance(error, ConnectionClosed):
                    raise
                log.info("Repeating %s: %s", what, error)
            return await self._try(what, request)

    async def _try(self, what: str, request: Callable[[Client], Awaitable[T]]) -> T:
        life = self._life
        if life.ended.is_set():  # This is the pause before the next start: end it.
            self._wanted.set()
            await life.replaced.wait()
            life = self._life
        if not life.begun.is_set():
            self._wanted.set()
        await life.begun.wait()
        if life.client is None or life.failure is not None:
            raise life.failure or ConnectionClosed(what)
        try:
            return await request(life.client)
        except ServerUnreachable:
            await life.ended.wait()
            raise
        except ConnectionClosed:
            if not life.client.is_closed:  # Over HTTP one request can break and the next succeed.
                raise
            await life.ended.wait()
            reason = life.failure.reason if isinstance(life.failure, ConnectionClosed) else str(life.failure)
            raise ConnectionClosed(what, reason) from None

    async def _keep_running(self) -> None:
        try:
            await self._restart_forever()
        finally:  # No call may wait for a start that will not come.
            self._life.end(ConnectionClosed())
            self._life.replaced.set()

    async def _restart_forever(self) -> None:
        backoff = Backoff(FIRST_PAUSE_SECONDS, self._longest_pause)
        if self._lazy:
            await self._wanted.wait()
        while True:
            started = anyio.current_time()
            await self._live(self._life)
            if anyio.current_time() - started >= STEADY_SECONDS:
                backoff.reset()
            self._wanted = anyio.Event()
            with anyio.move_on_after(backoff.next()):
                await self._wanted.wait()
            last, self._life = self._life, _Life()
            last.replaced.set()

    async def _live(self, life: _Life) -> None:
        try:
            async with self._open() as client:
                life.begin(client)
                self.failure = None
                with anyio.CancelScope() as self._running:
                    await client.closed()
                raise ConnectionClosed()
        except RagMcpError as failure:
            log.info("%s", failure)
            self.failure = failure
            life.end(failure)
