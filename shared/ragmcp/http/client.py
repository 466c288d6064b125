"""Requests to one MCP endpoint over pooled connections: encoded messages out and in, typed errors.

The headers of a request are the concern of its era (`modern_client`, `ragmcp.legacy.session_client`).
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Protocol, TypeAlias

import anyio
import httpx2
from msgspec import Struct, field

from ragmcp import errors
from ragmcp.http.errors import HttpRefused
from ragmcp.http.reach import Reach, guard, is_loopback
from ragmcp.protocol import jsonrpc
from ragmcp.protocol.framing import EventDecoder, Line, ServerEvent
from ragmcp.protocol.jsonrpc import Failure, Id, Message, Success, Unreadable

# httpx2 logs complete URLs, which may hold secrets: a session's id, a key in the query.
logging.getLogger("httpx2").setLevel(logging.WARNING)

CONNECT_SECONDS = 10.0
MAX_REDIRECTS = 3
KEPT_CONNECTIONS = 32
# How long to read on after the answer, to the end of the stream, so that the connection can be reused.
END_SECONDS = 0.05
# How much of an error page is quoted.
PAGE_BYTES = 300

ADDRESS_HINT = "An address begins with http:// or https://."

ACCEPT = "application/json, text/event-stream"
EVENTS = "text/event-stream"
JSON_HEADERS = {"content-type": "application/json"}
# Statuses that concern the client's access, even with a JSON-RPC error in the body.
ACCESS_STATUSES = frozenset({401, 403, 407, 429})

NO_ANSWER = "its stream ended without an answer"

# Delivers one message of the server, as it was sent and parsed.
Deliver: TypeAlias = Callable[[Line, Message], Awaitable[None]]
Answer: TypeAlias = Success | Failure

# Sends one request with these further headers.
Attempt: TypeAlias = Callable[[Mapping[str, str]], Awaitable[httpx2.Response]]


class Authorization(Protocol):
    """Authorizes requests, as `ragmcp.oauth` does."""

    async def send(self, attempt: Attempt, verb: str, url: str, reach: Reach) -> httpx2.Response:
        """The response to an attempt, or to a later one; `reach` is where further requests may go."""


class Http(Struct):
    """The endpoint; `url` follows redirects within its origin."""

    _client: httpx2.AsyncClient
    url: httpx2.URL
    message_bytes: int
    _reach: Reach
    _authorization: Authorization | None
    unreachable: anyio.Event = field(default_factory=anyio.Event)
    """Set when the last attempt to connect failed; replaced once one succeeds."""
    failure: errors.ServerUnreachable | None = None
    """Why that attempt failed."""

    @asynccontextmanager
    async def send(
        self,
        verb: str,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        url: httpx2.URL | None = None,
        resumes: EventDecoder | None = None,
    ) -> AsyncIterator[Response]:
        """The response, as soon as it begins; leaving early closes it. `method` is for error messages.

        `resumes` is the decoder of the event stream that this one continues.
        Raises WireError or HttpRefused for a status that is an error or a redirect to another server,
        ServerUnreachable, AddressRefused, ConnectionClosed, RequestTimedOut.
        """
        response = await self._authorized(verb, method, headers, body, url or self.url)
        try:
            for _ in range(MAX_REDIRECTS):
                if not response.has_redirect_location:
                    break
                target = self.joined(response.headers["location"], response.status_code)
                if url is None:
                    self.url = target
                await response.aclose()
                response = await self._authorized(verb, method, headers, body, target)
            reader = Response(self, method, response, EventDecoder(self.message_bytes, resumes))
            if response.status_code >= 300:  # The last of too many redirects is an error too.
                raise await reader.refusal()
            yield reader
        finally:
            await response.aclose()

    async def post(self, method: str, line: bytes, headers: Mapping[str, str]) -> None:
        """Post a message that has no answer. Raises as `send`."""
        async with self.send("POST", method, {**JSON_HEADERS, **headers}, line) as response:
            await response.end()

    async def ask(
        self, method: str, id: Id, line: bytes, headers: Mapping[str, str], deliver: Deliver
    ) -> Answer:
        """Post a request, and deliver all messages until its answer. Raises as `send` and `Response.copy`."""
        async with self.send("POST", method, {**JSON_HEADERS, **headers}, line) as response:
            if answer := await response.copy(id, deliver):
                return answer
        raise errors.ConnectionClosed(method, f"{NO_ANSWER} ({shown(self.url)})")

    async def _authorized(
        self, verb: str, method: str, headers: Mapping[str, str], body: bytes | None, url: httpx2.URL
    ) -> httpx2.Response:
        async def attempt(own: Mapping[str, str]) -> httpx2.Response:
            if self._client.is_closed:
                raise errors.ServerUnreachable(shown(self.url), "its client has been closed")
            request = self._client.build_request(verb, url, headers={**headers, **own}, content=body)
            with self.mapped(method):
                response = await self._client.send(request, stream=True)
            if self.unreachable.is_set():
                self.unreachable, self.failure = anyio.Event(), None
            return response

        if self._authorization is None:
            return await attempt({})
        return await self._authorization.send(attempt, verb, str(url), self._reach)

    def joined(self, location: str, status: int) -> httpx2.URL:
        """The target of a redirect. Raises HttpRefused for an invalid address or another server's."""
        try:
            target = self.url.join(location)
        except httpx2.InvalidURL:
            raise HttpRefused(shown(self.url), status, "it redirects to an invalid address") from None
        # The token and the messages must not reach another server.
        if origin(target) != origin(self.url):
            raise HttpRefused(shown(self.url), status, f"it redirects to {shown(target)}")
        return target

    @contextmanager
    def mapped(self, method: str) -> Iterator[None]:
        """Map the errors of httpx2 to ours."""
        try:
            yield
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            self.failure = errors.ServerUnreachable(shown(self.url), _reason(error))
            self.unreachable.set()
            raise self.failure from error
        except httpx2.TimeoutException as error:
            seconds = self._client.timeout.read or 0
            raise errors.RequestTimedOut(method, seconds) from error
        except httpx2.TransportError as error:
            raise errors.ConnectionClosed(method, f"{_reason(error)} ({shown(self.url)})") from error


