"""`ragmemory http`: the memory over HTTP, until a signal comes."""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import nullcontext
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskStatus
from msgspec import Struct

from ragcommon import server_note
from ragcommon.hosts import SERVER_NAME, server_command
from ragcommon.listening import (
    ConnectionLimits,
    Listener,
    bound,
    is_wildcard,
    listens_on_loopback,
    raise_descriptor_limit,
)
from ragconfig.home import Home
from ragconfig.keys import HTTP_TOKEN, find_token, stored_token
from ragconfig.settings import Settings, fingerprint
from ragmcp.http.access import ANY, Access
from ragmcp.http.asgi import Endpoint
from ragmcp.http.limits import HttpLimits
from ragmcp.oauth.bearer import SharedToken
from ragmemory import __version__
from ragmemory.http.health import Readiness
from ragmemory.http.memories import NamedMemories
from ragmemory.http.metrics import Metrics
from ragmemory.http.plain import PlainEndpoint
from ragmemory.http.rate import RateLimit
from ragmemory.http.routes import MCP, Views, make_app, own_user
from ragmemory.log import json_handler, say
from ragmemory.mcp.server import OnDemand, make_server
from ragmemory.mcp.toolsets import ALL
from ragmemory.signals import CLOSE_SECONDS, exit_within, stdin_end, stop_signal

if TYPE_CHECKING:
    from ragmemory.http.issuer import Issuer


class HttpSettings(Struct, frozen=True):
    """The table [http], without the limits of the endpoint."""

    host: str
    port: int
    token_file: str
    memories: str
    public_url: str
    issuer: str
    jwks: str
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
        exposed = not listens_on_loopback(listening)
        # Before stdout is redirected, so that errors reach it.
        # With memories for others, a proxy may let them in on an address that only this machine can reach.
        needed = exposed or table.memories
        token = find_token(table.token_file) or (_own_token(settings.home) if needed else None)
        announce = partial(_announce_as_json, _own_stdout()) if as_json else _announce
        anyio.run(_serve, settings, table, listening, token, announce, end_with_stdin)


def _own_token(home: Home) -> str:
    """This user's own token, created and printed on stderr the first time. Raises SettingsError.

    It is never on a command line, nor in a log as JSON, which names only its file.
    """
    path = home.data / HTTP_TOKEN
    token, made = stored_token(path)
    if made and json_handler():
        say(logging.INFO, f"A bearer token was made and kept in {path}.")
    elif made:
        sys.stderr.write(
            f"A bearer token was made and kept in {path}; it is shown only now:\n\n  {token}\n\n"
        )
    return token


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
    memory.follows_always = True
    server = make_server(settings, memory)
    metrics = Metrics(memory.service)
    form = PlainEndpoint if table.plain_form else Endpoint
    endpoint = form(server, limits, guard=None, on_answered=metrics.count)
    # The page must not show paths of this machine to others.
    command = server_command() if listens_on_loopback(listening) else [SERVER_NAME]
    # For `ragchat` of the same user, which gets the key from the note.
    own_server = make_server(settings.with_table("memory", toolsets=list(ALL)), memory)
    owner = Endpoint(own_server, limits, guard=None, on_answered=metrics.count)
    note = server_note.make_note(
        _local_root(listening), settings.memory_path, fingerprint(settings, __version__)
    )
    stop = anyio.Event()
    memories = _named_memories(settings, table, limits, form, listening)
    limited = partial(RateLimit, table.requests_per_second, table.burst)
    readiness = Readiness(memory.service, stop.is_set, lambda: memory.has_warmed_up)
    views = Views(
        *(endpoint, metrics, command, note.proof, readiness.why_not),
        needs_token=token is not None,
        plain_form=table.plain_form,
    )
    # A proxy may be another user's.
    unguarded = None if table.public_url or table.allowed_hosts else own_user
    authorize = unguarded if token is None else SharedToken(token)
    app = make_app(views, _access(table, token), limited, authorize, owner, note, memories)
    finish_seconds = ceil(limits.leave_seconds)
    listener = Listener(
        app, ConnectionLimits(table.head_seconds, limits.header_bytes, table.idle_seconds, finish_seconds)
    )
    # Open requests may run in threads, which cannot be cancelled.
    leave = partial(exit_within, finish_seconds + 2 * CLOSE_SECONDS)
    async with anyio.create_task_group() as tasks:
        memory.tasks = tasks
        for one in (server, own_server):
            one.allow_tasks(tasks)
        await tasks.start(_set_after, stop, partial(stop_signal, leave))
        if end_with_stdin:
            await tasks.start(_set_after, stop, stdin_end)
        async with endpoint, owner, memories.serving() if memories else nullcontext():
            tasks.start_soon(listener.run_on, listening)
            await listener.started_listening.wait()
            with (
                server_note.kept(note, settings.home.state)
                if _can_be_found(settings, listening)
                else nullcontext()
            ):
                announce(_description(listening, server.tools, token))
                tasks.start_soon(_warm_up, memory, readiness)
                await stop.wait()
            leave()
            listener.stop()
            for served in (endpoint, owner):  # While the named memories close.
                served.leave()
        await listener.stopped.wait()
        exit_within()
        tasks.cancel_scope.cancel()


