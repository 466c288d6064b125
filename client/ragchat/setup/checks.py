"""Checks of everything that ragchat needs, for `ragchat doctor` and the page. Each returns a `Check`."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, closing
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Literal, TypeAlias

import anyio
from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

from ragchat.console import describe
from ragchat.errors import MemoryRefused, RagChatError
from ragchat.llm.discovery import resolve, unknown_model
from ragchat.llm.errors import ModelError
from ragchat.llm.types import OFFLINE
from ragchat.servers.connection import Connection
from ragchat.servers.managed import ServerState
from ragchat.servers.manager import ServerManager
from ragchat.servers.memory.process import STDERR_FILE
from ragchat.servers.memory.server import open_memory
from ragchat.servers.tools import OfferedTool
from ragchat.sessions.database import DAMAGED_HINT, TOO_NEW_HINT, too_new
from ragchat.sessions.store import sessions_path
from ragchat.settings import ModelSettings
from ragchat.turn.tool_search import cost
from ragchat.uris import short_uri
from ragcommon.contract.files import Source
from ragcommon.contract.search import INDEX_IN_PROGRESS
from ragcommon.errors import os_reason
from ragcommon.files.uris import without_secrets
from ragcommon.files.writing import private_folder
from ragcommon.sqlite.readonly import obstacle_of, readable
from ragcommon.text.rules import counted
from ragconfig.errors import SettingsError
from ragconfig.prompt_files import FOLDER, broken_in, templates_in
from ragconfig.redaction import redacted
from ragconfig.settings import Settings

Status: TypeAlias = Literal["ok", "warning", "fault"]

PROJECT_NAME = re.compile(r"[\w.-]+")  # the `anyio` of `anyio>=4.9`
EXTRA = re.compile(r"extra == ['\"](\w+)")
# The extras that read kinds of files.
FORMATS = {"pdf": "PDF", "office": "Word, PowerPoint and Excel", "code": "source code"}
# Bytes. During a large load the write-ahead log grows to about 100 MB before a checkpoint.
MIN_FREE_BYTES = 200_000_000
# A slow server is not a fault; a server that does not answer for this long is one.
SERVER_SECONDS = 60.0
BETTER_HINT = "`ragchat embedder ls` lists those that find more."
PROBE = "A sentence that `ragchat doctor` embeds."


class Check(Struct, frozen=True):
    """One line of the table; `hint` is what to do about it."""

    name: str
    status: Status
    detail: str
    hint: str = ""


async def examine(settings: Settings) -> AsyncIterator[Check]:
    """Run all checks in sequence."""
    async for check in _checks(settings):
        yield replace(check, detail=redacted(check.detail), hint=redacted(check.hint))


async def _checks(settings: Settings) -> AsyncIterator[Check]:
    yield packages()
    yield formats()
    yield sqlite()
    yield folders(settings)
    if settings.has_memory_file:
        yield await to_thread.run_sync(database, "memory file", settings.memory_path)
    yield await to_thread.run_sync(sessions_file, sessions_path(settings))
    async for check in memory_server(settings):
        yield check
    yield prompt_files(settings)
    yield await model(settings)
    for check in await other_servers(settings):
        yield check


def packages() -> Check:
    """Whether the dependencies in the distribution's metadata are installed."""
    if missing := _missing():
        return Check("packages", "fault", f"missing: {', '.join(missing)}", "Install ragchat again.")
    system = f"Python {platform.python_version()} on {platform.platform(terse=True)}"
    return Check("packages", "ok", f"ragchat {metadata.version('ragchat')} with all it needs, {system}")


def formats() -> Check:
    """Whether the libraries for all kinds of files are installed."""
    missing = {extra: names for extra in FORMATS if (names := _missing(extra))}
    if not missing:
        return Check("formats", "ok", f"with the libraries for {', '.join(FORMATS.values())}")
    kinds = ", ".join(FORMATS[extra] for extra in missing)
    detail = f"not fully supported: {kinds}; missing: {', '.join(chain.from_iterable(missing.values()))}"
    return Check("formats", "warning", detail, f"pip install 'ragchat[{','.join(missing)}]'")


def _missing(*extra: str) -> list[str]:
    """The packages that ragchat itself, or one of its extras, needs and that are not installed."""
    needed = (line for line in metadata.requires("ragchat") or [] if EXTRA.findall(line) == [*extra])
    names = (match[0] for line in needed if (match := PROJECT_NAME.match(line)))
    return [name for name in names if not _is_installed(name)]


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def sqlite() -> Check:
    detail = f"SQLite {sqlite3.sqlite_version}"
    with closing(sqlite3.connect(":memory:")) as db:
        try:
            db.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
        except sqlite3.OperationalError:
            return Check("sqlite", "fault", f"{detail} without FTS5", "Use a Python whose SQLite has FTS5.")
    return Check("sqlite", "ok", f"{detail} with FTS5")