class Response:
    """A response that is being read."""

    def __init__(self, http: Http, method: str, response: httpx2.Response, events: EventDecoder) -> None:
        self.status = response.status_code
        self.events = events
        """The decoder; it knows where a broken event stream can be resumed."""
        self._http = http
        self._method = method
        self._response = response
        self._chunks = response.aiter_raw()

    @property
    def streams(self) -> bool:
        """Whether it is an event stream."""
        return self.header("content-type").partition(";")[0].strip().lower() == EVENTS

    def header(self, name: str) -> str:
        """The header's value; "" if it is missing."""
        return self._response.headers.get(name, "")

    async def copy(self, id: Id | None, deliver: Deliver) -> Answer | None:
        """Deliver all messages until the answer to `id` (None: all); returns the answer if it came.

        Raises UnreadableAnswer, MessageTooLarge, WireError for an error without an id; ConnectionClosed or
        RequestTimedOut if the response broke, unless `events` knows where it can be resumed.
        """
        if not self.streams:
            return await self._copy_body(id, deliver)
        answer: Answer | None = None
        try:
            while answer is None and (events := await self.next_events()):
                for event in events:
                    if event.type == "message":
                        answer = await self._copy_event(event.data, id, deliver) or answer
            await self.end()
        except (errors.ConnectionClosed, errors.RequestTimedOut):
            if answer is None and not self.events.last_id:
                raise
        return answer

    async def _copy_body(self, id: Id | None, deliver: Deliver) -> Answer | None:
        body = await self.body()
        message = jsonrpc.parse(body)
        match message:
            case _ if id is None:
                if body:
                    await deliver(body, message)
                return None
            case Failure(None, error):
                raise error.as_error()
            case Success(answered) | Failure(answered) if answered == id:
                await deliver(body, message)
                return message
            case Unreadable():
                sent = f"{shown(self._http.url)} sent {self.header('content-type') or 'no content-type'}"
                raise errors.UnreadableAnswer(self._method, f"{sent}: {message.error}".rstrip("."))
            case _:
                raise errors.UnreadableAnswer(self._method, "it is not a response")

    async def _copy_event(self, data: Line, id: Id | None, deliver: Deliver) -> Answer | None:
        message = jsonrpc.parse(data)
        if isinstance(message, Unreadable) and id is not None and message.id == id:
            raise unreadable(self._method, message)
        await deliver(data, message)
        return message if isinstance(message, Success | Failure) and message.id == id else None

    async def next_events(self) -> list[ServerEvent]:
        """The next events; [] at the end.

        Raises MessageTooLarge, ConnectionClosed, RequestTimedOut.
        """
        while (chunk := await self._read()) is not None:
            if events := self.events.feed(chunk):
                return events
        return []

    async def body(self) -> bytes:
        """The whole body. Raises as `next_events`."""
        body = bytearray()
        while (chunk := await self._read()) is not None:
            body += chunk
            if len(body) > self._http.message_bytes:
                raise errors.MessageTooLarge(len(body), self._http.message_bytes)
        return bytes(body)

    async def end(self) -> None:
        """Read to the end, if it is near, so that the connection can be reused."""
        with anyio.move_on_after(END_SECONDS):
            while await self._read() is not None:
                pass

    async def refusal(self) -> errors.WireError | HttpRefused:
        """The error that the status means."""
        body = await self.body()
        message = jsonrpc.parse(body)
        url = shown(self._http.url)
        if isinstance(message, Failure):
            error = message.error.as_error(self.status)
            if self.status in ACCESS_STATUSES:
                return HttpRefused(url, self.status, error.message.rstrip("."), error.error_code)
            return error
        page = " ".join(body[:PAGE_BYTES].decode(errors="replace").split())
        plain = page if page and "<" not in page else self._response.reason_phrase
        return HttpRefused(url, self.status, plain.rstrip(".") or "no reason given")

    async def _read(self) -> bytes | None:
        if self.header("content-encoding") not in ("", "identity"):
            raise errors.UnreadableAnswer(self._method, "it is compressed, which the request did not accept")
        with self._http.mapped(self._method):
            return await anext(self._chunks, None)