async def _warm_up(memory: OnDemand, readiness: Readiness) -> None:
    await memory.warm_up()
    await readiness.why_not()  # The log says why a memory cannot be used, also where nothing probes.


def _named_memories(
    settings: Settings,
    table: HttpSettings,
    limits: HttpLimits,
    form: type[Endpoint],
    listening: socket.socket,
) -> NamedMemories | None:
    """The memories of http.memories, if it names a file. Raises SettingsError."""
    issuer = _issuer(settings, table, listening)
    if not table.memories:
        return None
    root = table.public_url.rstrip("/") or _local_root(listening)
    return NamedMemories(settings, settings.path("http.memories", ""), limits, form, root, issuer)


def _issuer(settings: Settings, table: HttpSettings, listening: socket.socket) -> Issuer | None:
    """The identity provider, if there is one. Raises InvalidSetting."""
    if not table.issuer:
        return None
    from ragmcp.oauth.dpop import is_available
    from ragmcp.oauth.errors import AuthorizationFailed
    from ragmemory.http.issuer import Issuer

    try:
        issuer = Issuer(table.issuer, table.jwks)
        reason = "" if is_available() else "it needs PyJWT: pip install 'ragchat[jwt]'"
        if not table.memories:
            reason = "it is for the memories of http.memories, which names no file"
        elif not table.public_url and not listens_on_loopback(listening):
            reason = "its tokens are for one address, and http.public_url names none"
    except AuthorizationFailed as error:
        reason = f"{error.url}: {error.reason}"
    if reason:
        raise settings.invalid("http.issuer", reason)
    return issuer


def _can_be_found(settings: Settings, listening: socket.socket) -> bool:
    """Whether `ragchat` may use this server instead of one of its own.

    Not through another address than loopback, where a proxy might see the key.
    """
    is_local = listens_on_loopback(listening) or is_wildcard(listening)
    return is_local and not settings.tables["memory"]["read_only"]


def _access(table: HttpSettings, token: str | None) -> Access:
    # Without the token DNS rebinding does not help a web page, so if one is required, any name is allowed.
    hosts = table.allowed_hosts or ([ANY] if token else [])
    return Access(
        allowed_hosts=frozenset(name.lower() for name in hosts),
        allowed_origins=frozenset(origin.lower() for origin in table.allowed_origins),
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


def _local_root(listening: socket.socket) -> str:
    """The root of the server's addresses, for programs on this machine."""
    host, port = listening.getsockname()[:2]
    if is_wildcard(listening):
        host = "::1" if ":" in host else "127.0.0.1"
    return _root(host, port)


def _root(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _description(listening: socket.socket, tools: Iterable[str], token: str | None) -> dict[str, Any]:
    host, port = listening.getsockname()[:2]
    return {
        "url": f"{_root(host, port)}{MCP}",
        "host": host,
        "port": port,
        "authorization": "bearer" if token else "none",
        "tools": list(tools),
        "pid": os.getpid(),
    }


def _announce(description: dict[str, Any]) -> None:
    say(logging.INFO, f"ragmemory listens at {description['url']} (Ctrl-C stops it).")


def _announce_as_json(stdout: int, description: dict[str, Any]) -> None:
    # The descriptor stays open: its end shows the parent process that this one has ended.
    try:
        os.write(stdout, json.dumps(description).encode() + b"\n")
    except OSError as error:
        sys.stderr.write(f"stdout cannot be written ({error.strerror}). ")
        _announce(description)