def folders(settings: Settings) -> Check:
    home, memory = settings.home, settings.memory_path.parent
    # A folder of a memory that does not exist yet may be a slip.
    for folder in (home.data, home.state, *([memory] if _exists(memory) else [])):
        probe = folder / ".ragchat-doctor"
        try:
            private_folder(folder)
            probe.touch()
            probe.unlink()
        except OSError as error:
            if obstacle_of(error, probe) == "full":
                break  # _check_free_space says how much space is needed
            hint = "Make your user its owner, or move everything with RAGCHAT_HOME."
            # Commands that only read still work on a full or read-only disk.
            status: Status = "warning" if obstacle_of(error, probe) else "fault"
            return Check("folders", status, f"{folder} cannot be written: {os_reason(error)}", hint)
    return _check_free_space(settings)


def _check_free_space(settings: Settings) -> Check:
    """Whether there is space for the next writes: a rebuilt index may be as large as the memory."""
    home, memory = settings.home, settings.memory_path
    needed = max(MIN_FREE_BYTES, memory.stat().st_size if _exists(memory) else 0)
    for folder in (memory.parent, home.data, home.state):
        free = shutil.disk_usage(next(one for one in (folder, *folder.parents) if _exists(one))).free
        if free < needed:
            detail = f"{folder} has only {free / 1e6:,.0f} MB free"
            hint = f"Free some space: at least {needed / 1e6:,.0f} MB. Without it, ragchat can only read."
            return Check("folders", "warning", detail, hint)
    return Check("folders", "ok", f"{home.data} ({shutil.disk_usage(home.data).free / 1e9:.1f} GB free)")


def _exists(path: Path) -> bool:
    """Whether it exists; also False, not an error, in a folder that this user may not search."""
    return os.access(path, os.F_OK)


def sessions_file(path: Path) -> Check:
    """Whether the sessions are intact, and not of a later release."""
    check = database("sessions file", path)
    if check.status != "ok" or not path.exists():
        return check
    with closing(readable(path, 0)) as file, closing(sqlite3.connect(file.uri, uri=True)) as db:
        [(version,)] = db.execute("PRAGMA user_version").fetchall()
    if reason := too_new(version):
        return Check(check.name, "fault", f"{path} cannot be used: {reason}", TOO_NEW_HINT)
    return check


def database(name: str, path: Path) -> Check:
    """Whether a SQLite file is intact. A file that does not exist yet is ok."""
    try:
        if not path.exists():
            return Check(name, "ok", f"{path} (does not exist yet)")
        with closing(readable(path, 0)) as file, closing(sqlite3.connect(file.uri, uri=True)) as db:
            [(verdict,)] = db.execute("PRAGMA quick_check(1)").fetchall()
    except OSError as error:
        return Check(name, "fault", f"{path} cannot be read: {os_reason(error)}")
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # Permissions or too few open files: no reason to repair the file.
        is_closed = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CANTOPEN
        return Check(name, "fault", f"{path} {_problem(error)}", "" if is_closed else DAMAGED_HINT)
    if verdict != "ok":
        return Check(name, "fault", f"{path} is damaged", DAMAGED_HINT)
    return Check(name, "ok", f"{path} ({path.stat().st_size / 1e6:.1f} MB)")


def _problem(error: sqlite3.Error | UnicodeDecodeError) -> str:
    """What is wrong with a SQLite file, as the end of a sentence that begins with its path."""
    if isinstance(error, UnicodeDecodeError):  # Even the name of a table in an error message can be damaged.
        return "is damaged"
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_NOTADB:
            return "is not a SQLite database"
        case sqlite3.SQLITE_CORRUPT:
            return "is damaged"
    return f"cannot be read: {error}"


async def memory_server(settings: Settings) -> AsyncIterator[Check]:
    """Start the server and send it a query; then check the embedder."""
    started = time.perf_counter()
    try:
        with anyio.fail_after(SERVER_SECONDS):
            async with open_memory(settings) as memory:
                stats = await memory.stats()
                sources = await memory.sources()
                ready = time.perf_counter() - started
                found = await memory.query("ragchat")
                answered = time.perf_counter() - started - ready
    except TimeoutError:
        yield Check("memory server", "fault", f"does not answer within {SERVER_SECONDS:g} s")
        return
    except RagChatError as error:
        hint = error.hint if isinstance(error, MemoryRefused) else ""
        hint = hint or f"Its log: {settings.home.state / STDERR_FILE}"
        yield Check("memory server", "fault", str(error), hint)
        return
    size = f"{counted(stats.documents, 'document')}, {counted(stats.chunks, 'chunk')}"
    way = f"the one that runs at {memory.url}, ready" if memory.url else "a process of our own, started"
    times = f"in {ready:.2f} s, a query took {answered * 1000:.0f} ms"
    if settings.tables["memory"]["read_only"] and not memory.url:
        times += f"; read-only by memory.read_only (from {settings.origins['memory.read_only']})"
    yield Check("memory server", "ok", f"{size}; {way} {times}")
    yield sources_check(sources)
    search = search_check(found.notice)
    if found.notice:
        yield search
    if search.status != "ok":
        return
    if stats.documents:
        hint = BETTER_HINT if stats.embedder.startswith("local:") else ""
        yield Check("embedder", "ok", stats.embedder, hint)
    else:
        yield await embedder(settings)