def unreadable(method: str, message: Unreadable) -> errors.UnreadableAnswer:
    """The error for a message that was to be the answer to `method`."""
    return errors.UnreadableAnswer(method, str(message.error).rstrip("."))


def status_of(error: errors.RagMcpError) -> int:
    """The HTTP status that an error came with; 0 for an error without one."""
    match error:
        case HttpRefused(status=status) | errors.WireError(http_status=status):
            return status
    return 0


def origin(url: httpx2.URL) -> tuple[str, str, int]:
    """What makes an address another server's: scheme, host and port."""
    return url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80)


def shown(url: httpx2.URL) -> str:
    """An address without the parts that may hold secrets."""
    return str(url.copy_with(username=None, password=None, query=None, fragment=None))


def _reason(error: Exception) -> str:
    """The operating system's reason, if there is one, else that of httpx2."""
    text = str(error) or type(error).__name__
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError):
            return "nothing listens there"
        if isinstance(cause, OSError) and cause.strerror:
            text = cause.strerror
        cause = cause.__cause__ or cause.__context__
    return text[:1].lower() + text[1:].rstrip(".")


@asynccontextmanager
async def open_client(
    url: str,
    message_bytes: int,
    token: str | None,
    silence_seconds: float | None,
    headers: Mapping[str, str] = {},
    authorization: Authorization | None = None,
) -> AsyncIterator[Http]:
    """An endpoint and its connections. Raises ServerUnreachable for an invalid address or header."""
    try:
        address = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        # An address that cannot be parsed may hold secrets too.
        safe = re.sub(r"//[^/?#]*@", "//", url).partition("?")[0]
        raise errors.ServerUnreachable(safe, _reason(error), ADDRESS_HINT) from None
    if address.scheme not in ("http", "https") or not address.host:
        raise errors.ServerUnreachable(shown(address), "it is not an HTTP address", ADDRESS_HINT)
    own = {"accept": ACCEPT, "accept-encoding": "identity", "cache-control": "no-store"}
    if token is not None:
        own["authorization"] = f"Bearer {token}"
    sent = {**headers, **own}
    for name, value in sent.items():  # Errors of httpx2 would show the value, which may be a secret.
        if not (value.isascii() and value.isprintable() and value == value.strip()):
            reason = f"the value for its header {name} is empty or has a forbidden character (a line break?)"
            raise errors.ServerUnreachable(shown(address), reason, "")
    client = httpx2.AsyncClient(
        headers=sent,
        verify=address.scheme == "https",  # Reading the certificates takes time.
        trust_env=not is_loopback(address.host),
        timeout=httpx2.Timeout(silence_seconds, connect=CONNECT_SECONDS, pool=None),
        # Each stream holds a connection, and a thousand concurrent requests must not wait for each other.
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=KEPT_CONNECTIONS),
    )
    guard(client, reach := Reach(shown(address)))
    async with client:
        yield Http(client, address, message_bytes, reach, authorization)
