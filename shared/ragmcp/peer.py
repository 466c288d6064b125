"""One side of a live connection: the shell around `Connection`. It reads, lets requests be handled, sends.

It knows no MCP: `handle` knows what a request means, and the stream how bytes travel.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol, TypeAlias

import anyio
import anyio.abc
from anyio.lowlevel import checkpoint
from msgspec import Raw, Struct, field

from ragmcp.concurrency import background_task, observe_blocking
from ragmcp.errors import ConnectionClosed, RagMcpError, RemoteProtocolError, RequestTimedOut
from ragmcp.protocol import jsonrpc
from ragmcp.protocol.connection import Answered, Cancelled, Connection, Event, Reply, Unusable
from ragmcp.protocol.jsonrpc import Id, Notification, Request
from ragmcp.streams import Stream

log = logging.getLogger(__name__)

# How long open requests may run after the peer has closed its end, so that `cat requests | ragmemory` gets
# its answers. A host that does not want to wait terminates us.
FINISH_SECONDS = 10.0
# The resolution of timeouts.
TICK_SECONDS = 0.02
# Invalid lines within a second after which the connection is closed.
MAX_UNUSABLE_LINES = 5_000
# The number of them that are logged.
LOGGED_UNUSABLE = 10
# A line over the limit is skipped. This many bytes over it without a line end close the connection.
MAX_OVERLONG_BYTES = 2**28
# The most lines of one peer that are read in one turn of the event loop.
LINES_AT_ONCE = 50
# Their number is estimated from the last bytes: counting them takes a millisecond per MiB.
SAMPLE_BYTES = 2**13
# Notifications of a peer between pauses, which limits it to 5,000 a second.
NOTIFICATIONS_AT_ONCE = 50
PAUSE_SECONDS = 0.01


OnSent: TypeAlias = Callable[[Id], None]


class Channel(Protocol):
    """Sends to the other side: through a connection, or over HTTP through the stream of one request."""

    @property
    def closed(self) -> anyio.Event:
        """Set when nothing more can be sent, or the server is shutting down."""

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification; waits while the other side does not read."""

    async def request(self, method: str, params: Any) -> Raw:
        """Send a request and wait for its result; servers send requests in the legacy era only.

        Raises WireError, ConnectionClosed, RequestTimedOut, RemoteProtocolError.
        """


class ClientChannel(Channel, Protocol):
    """The channel of a client."""

    async def request(
        self, method: str, params: Any, timeout: float | None = None, *, on_sent: OnSent = lambda _: None
    ) -> Raw:
        """As `Channel.request`; `on_sent` gets the id of the request before anything can refer to it."""


class Notifications(Struct):
    """Passes the notifications of a peer to `handle`.

    It throttles a peer that sends too many, so that other connections get their turn.
    """

    _handle: Callable[[Notification], None]
    _count: int = 0

    def take(self, notification: Notification) -> None:
        """Handle one; an error is logged."""
        self._count += 1
        try:
            self._handle(notification)
        except Exception:
            log.exception("Could not handle %s", notification.method)

    async def keep_pace(self) -> None:
        """Pause if there have been many since the last pause."""
        if self._count >= NOTIFICATIONS_AT_ONCE:
            self._count = 0
            await anyio.sleep(PAUSE_SECONDS)


class Waiter(Struct, eq=False):
    """One of our requests, while it waits for its answer."""

    method: str
    timeout: float | None = None
    outcome: Raw | RagMcpError | None = None
    done: anyio.Event = field(default_factory=anyio.Event)

    def settle(self, outcome: Raw | RagMcpError) -> None:
        """End the wait with the result of the request, or with its error."""
        self.outcome = outcome
        self.done.set()

    def result(self) -> Raw:
        """The result. Raises the error, ConnectionClosed if neither came."""
        if isinstance(self.outcome, Raw):
            return self.outcome
        raise self.outcome or ConnectionClosed(self.method)