def search_check(notice: str) -> Check:
    """Whether anything is away that a search needs: the embedder, an index, a reranker."""
    start, end = INDEX_IN_PROGRESS
    is_alone = notice.startswith(start) and notice.endswith(end)
    return Check("search", "ok" if is_alone or not notice else "fault", notice)


def sources_check(sources: Sequence[Source]) -> Check:
    """Whether the folders that memory is kept in step with exist and can be read."""
    unreadable = [source for source in sources if source.exists and source.problem]
    if unreadable:
        detail = "; ".join(f"{short_uri(source.uri)} {source.problem}" for source in unreadable)
        return Check("sources", "fault", detail, "Let your user read it, or run `ragchat source rm PATH`.")
    missing = [short_uri(source.uri) for source in sources if not source.exists]
    if not missing:
        return Check("sources", "ok", counted(len(sources), "folder") if sources else "none")
    detail = f"missing: {', '.join(missing)}"
    return Check("sources", "warning", detail, "Mount the disk, or run `ragchat source rm PATH`.")


async def embedder(settings: Settings) -> Check:
    """Whether the embedder of an empty memory works: a query to it embeds nothing."""
    kind = settings.tables["embedder"]["kind"]
    try:
        with anyio.fail_after(SERVER_SECONDS):
            async with open_memory(settings) as memory:
                await memory.compare(PROBE, [PROBE])  # A query first, which downloads no model.
    except TimeoutError:
        return Check("embedder", "fault", f"does not answer within {SERVER_SECONDS:g} s")
    except RagChatError as error:
        return Check("embedder", "fault", str(error), error.hint)
    return Check("embedder", "ok", f"{kind} (tested with a sentence)")


def prompt_files(settings: Settings) -> Check:
    """Whether the user's own prompts can be read."""
    folder = settings.home.config / FOLDER
    if broken := broken_in(folder):
        return Check("prompts", "warning", " ".join(broken), "docs/guide/prompts.md shows how a file begins.")
    own = len([*templates_in(folder)])
    return Check("prompts", "ok", f"{own} of your own" if own else "none of your own")


async def model(settings: Settings) -> Check:
    """Which model answers, and whether it can be reached. Offline is not a fault."""
    wanted = settings.tables["model"]["name"]
    try:
        found = await resolve(wanted, settings.table("model", ModelSettings))
        if found is None:
            hint = "" if wanted == OFFLINE else "`ragchat model setup` finds a chat model on this machine."
            return Check("model", "ok", "none: answers are quotations from your documents", hint)
        async with aclosing(found):
            names = await found.names()
            await found.find_context()
    except (ModelError, SettingsError) as error:
        return Check("model", "fault", str(error), error.hint)
    detail = f"{found.name} at {without_secrets(found.endpoint.base_url)}"
    if names and found.name not in names:
        hint = unknown_model(found.endpoint, names).hint
        return Check("model", "warning", f"{detail}, which does not list this model", hint)
    if found.context is None:
        return Check("model", "ok", detail)
    detail += f", with a context of {found.context:,} tokens"
    wanted_tokens = settings.table("model", ModelSettings).context_tokens
    hint = "" if found.context >= wanted_tokens else f"model.context_tokens is more: {wanted_tokens:,}."
    return Check("model", "ok", detail, hint)


async def other_servers(settings: Settings) -> list[Check]:
    """Start the other servers, as a chat does."""
    try:
        async with ServerManager(settings) as manager:
            manager.start()
            connections = [*manager.connections.values()]
            for connection in connections:
                await connection.wait_started()
            tools = manager.tools()
    except RagChatError as error:
        return [Check("other servers", "fault", str(error), error.hint)]
    if not connections:
        return [Check("other servers", "ok", "none")]
    return [
        other_server(connection, [tool for tool in tools if tool.server == connection.name])
        for connection in connections
    ]


def other_server(connection: Connection, tools: Sequence[OfferedTool]) -> Check:
    """Neither a disabled server nor a project's server that waits for consent is a fault."""
    name, state = f"server {connection.name}", connection.state
    if state is ServerState.READY:
        detail = f"{counted(len(tools), 'tool')}, about {cost(tools):,} tokens in a prompt"
        return Check(name, "ok", detail)
    if state is ServerState.UNASKED:
        hint = f"`ragchat mcp test {connection.name}` shows its command and asks you."
        return Check(name, "warning", f"{connection.config.file} names it, and it {state}", hint)
    if connection.failure is None:
        return Check(name, "ok", state)
    failure = describe(connection.failure)
    log = "" if connection.config.url else f"Its log: {connection.log}"
    return Check(name, "fault", failure.message, failure.hint or log)
