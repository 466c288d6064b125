"""Single checks of the doctor; the whole visit stands in tests/together. Covers `ragchat.commands.doctor`."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections import namedtuple
from contextlib import closing
from importlib import metadata
from pathlib import Path

import pytest
from msgspec.structs import replace

from ragchat.commands.doctor import terminal
from ragchat.setup import checks
from ragcommon.contract.files import Source
from ragcommon.contract.search import INDEX_IN_PROGRESS
from ragconfig.settings import load_settings
from tests.support.authorization_server import protected
from tests.support.servers import GOOD, write


def test_a_source_that_cannot_be_read_is_a_fault_and_a_missing_one_is_not() -> None:
    well = Source("file:///notes", "2026-01-31T09:00:00Z")
    missing = replace(well, uri="file:///usb", exists=False, problem="does not exist")
    locked = replace(well, uri="file:///locked", problem="cannot be read: permission denied")
    assert checks.sources_check([well]).status == "ok"
    check = checks.sources_check([well, missing])
    assert (check.status, check.detail) == ("warning", "missing: /usb")
    check = checks.sources_check([well, missing, locked])
    assert (check.status, check.detail) == ("fault", "/locked cannot be read: permission denied")
    assert "source rm" in check.hint


def test_an_index_in_progress_is_no_fault_but_what_a_search_lacks_is_one() -> None:
    built = "10".join(INDEX_IN_PROGRESS)
    assert checks.search_check(built) == checks.Check("search", "ok", built)
    assert checks.search_check("").status == "ok"
    away = "The reranker cross is not available: too slow."
    for notice in (f"{built} {away}", f"{away} {built}", f"{built} (away)"):
        assert checks.search_check(notice) == checks.Check("search", "fault", notice)


def test_a_database_that_is_not_there_yet_is_well_and_stays_away(tmp_path: Path) -> None:
    check = checks.database("memory file", tmp_path / "memory.db")
    assert (check.status, check.detail) == ("ok", f"{tmp_path / 'memory.db'} (does not exist yet)")
    assert list(tmp_path.iterdir()) == []


def test_a_whole_database_is_well_and_a_damaged_one_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "a b.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE t (x)")
        db.executemany("INSERT INTO t VALUES (?)", [("x" * 100,)] * 1000)
    assert checks.database("memory file", path).status == "ok"
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * 8192)
    check = checks.database("memory file", path)
    assert (check.status, check.detail) == ("fault", f"{path} is damaged")
    assert check.hint
    path.write_text("A note, and no database at all. " * 100, encoding="utf-8")
    assert checks.database("memory file", path).detail == f"{path} is not a SQLite database"


def test_sessions_of_a_later_release_are_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    assert checks.sessions_file(path).status == "ok"
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 1")
        assert checks.sessions_file(path).status == "ok"
        db.execute("PRAGMA user_version = 99")
    check = checks.sessions_file(path)
    assert check.status == "fault"
    assert "version 99" in check.detail
    assert check.hint.startswith("Update ragchat")


def test_a_database_whose_tables_have_damaged_names_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE tea (x)")
    path.write_bytes(path.read_bytes().replace(b"tea", b"t\xbaa", 1))
    check = checks.database("memory file", path)
    assert (check.status, check.detail) == ("fault", f"{path} is damaged")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such FIFOs")
def test_a_database_that_is_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "memory.db")
    check = checks.database("memory file", tmp_path / "memory.db")
    assert check.detail == f"{tmp_path / 'memory.db'} cannot be read: it is not a regular file"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = ["anyio>=4", "other; extra == 'test'", "gone.it[x]>=2"]
    monkeypatch.setattr(metadata, "requires", lambda _: needed)
    check = checks.packages()
    assert (check.status, check.detail) == ("fault", "missing: gone.it")


def test_missing_libraries_for_kinds_of_files_are_named_with_the_command_that_adds_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needed = ["anyio>=4", "gone-pdf; extra == 'pdf'", "gone-code>=2; extra == 'code'", "gone; extra == 'all'"]
    monkeypatch.setattr(metadata, "requires", lambda _: needed)
    check = checks.formats()
    assert check.status == "warning"
    assert check.detail == "not fully supported: PDF, source code; missing: gone-pdf, gone-code"
    assert check.hint == "pip install 'ragchat[pdf,code]'"
    monkeypatch.setattr(metadata, "requires", lambda _: ["anyio>=4; extra == 'pdf'"])
    assert checks.formats().status == "ok"


def test_a_folder_that_cannot_be_written_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("in the way", encoding="utf-8")
    check = checks.folders(load_settings(environ={"RAGCHAT_HOME": str(tmp_path)}, folder=tmp_path))
    assert check.status == "fault"
    assert check.detail.startswith(f"{tmp_path / 'data'} cannot be written")


def test_a_disk_that_is_almost_full_is_a_warning_that_says_how_much_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(environ={"RAGCHAT_HOME": str(tmp_path)}, folder=tmp_path)
    usage = namedtuple("usage", "free")
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(checks.MIN_FREE_BYTES))
    assert checks.folders(settings).status == "ok"
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(checks.MIN_FREE_BYTES - 1))
    check = checks.folders(settings)
    assert (check.status, check.detail) == ("warning", f"{tmp_path / 'data'} has only 200 MB free")
    assert "200 MB" in check.hint


def test_sqlite_and_terminal_are_seen() -> None:
    assert [check.status for check in (checks.sqlite(), terminal())] == ["ok"] * 2


def test_an_invalid_prompt_file_is_named(tmp_path: Path) -> None:
    settings = load_settings(None, {}, {"RAGCHAT_HOME": str(tmp_path)})
    assert checks.prompt_files(settings).detail == "none of your own"
    file = settings.home.config / "prompts" / "mine.md"
    file.parent.mkdir(parents=True)
    file.write_text("+++\ntitle = \n+++\nText.", encoding="utf-8")
    check = checks.prompt_files(settings)
    assert check.status == "warning"
    assert check.detail.startswith(f"{file} is not a valid prompt: Invalid value")


async def test_every_other_server_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(
        tmp_path,
        good=GOOD,
        gone={"command": "there-is-no-such-program"},
        keyless={"command": "x", "env": {"KEY": "${NO_SUCH_VARIABLE}"}},
        off={"command": "x", "disabled": True},
    )
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": GOOD}}), encoding="utf-8")
    settings = load_settings(environ={"RAGCHAT_HOME": str(tmp_path)}, folder=tmp_path)
    found = {check.name: check for check in await checks.other_servers(settings)}
    assert {name: check.status for name, check in found.items()} == {
        "server good": "ok",
        "server gone": "fault",
        "server keyless": "fault",
        "server off": "ok",
        "server theirs": "warning",
    }
    assert "tokens in a prompt" in found["server good"].detail
    assert "there is no such program" in found["server gone"].detail
    assert "NO_SUCH_VARIABLE" in found["server keyless"].detail
    assert "mcp test theirs" in found["server theirs"].hint


async def test_a_server_that_wants_a_login_is_a_fault_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with protected() as server:
        write(tmp_path, remote={"url": f"{server.url}/mcp"})
        settings = load_settings(environ={"RAGCHAT_HOME": str(tmp_path)}, folder=tmp_path)
        [check] = await checks.other_servers(settings)
    assert check.status == "fault"
    assert "ragchat mcp login remote" in check.hint


async def test_a_file_of_servers_that_cannot_be_read_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load_settings(environ={"RAGCHAT_HOME": str(tmp_path)}, folder=tmp_path)
    assert [check.detail for check in await checks.other_servers(settings)] == ["none"]
    write(tmp_path)
    (tmp_path / "config" / "mcp.json").write_text("{oops", encoding="utf-8")
    assert [check.status for check in await checks.other_servers(settings)] == ["fault"]
