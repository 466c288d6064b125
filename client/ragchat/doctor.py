"""Checks of everything a person needs: each one a small function that looks and says what it saw."""

from __future__ import annotations

import platform
import re
import shutil
import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from contextlib import closing
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias

import anyio
from anyio import to_thread
from msgspec import Struct, structs

from ragchat.console import is_styled, is_unicode
from ragchat.errors import MemoryRefused, ModelError, RagChatError
from ragchat.formatting import counted
from ragchat.llm.discovery import resolve
from ragchat.memory.client import open_memory
from ragchat.memory.process import STDERR_FILE
from ragchat.sessions.store import sessions_path
from ragchat.settings import ModelSettings
from ragchat.types import OFFLINE
from ragconfig.home import private_folder
from ragconfig.readable import obstacle_of, readable
from ragconfig.settings import USER_FILE, Settings, SettingsError

Status: TypeAlias = Literal["ok", "warning", "fault"]

OLDEST_PYTHON = (3, 11)
PROJECT_NAME = re.compile(r"[\w.-]+")  # the `anyio` of `anyio>=4.9`
# Bytes. A large load makes the write-ahead log grow to some 100 MB before it is written back.
LEAST_ROOM = 200_000_000
# A server that is only slow is no fault; one that says nothing for so long is.
SERVER_SECONDS = 60.0
PROBE = "A sentence of the doctor's."


class Check(Struct, frozen=True):
    """One line of the table; `hint` is what to do about it."""

    name: str
    status: Status
    detail: str
    hint: str = ""


async def examine(settings: Settings, config_file: Path | None) -> AsyncIterator[Check]:
    """Every check, one after the other. Never raises for what it finds."""
    yield python()
    yield packages()
    yield sqlite()
    yield settings_files(settings, config_file)
    yield folders(settings)
    yield await to_thread.run_sync(database, "memory file", settings.memory_path)
    yield await to_thread.run_sync(database, "sessions file", sessions_path(settings))
    async for check in memory_server(settings, config_file):
        yield check
    yield await model(settings)
    yield terminal()


def python() -> Check:
    detail = f"{platform.python_version()} on {platform.platform(terse=True)}"
    if sys.version_info >= OLDEST_PYTHON:
        return Check("python", "ok", detail)
    return Check("python", "fault", detail, "Install Python 3.11 or newer.")


def packages() -> Check:
    """Whether what the distribution needs is installed; its own metadata names it."""
    needed = (line for line in metadata.requires("ragchat") or [] if "extra ==" not in line)
    names = (match[0] for line in needed if (match := PROJECT_NAME.match(line)))
    if missing := [name for name in names if not _is_installed(name)]:
        return Check("packages", "fault", f"missing: {', '.join(missing)}", "Install ragchat again.")
    return Check("packages", "ok", f"ragchat {metadata.version('ragchat')} with all it needs")


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


def settings_files(settings: Settings, config_file: Path | None) -> Check:
    """They could be read, and every value fits its key, or there would be no `settings`."""
    path = config_file or settings.home.config / USER_FILE
    where = str(path) if path.exists() else "no file of your own"
    return Check("settings", "ok", f"{where} (settings changed: {len(settings.origins)})")


def folders(settings: Settings) -> Check:
    home = settings.home
    for folder in (home.data, home.state, settings.memory_path.parent):
        probe = folder / ".ragchat-doctor"
        try:
            private_folder(folder)
            probe.touch()
            probe.unlink()
        except OSError as error:
            if obstacle_of(error, probe) == "full":
                break  # it is said how much room is needed
            hint = "Give it to your user, or move everything with RAGCHAT_HOME."
            # What only reads works all the same.
            status: Status = "warning" if obstacle_of(error, probe) else "fault"
            return Check("folders", status, f"{folder} cannot be written: {error.strerror}", hint)
    return _room(settings)


def _room(settings: Settings) -> Check:
    """Whether there is room for the next writes: an index built again may be as large as the memory."""
    home, memory = settings.home, settings.memory_path
    needed = max(LEAST_ROOM, memory.stat().st_size if memory.exists() else 0)
    for folder in (memory.parent, home.data, home.state):
        free = shutil.disk_usage(next(one for one in (folder, *folder.parents) if one.exists())).free
        if free < needed:
            detail = f"{folder} has only {free / 1e6:,.0f} MB free"
            hint = f"Free some space: at least {needed / 1e6:,.0f} MB. Only reading works without."
            return Check("folders", "warning", detail, hint)
    return Check("folders", "ok", f"{home.data} ({shutil.disk_usage(home.data).free / 1e9:.1f} GB free)")


