"""`ragmemory http`: the memory over HTTP, until a signal comes."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from math import ceil
from typing import Any

import anyio
from anyio.abc import TaskStatus
from msgspec import Struct

from ragconfig.hosts import SERVER_NAME, server_command
from ragconfig.settings import Settings
from ragmcp.http.access import ANY, Access
from ragmcp.http.asgi import Endpoint, HttpLimits
from ragmemory.http import plain
from ragmemory.http.bearer import find_token, stored_token
from ragmemory.http.listening import ConnectionLimits, Listener, bound, is_loopback, raise_descriptor_limit
from ragmemory.http.metrics import Metrics
from ragmemory.http.routes import MCP, make_app
from ragmemory.mcp.server import OnDemand, make_server
from ragmemory.signals import CLOSE_SECONDS, exit_within, stdin_end, stop_signal


class HttpSettings(Struct, frozen=True):
    """The table [http], without the limits of the endpoint."""

    host: str
    port: int
    token_file: str
    allowed_hosts: list[str]
    allowed_origins: list[str]
    requests_per_second: float
    burst: int
    plain_form: bool
    head_seconds: float
    idle_seconds: int


def run(settings: Settings, *, as_json: bool, end_with_stdin: bool) -> None:
    """Serve until a signal comes (or stdin ends). Raises SettingsError, AddressUnusable.

    Once it listens it prints a line on stderr, or with `as_json` a JSON document on stdout.
    """
    table = settings.table("http", HttpSettings)
    raise_descriptor_limit()
    with bound(table.host, table.port) as listening:
        exposed = not is_loopback(listening)
        # Before stdout is redirected, so that errors reach it.
        token = find_token(table.token_file) or (stored_token(settings.home) if exposed else None)
        announce = partial(_announce_as_json, _own_stdout()) if as_json else _announce
        anyio.run(_serve, settings, table, listening, token, announce, end_with_stdin)


async def _serve(
    settings: Settings,
    table: HttpSettings,
    listening: socket.socket,
    token: str | None,
    announce: Callable[[dict[str, Any]], None],
    end_with_stdin: bool,
) -> None:
    limits = settings.table("http", HttpLimits)
    memory = OnDemand(settings)
    server = make_server(settings, memory)
    metrics = Metrics(memory.service)
    parse_other = plain.parse if table.plain_form else None
    endpoint = Endpoint(server, limits, parse_other=parse_other, on_answered=metrics.count)
    # The page must not show paths of this machine to others.
    command = server_command() if is_loopback(listening) else [SERVER_NAME]
    app = make_app(endpoint, server, metrics, _access(table, token), command)
    connection_limits = _connection_limits(table, limits)
    listener = Listener(app, connection_limits)
    stop = anyio.Event()
    # Open requests may run in threads, which cannot be cancelled.
    leave = partial(exit_within, connection_limits.finish_seconds + 2 * CLOSE_SECONDS)
    async with anyio.create_task_group() as tasks:
        memory.tasks = tasks
        server.allow_tasks(tasks)
        await tasks.start(_set_after, stop, partial(stop_signal, leave))
        if end_with_stdin:
            await tasks.start(_set_after, stop, stdin_end)
        async with endpoint:
            tasks.start_soon(listener.run_on, listening)
            await listener.started_listening.wait()
            announce(_description(listening, server.tools, token))
            tasks.start_soon(memory.warm_up)
            await stop.wait()
            leave()
            listener.stop()
        await listener.stopped.wait()
        exit_within()
        tasks.cancel_scope.cancel()


def _access(table: HttpSettings, token: str | None) -> Access:
    # Without the token DNS rebinding does not help a web page, so if one is required, any name is allowed.
    hosts = table.allowed_hosts or ([ANY] if token else [])
    return Access(
        allowed_hosts=frozenset(name.lower() for name in hosts),
        allowed_origins=frozenset(origin.lower() for origin in table.allowed_origins),
        token=token,
        requests_per_second=table.requests_per_second,
        burst=table.burst,
    )


def _connection_limits(table: HttpSettings, limits: HttpLimits) -> ConnectionLimits:
    return ConnectionLimits(
        head_seconds=table.head_seconds,
        head_bytes=limits.header_bytes,
        idle_seconds=table.idle_seconds,
        finish_seconds=ceil(limits.leave_seconds),
    )


async def _set_after(
    stop: anyio.Event, cause: Callable[..., Awaitable[None]], *, task_status: TaskStatus[None]
) -> None:
    await cause(task_status=task_status)
    stop.set()


def _own_stdout() -> int:
    """Reserve stdout: returns a new descriptor of it, and sends other output to stderr from now on."""
    sys.stdout.flush()
    ours = os.dup(1)
    os.dup2(2, 1)
    return ours


def _description(listening: socket.socket, tools: Iterable[str], token: str | None) -> dict[str, Any]:
    host, port = listening.getsockname()[:2]
    address = f"[{host}]" if ":" in host else host
    return {
        "url": f"http://{address}:{port}{MCP}",
        "host": host,
        "port": port,
        "authorization": "bearer" if token else "none",
        "tools": list(tools),
        "pid": os.getpid(),
    }


def _announce(description: dict[str, Any]) -> None:
    sys.stderr.write(f"ragmemory listens at {description['url']} (Ctrl-C stops it).\n")


def _announce_as_json(stdout: int, description: dict[str, Any]) -> None:
    # The descriptor stays open: its end shows the parent process that this one has ended.
    try:
        os.write(stdout, json.dumps(description).encode() + b"\n")
    except OSError as error:
        sys.stderr.write(f"stdout cannot be written ({error.strerror}). ")
        _announce(description)