class Peer:
    """Runs one connection: `handle` answers a request or raises; `on_notification` gets notifications.

    `on_stray` gets the beginning of each line that is no message.
    """

    def __init__(
        self,
        stream: Stream,
        connection: Connection[Waiter],
        handle: Callable[[Request], Coroutine[Any, Any, Any]],
        on_notification: Callable[[Notification], None] = lambda _: None,
        on_stray: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.connection = connection
        self.closed = anyio.Event()
        self._stream = stream
        self._handle = handle
        self._notifications = Notifications(on_notification)
        self._on_stray = on_stray
        self._todo: deque[Request] = deque()
        self._running: dict[Id, anyio.CancelScope] = {}
        # Workers, as _work explains: the idle ones, and the number of those that handle a request or read.
        self._idle: list[anyio.Event] = []
        self._awake = 0
        self._reading = False
        self._deadlines: dict[Waiter, float] = {}
        self._clock_wanted = anyio.Event()
        self._unusable = 0
        self._unusable_since = 0.0

    async def run(self) -> None:
        """Run until the other side has closed and its requests are answered."""
        try:
            async with background_task(self._watch_clock), anyio.create_task_group() as self._workers:
                self._start_worker()
            with anyio.move_on_after(FINISH_SECONDS):
                await self._stream.drain(0)
        finally:
            self._close()

    async def request(
        self, method: str, params: Any, timeout: float | None = None, *, on_sent: OnSent = lambda _: None
    ) -> Raw:
        """As `ClientChannel.request`. Cancelling the wait cancels the request.

        Raises WireError, ConnectionClosed, RequestTimedOut (after `timeout` seconds), RemoteProtocolError for
        an unusable answer, NotEncodable.
        """
        if self.closed.is_set():
            raise ConnectionClosed(method)
        waiter = Waiter(method, timeout)
        id, line = self.connection.ask(method, params, waiter)
        on_sent(id)
        self._stream.write(line)
        if len(self.connection.asked) == 1:
            self._stream.flush()
        else:  # Callers whose answers came together send their next requests together.
            self._stream.flush_soon()
        if timeout is not None:
            self._deadlines[waiter] = anyio.current_time() + timeout
            self._clock_wanted.set()
        try:
            await waiter.done.wait()
        finally:
            self._deadlines.pop(waiter, None)
            if line := self.connection.abandon(id):
                self._stream.write(line)
                self._stream.flush_soon()
        return waiter.result()

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification. Waits while the other side does not read. Raises NotEncodable."""
        self._stream.write(jsonrpc.encode_notification(method, params))
        self._stream.flush()
        await self._stream.drain()

    def fail(self, id: Id, error: RagMcpError) -> None:
        """Make our request `id` raise `error`, if it still waits: the request or its answer was lost."""
        self._take(self.connection.settle(id, error))

    async def _watch_clock(self) -> None:
        """One clock for all deadlines: a timer for each call would cost a third of the call."""
        while True:
            await self._clock_wanted.wait()
            while self._deadlines:
                await anyio.sleep(TICK_SECONDS)
                now = anyio.current_time()
                for waiter in [waiter for waiter, deadline in self._deadlines.items() if deadline <= now]:
                    waiter.settle(RequestTimedOut(waiter.method, waiter.timeout or 0))
            self._clock_wanted = anyio.Event()

    # Reading and working

    def _start_worker(self) -> None:
        self._awake += 1
        self._workers.start_soon(self._work)

    async def _work(self) -> None:
        """One of several equal workers, which take turns at reading.

        The worker that reads also answers, so a request that need not wait costs no task switch. While a
        request waits, it keeps its worker, and another worker reads on. A task for each request would cost
        more than most requests do.
        """
        while not self.closed.is_set() or self._todo:
            # One scope for many requests: only a cancelled request uses it up.
            with anyio.CancelScope() as scope:
                while not scope.cancel_called and (self._todo or not self.closed.is_set()):
                    if self._todo:
                        await self._answer(self._todo.popleft(), scope)
                    elif not self._reading:
                        await self._read()
                    else:
                        await self._idle_until_needed()
        self._stream.flush()  # The last answer, after the other side has closed.

    async def _idle_until_needed(self) -> None:
        self._stream.flush()
        event = anyio.Event()
        self._idle.append(event)
        self._awake -= 1
        await event.wait()

    def _wake_worker(self) -> None:
        if self._idle:
            self._awake += 1
            self._idle.pop().set()
        else:
            self._start_worker()

    async def _read(self) -> None:
        self._reading = True
        self._stream.flush()
        try:
            await self._stream.drain()
            data = await self._stream.receive()
            await self._take_in_turns(data)
        finally:
            self._reading = False
        if not data:
            self._take(self.connection.receive(b"\n"))  # The last line may have none.
            self._workers.cancel_scope.deadline = anyio.current_time() + FINISH_SECONDS
            self._close()

    async def _take_in_turns(self, data: bytes) -> None:
        lines = data.count(b"\n", -SAMPLE_BYTES) * max(1, len(data) // SAMPLE_BYTES)
        size = len(data) // (lines // LINES_AT_ONCE + 1) + 1
        for start in range(0, len(data), size):
            if start:
                await checkpoint()
            self._take(self.connection.receive(data[start : start + size]))
            decoder = self.connection.decoder
            if decoder.partial.size > decoder.limit + MAX_OVERLONG_BYTES:
                self._take(self.connection.receive(b"\n"))  # A server refuses the line before it leaves.
                self._stream.fault = f"it sent more than {MAX_OVERLONG_BYTES >> 20} MiB without a line end"
            if self._stream.fault:
                self._close()
                return
            await self._notifications.keep_pace()

    def _take(self, events: Iterable[Event[Waiter]]) -> None:
        for event in events:
            match event:
                case Request():
                    self._todo.append(event)
                case Answered(waiter, outcome):
                    waiter.settle(outcome)
                case Notification():
                    self._notifications.take(event)
                case Reply(line):
                    self._stream.write(line)
                case Cancelled(id):
                    self._cancel(id)
                case Unusable(error, line):
                    if line and isinstance(error, RemoteProtocolError):
                        self._on_stray(line.decode(errors="replace"))
                    self._ignore(error)

    def _ignore(self, error: RagMcpError) -> None:
        now = anyio.current_time()
        if now - self._unusable_since >= 1:
            self._unusable, self._unusable_since = 0, now
        self._unusable += 1
        if self._unusable <= LOGGED_UNUSABLE:
            log.info("Ignored an invalid message of the peer: %s", error)
        elif self._unusable > MAX_UNUSABLE_LINES:
            self._stream.fault = f"it sent more than {MAX_UNUSABLE_LINES:,} invalid lines within a second"

    def _close(self) -> None:
        self.closed.set()
        for waiter in self.connection.close():
            waiter.done.set()
        while self._idle:
            self._wake_worker()

    # Answering

    async def _answer(self, request: Request, scope: anyio.CancelScope) -> None:
        self._running[request.id] = scope
        line = b""
        try:
            try:
                outcome = await observe_blocking(self._handle(request), self._on_wait, self._on_end)
            except Exception as error:
                if not isinstance(error, RemoteProtocolError):
                    log.error("%s failed", request.method, exc_info=error)
                outcome = error
            if not scope.cancel_called:  # "Not send a response for the cancelled request."
                line = self.connection.answer(request.id, outcome)
        finally:
            del self._running[request.id]
            if line := line or self.connection.forget(request.id):
                self._stream.write(line)

    def _on_wait(self) -> None:
        self._stream.flush()
        self._awake -= 1
        if not self._awake:
            self._wake_worker()

    def _on_end(self) -> None:
        self._awake += 1

    def _cancel(self, id: Id) -> None:
        if id in self._running:
            self._running[id].cancel()
            return
        self._todo = deque(request for request in self._todo if request.id != id)
        if line := self.connection.forget(id):
            self._stream.write(line)