def database(name: str, path: Path) -> Check:
    """Whether a SQLite file is whole; a file that is not there yet is fine."""
    if not path.exists():
        return Check(name, "ok", f"{path} (not there yet)")
    hint = "Put a copy from a backup in its place, or try `sqlite3 FILE .recover`."
    try:
        with closing(readable(path, 0)) as way, closing(sqlite3.connect(way.uri, uri=True)) as db:
            [(verdict,)] = db.execute("PRAGMA quick_check(1)").fetchall()
    except (sqlite3.Error, OSError) as error:
        return Check(name, "fault", f"{path}: {error}", hint)
    if verdict != "ok":
        return Check(name, "fault", f"{path}: {verdict}", hint)
    return Check(name, "ok", f"{path} ({path.stat().st_size / 1e6:.1f} MB)")


async def memory_server(settings: Settings, config_file: Path | None) -> AsyncIterator[Check]:
    """Start it, ask it something, and look at what embeds."""
    started = time.perf_counter()
    try:
        with anyio.fail_after(SERVER_SECONDS):
            async with open_memory(settings, config_file) as memory:
                stats = await memory.stats()
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
    holds = f"{counted(stats.documents, 'document')}, {counted(stats.chunks, 'chunk')}"
    times = f"started in {ready:.2f} s, a query took {answered * 1000:.0f} ms"
    yield Check("memory server", "ok", f"{holds}; {times}")
    if found.notice:
        yield Check("embedder", "fault", found.notice)
    elif stats.documents:
        yield Check("embedder", "ok", stats.embedder)
    else:
        yield await embedder(settings, config_file)


async def embedder(settings: Settings, config_file: Path | None) -> Check:
    """Whether a text is stored and found in a memory of its own: questions to an empty one embed nothing."""
    if settings.tables["memory"]["read_only"]:
        kind = settings.tables["embedder"]["kind"]
        return Check("embedder", "warning", f"{kind}, not tried: memory is empty and may not be written")
    with TemporaryDirectory(prefix="ragchat-doctor-", ignore_cleanup_errors=True) as folder:
        table = {**settings.tables["memory"], "path": str(Path(folder) / "memory.db")}
        apart = structs.replace(settings, tables={**settings.tables, "memory": table})
        try:
            with anyio.fail_after(SERVER_SECONDS):
                async with open_memory(apart, config_file) as memory:
                    await memory.inject(PROBE)
                    found = await memory.query(PROBE)
                    stats = await memory.stats()
        except TimeoutError:
            return Check("embedder", "fault", f"does not answer within {SERVER_SECONDS:g} s")
        except RagChatError as error:
            return Check("embedder", "fault", str(error), error.hint)
    if found.notice or not found.hits:
        return Check("embedder", "fault", found.notice or "what was stored is not found")
    return Check("embedder", "ok", f"{stats.embedder} (tried in a memory of its own)")


async def model(settings: Settings) -> Check:
    """Which model answers, and whether it can be reached. None at all is a way to work, not a fault."""
    wanted = settings.tables["model"]["name"]
    try:
        found = await resolve(wanted, settings.table("model", ModelSettings))
        if found is None:
            hint = "" if wanted == OFFLINE else "Start Ollama or set OPENAI_API_KEY for a chat model."
            return Check("model", "ok", "none: answers are quotations from memory", hint)
        try:
            names = await found.names()
        finally:
            await found.aclose()
    except (ModelError, SettingsError) as error:
        return Check("model", "fault", str(error), error.hint)
    detail = f"{found.name} at {found.place.base_url}"
    if names and found.name not in names:
        return Check("model", "warning", f"{detail}, which does not list it", "Check model.name.")
    return Check("model", "ok", detail)


def terminal() -> Check:
    size = shutil.get_terminal_size()
    words = [
        f"{size.columns} x {size.lines}" if sys.stdout.isatty() else "no terminal",
        "colours" if is_styled(sys.stdout) else "no colours",
        "Unicode" if is_unicode(sys.stdout) else f"{sys.stdout.encoding}, no Unicode",
    ]
    return Check("terminal", "ok", ", ".join(words))
