"""A client that restarts its server in the background when it dies, with growing pauses."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

import anyio

from ragmcp.backoff import Backoff
from ragmcp.client.features import Client
from ragmcp.errors import ConnectionClosed, RagMcpError, RequestTimedOut, ServerUnreachable

log = logging.getLogger(__name__)

T = TypeVar("T")

# Pauses between restarts, which grow while the server keeps dying.
FIRST_PAUSE_SECONDS = 0.1
MAX_PAUSE_SECONDS = 10.0
# After a run of this length, the pauses start from the first again.
STEADY_SECONDS = 10.0


class _ServerRun:
    """One start of the server: `client` once it runs, `failure` once it has ended or failed to start."""

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
    """A client that survives restarts of its server. `run` keeps it running; calls wait for the start.

    `open` starts a server or connects to one.
    """

    def __init__(
        self,
        open: Callable[[], AbstractAsyncContextManager[Client]],
        max_pause: float = MAX_PAUSE_SECONDS,
        *,
        lazy: bool = False,
    ) -> None:
        """`max_pause` limits the seconds between two starts. `lazy`: the first call starts the server."""
        self._open = open
        self._max_pause = max_pause
        self._lazy = lazy
        self._run = _ServerRun()
        self._wanted = anyio.Event()
        self._running = anyio.CancelScope()  # while the client runs
        self.failure: RagMcpError | None = None
        """Why it last failed to start or ended, until it runs again."""

    async def run(self) -> None:
        """Start the server, and again whenever it dies, until cancelled."""
        try:
            await self._restart_forever()
        finally:  # Release calls that wait for a start.
            self._run.end(ConnectionClosed())
            self._run.replaced.set()

    @property
    def is_running(self) -> bool:
        """Whether the server has started and has not ended."""
        return self._run.client is not None and self._run.failure is None

    async def wait_started(self) -> None:
        """Return once the current start has succeeded or failed."""
        await self._run.begun.wait()

    async def restart(self) -> None:
        """Restart the server at once. Returns when it has started or failed."""
        run = self._run
        if self.is_running:
            self._running.cancel()
            await run.ended.wait()
        self._wanted.set()
        if run.ended.is_set():
            await run.replaced.wait()
        await self.wait_started()

    async def ask(
        self,
        what: str,
        request: Callable[[Client], Awaitable[T]],
        *,
        repeatable: bool = True,
        timeout: float | None = None,
    ) -> T:
        """Send a request; if it is `repeatable`, it is repeated once when the server dies meanwhile.

        `what` names it in errors; `timeout` (seconds) includes waiting for a start. Raises what `open` raises
        if the server cannot be started, and ConnectionClosed if it died during the request, which may have
        been executed.
        """
        with time_limit(what, timeout):
            try:
                return await self._try(what, request)
            except (ConnectionClosed, ServerUnreachable) as error:
                # A request that never reached the server may always be repeated.
                if not repeatable and isinstance(error, ConnectionClosed):
                    raise
                log.info("Repeating %s: %s", what, error)
            return await self._try(what, request)

    async def _try(self, what: str, request: Callable[[Client], Awaitable[T]]) -> T:
        run = self._run
        if run.ended.is_set():  # End the pause before the next start.
            self._wanted.set()
            await run.replaced.wait()
            run = self._run
        if not run.begun.is_set():
            self._wanted.set()
        await run.begun.wait()
        if run.client is None or run.failure is not None:
            raise run.failure or ConnectionClosed(what)
        try:
            return await request(run.client)
        except ServerUnreachable:
            await run.ended.wait()
            raise
        except ConnectionClosed:
            if not run.client.is_closed:  # Over HTTP one request can break and the next succeed.
                raise
            await run.ended.wait()
            reason = run.failure.reason if isinstance(run.failure, ConnectionClosed) else str(run.failure)
            raise ConnectionClosed(what, reason) from None

    async def _restart_forever(self) -> None:
        backoff = Backoff(FIRST_PAUSE_SECONDS, self._max_pause)
        if self._lazy:
            await self._wanted.wait()
        while True:
            started = anyio.current_time()
            await self._run_once(self._run)
            if anyio.current_time() - started >= STEADY_SECONDS:
                backoff.reset()
            self._wanted = anyio.Event()
            with anyio.move_on_after(backoff.next()):
                await self._wanted.wait()
            last, self._run = self._run, _ServerRun()
            last.replaced.set()

    async def _run_once(self, run: _ServerRun) -> None:
        try:
            async with self._open() as client:
                run.begin(client)
                self.failure = None
                with anyio.CancelScope() as self._running:
                    await client.closed()
                raise ConnectionClosed()
        except RagMcpError as failure:
            log.info("%s", failure)
            self.failure = failure
            run.end(failure)
