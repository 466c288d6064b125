"""Stands between a memory and its PostgreSQL, and cuts or stops their connections when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from urllib.parse import parse_qsl, urlencode, urlsplit

import anyio
import anyio.lowlevel
from anyio.abc import ByteStream, SocketStream, TaskGroup

from tests.support.ports import free_port


class _UnixStream(ByteStream):
    """anyio's own fails if its task is cancelled at the moment at which data arrives."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def receive(self, max_bytes: int = 65_536) -> bytes:
        if data := await self._reader.read(max_bytes):
            return data
        raise anyio.EndOfStream

    async def send(self, item: bytes) -> None:
        await anyio.lowlevel.checkpoint()  # Nothing is sent once the task is cancelled.
        self._writer.write(item)
        await self._writer.drain()

    async def send_eof(self) -> None:
        self._writer.write_eof()

    async def aclose(self) -> None:
        self._writer.close()


class DatabaseProxy:
    """`url` leads through it. It is up until `go_down`, and again from `come_up` on, at the same port."""

    def __init__(self, target: str, tasks: TaskGroup) -> None:
        self._target = urlsplit(target)
        self._tasks = tasks
        self._listening, self._is_down = anyio.CancelScope(), anyio.Event()
        self._open: set[anyio.CancelScope] = set()
        self._port = free_port()
        self._cut_before = self._cut_after = b""
        self._may_pass = anyio.Event()
        self._may_pass.set()

    @property
    def url(self) -> str:
        """The URL of the target, through this proxy."""
        options = {name: value for name, value in parse_qsl(self._target.query) if name != "host"}
        user = f"{self._target.username}@" if self._target.username else ""
        query = urlencode({"sslmode": "disable", **options})
        return f"postgresql://{user}127.0.0.1:{self._port}{self._target.path}?{query}"

    async def come_up(self) -> None:
        """Accept connections."""
        listener = await anyio.create_tcp_listener(
            local_host="127.0.0.1", local_port=self._port, reuse_port=False
        )
        self._listening, self._is_down = anyio.CancelScope(), anyio.Event()

        async def serve() -> None:
            with self._listening:
                async with listener:
                    await listener.serve(self._connect)
            self._is_down.set()

        self._tasks.start_soon(serve)

    async def go_down(self) -> None:
        """Cut all connections and accept no others."""
        self._listening.cancel()
        self.cut()
        await self._is_down.wait()

    def cut(self) -> None:
        """Cut all connections."""
        for scope in self._open:
            scope.cancel()

    def cut_before(self, statement: str) -> None:
        """Cut the next connection that executes this, before the server gets it."""
        self._cut_before = statement.encode()

    def cut_after(self, statement: str) -> None:
        """Cut the next connection that executes this, once the server has answered, without the answer."""
        self._cut_after = statement.encode()

    def stop_passing(self) -> None:
        """Pass nothing more, but leave the connections open."""
        self._may_pass = anyio.Event()

    async def _connect(self, client: SocketStream) -> None:
        async with client:
            await self._pass(client, await self._server())

    async def _server(self) -> ByteStream:
        folder = dict(parse_qsl(self._target.query)).get("host", "")
        port = self._target.port or 5432
        if folder.startswith("/"):
            return _UnixStream(*await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.{port}"))
        return await anyio.connect_tcp(folder or self._target.hostname or "127.0.0.1", port)

    async def _pass(self, client: ByteStream, server: ByteStream) -> None:
        with anyio.CancelScope() as scope:
            self._open.add(scope)
            async with server, anyio.create_task_group() as tasks:
                is_last = anyio.Event()
                tasks.start_soon(self._pass_requests, client, server, is_last, scope)
                tasks.start_soon(self._pass_answers, server, client, is_last, scope)
        self._open.discard(scope)

    async def _pass_requests(
        self, client: ByteStream, server: ByteStream, is_last: anyio.Event, scope: anyio.CancelScope
    ) -> None:
        with _until_closed(scope):
            while True:
                request = await client.receive()
                await self._may_pass.wait()
                if self._cut_before and self._cut_before in request:
                    self._cut_before = b""
                    scope.cancel()
                elif self._cut_after and self._cut_after in request:
                    self._cut_after = b""
                    is_last.set()
                await server.send(request)

    async def _pass_answers(
        self, server: ByteStream, client: ByteStream, is_last: anyio.Event, scope: anyio.CancelScope
    ) -> None:
        with _until_closed(scope):
            while True:
                answer = await server.receive()
                await self._may_pass.wait()
                if is_last.is_set():
                    scope.cancel()
                await client.send(answer)


@contextmanager
def _until_closed(scope: anyio.CancelScope) -> Iterator[None]:
    """End the connection when one side has closed it."""
    try:
        yield
    except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
        scope.cancel()


@asynccontextmanager
async def database_proxy(target: str) -> AsyncIterator[DatabaseProxy]:
    """A proxy that is up."""
    async with anyio.create_task_group() as tasks:
        proxy = DatabaseProxy(target, tasks)
        await proxy.come_up()
        yield proxy
        tasks.cancel_scope.cancel()
