"""The open requests of one connection, in both directions. Pure: bytes in, events out; calls in, lines out.

It knows JSON-RPC and cancellation, but no revisions and no other methods. Nothing here waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import Raw, Struct

from ragmcp.errors import InvalidRequest, MessageTooLarge, RagMcpError, RemoteProtocolError
from ragmcp.protocol import jsonrpc
from ragmcp.protocol.decoding import DECODE_ERRORS
from ragmcp.protocol.framing import Line, LineDecoder, Overlong
from ragmcp.protocol.jsonrpc import Failure, Id, Message, Notification, Request, Success, Unreadable
from ragmcp.protocol.schema.base import CancelledParams

# The shell's handle on a waiting request.
Waiter = TypeVar("Waiter")

CANCELLED = "notifications/cancelled"


# Over stdio a host may pipe many requests at once; HTTP clients get a lower limit.
MAX_IN_PROGRESS = 100_000
# The beginning of an unusable line that is kept.
SHOWN_BYTES = 200


class Answered(Struct, Generic[Waiter], frozen=True):
    """The answer to one of our requests."""

    waiter: Waiter
    outcome: Raw | RagMcpError


class Cancelled(Struct, frozen=True):
    """The peer has cancelled its request `id`."""

    id: Id


class Reply(Struct, frozen=True):
    """A line that must be sent now."""

    line: bytes


class Unusable(Struct, frozen=True):
    """An unusable message that answers no request; to be logged. `line`: its beginning, if it was a line."""

    error: RagMcpError
    line: bytes = b""


Event: TypeAlias = Request | Notification | Answered[Waiter] | Cancelled | Reply | Unusable


class _Batch(Struct):
    """The answers of one JSON-RPC batch, which are sent together."""

    open: set[Id] = set()
    lines: list[bytes] = []

    def line_if_complete(self) -> bytes:
        return b"[" + b",".join(self.lines) + b"]" if self.lines and not self.open else b""


class Connection(Generic[Waiter]):
    """One side of a connection; lines longer than `limit` bytes are refused.

    `refuses` says whether unusable lines are answered: a server must, a client must not. At most
    `max_in_progress` requests of the peer are handled at a time.
    """

    def __init__(self, limit: int, *, refuses: bool, max_in_progress: int = MAX_IN_PROGRESS) -> None:
        self.batches = False  # Whether the peer may send batches.
        self.decoder = LineDecoder(limit)
        self._refuses = refuses
        self._max_in_progress = max_in_progress
        self._last_id = 0
        self.asked: dict[Id, Waiter] = {}
        """Our requests that are waiting for their answers."""
        self._asking: dict[Id, _Batch | None] = {}

    # What comes in

    def receive(self, data: bytes) -> list[Event[Waiter]]:
        """The events of the next bytes; a newline completes the last line of a stream. Never raises."""
        events: list[Event[Waiter]] = []
        for line in self.decoder.feed(data):
            if isinstance(line, Overlong):
                error = MessageTooLarge(line.size, self.decoder.limit)
                events += self._receive(jsonrpc.salvaged(line.head, line.tail, error), None)
            else:
                found = self.receive_message(line)
                if found and isinstance(found[-1], Unusable):
                    found[-1] = Unusable(found[-1].error, bytes(line[:SHOWN_BYTES]))
                events += found
        return events

    def receive_message(self, message: Line) -> list[Event[Waiter]]:
        """The events of one complete message or batch. Never raises."""
        is_batch = self.batches and jsonrpc.is_batch(message)
        return list(self._receive_batch(message) if is_batch else self._receive(jsonrpc.parse(message), None))

    def _receive_batch(self, line: Line) -> Iterable[Event[Waiter]]:
        messages = jsonrpc.parse_batch(line)
        if isinstance(messages, Unreadable):  # "A single Response object", not an array of one.
            return self._receive(messages, None)
        batch = _Batch()
        events = [event for message in messages for event in self._receive(message, batch)]
        if reply := batch.line_if_complete():
            events.append(Reply(reply))
        return events

    def _receive(self, message: Message, batch: _Batch | None) -> Iterable[Event[Waiter]]:
        match message:
            case Request():
                return self._receive_request(message, batch)
            case Success(id, result):
                return self.settle(id, result)
            case Notification():
                return self._receive_notification(message)
            case Failure(id, error):
                return self.settle(id, error.as_error())
            case Unreadable(id, reason, response) if response and self._refuses:
                # With its id the refusal would look like the answer to one of the peer's own requests.
                answered = () if id is None else self.settle(id, reason)
                return (*answered, *self._unusable(None, reason, batch))
            case Unreadable(id, reason):
                return self._unusable(id, reason, batch)

    def _receive_request(self, request: Request, batch: _Batch | None) -> Iterable[Event[Waiter]]:
        reason = ""
        if len(self._asking) >= self._max_in_progress:
            reason = f"{self._max_in_progress:,} requests are in progress already, which is the limit"
        elif request.id in self._asking:
            reason = f"the id {request.id!r} is that of a request still in progress"
        if reason:
            return self._unusable(request.id, InvalidRequest(reason), batch)
        self._asking[request.id] = batch
        if batch is not None:
            batch.open.add(request.id)
        return (request,)

    def _receive_notification(self, notification: Notification) -> Iterable[Event[Waiter]]:
        if notification.method != CANCELLED:
            return (notification,)
        try:
            id = msgspec.json.decode(notification.params, type=CancelledParams).request_id
        except DECODE_ERRORS:
            return ()  # "Invalid cancellation notifications SHOULD be ignored."
        return (Cancelled(id),) if id in self._asking else ()

    def settle(self, id: Id | None, outcome: Raw | RagMcpError) -> Iterable[Event[Waiter]]:
        """The event that ends our request `id`: by its answer, or because it will get none."""
        if id is not None and id in self.asked:
            return (Answered(self.asked.pop(id), outcome),)
        if id is None and isinstance(outcome, RagMcpError):
            return (Unusable(outcome),)
        return ()  # The answer to a request that we have cancelled.

    def _unusable(
        self, id: Id | None, error: RemoteProtocolError, batch: _Batch | None = None
    ) -> Iterable[Event[Waiter]]:
        if not self._refuses:
            return self.settle(id, error)
        line = jsonrpc.encode_answer(id, error)
        if batch is not None:
            batch.lines.append(line)
            return ()
        return (Reply(line),)

    # Our answers

    def answer(self, id: Id, outcome: Any) -> bytes:
        """The line with the result of request `id`, or its error; b"" if none is to be sent (yet)."""
        return self._complete(id, jsonrpc.encode_answer(id, outcome))

    def forget(self, id: Id) -> bytes:
        """Drop the cancelled request `id`; returns the line of its batch, if that is complete now.

        b"" for a request that is complete already: it may be cancelled twice.
        """
        return self._complete(id, b"") if id in self._asking else b""

    def _complete(self, id: Id, line: bytes) -> bytes:
        batch = self._asking.pop(id)
        if batch is None:
            return line
        batch.open.discard(id)
        if line:
            batch.lines.append(line)
        return batch.line_if_complete()

    # Our requests

    def ask(self, method: str, params: Any, waiter: Waiter) -> tuple[Id, bytes]:
        """The id and the line of a new request; `waiter` comes back with its answer. Raises NotEncodable."""
        line = jsonrpc.encode_request(self._last_id + 1, method, params)
        self._last_id += 1
        self.asked[self._last_id] = waiter
        return self._last_id, line

    def abandon(self, id: Id) -> bytes:
        """The line that cancels our request `id`; b"" if it has been answered meanwhile."""
        if self.asked.pop(id, None) is None:
            return b""
        return jsonrpc.encode_notification(CANCELLED, CancelledParams(request_id=id))

    def close(self) -> list[Waiter]:
        """The waiters of all open requests, which will get no answers."""
        waiters = list(self.asked.values())
        self.asked.clear()
        return waiters
