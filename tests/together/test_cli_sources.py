"""`ragchat source`, `sync` and `watch` as a user runs them.

Covers `ragchat.commands.source`, `ragchat.ingest.sources` and `ragchat.commands.watch`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ragchat.commands.watch import FIRST_REST, LOOK_SECONDS, MAX_LINES, MAX_REST, Pacing
from tests.support.pages import page_server
from tests.support.processes import LONGEST_SECONDS, Held
from tests.support.program import Program, program_in


@pytest.fixture
def ragchat(tmp_path: Path) -> Program:
    program = program_in(tmp_path)
    for name in ("tea.md", "sub/coffee.md"):
        file = program.folder / "notes" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# {file.stem}\n\nHow {file.stem} is made.\n", encoding="utf-8")
    return program


def names(uris: list[str]) -> list[str]:
    return [Path(uri).name for uri in uris]


def test_a_source_is_loaded_listed_kept_in_step_and_removed(ragchat: Program) -> None:
    added = ragchat("source", "add", "notes", "notes/sub", "none", "--json")
    assert [(Path(one["uri"]).name, one["status"]) for one in added.json["sources"]] == [
        ("notes", "added"),
        ("sub", "covered"),
        ("none", "refused"),
    ]
    assert (added.code, added.json["added"], added.json["failed"]) == (1, 2, 1)
    assert added.json["error"]["message"] == "none does not exist."
    (ragchat.folder / "notes" / "tea.md").unlink()
    (ragchat.folder / "notes" / "milk.md").write_text("How milk is made.", encoding="utf-8")
    synced = ragchat("sync", "--json").json
    assert (synced["added"], synced["unchanged"], names(synced["pruned"])) == (1, 1, ["tea.md"])
    [source] = ragchat("source", "ls", "--json").json["sources"]
    assert (source["documents"], source["exists"], source["outcome"]["files"]["removed"]) == (2, True, 1)
    assert "notes   2" in ragchat("source", "ls").out
    inner = ragchat("source", "rm", "notes/sub")
    assert (inner.code, inner.out) == (1, "")
    assert "is not a source, but inside" in inner.err
    removed = ragchat("source", "rm", "notes", "--forget")
    assert removed.out == "notes is no longer a source; its 2 documents were removed from memory.\n"
    assert "`ragchat memory undo`" in removed.err
    assert ragchat("memory", "ls", "--json").json["total"] == 0
    nothing = ragchat("sync", "--json")
    assert (nothing.code, nothing.json["error"]["code"]) == (1, "NO_SOURCES")


def test_a_missing_folder_loses_nothing_and_the_doctor_names_it(ragchat: Program) -> None:
    assert ragchat("source", "add", "notes").code == 0
    (ragchat.folder / "notes").rename(ragchat.folder / "elsewhere")
    missing = ragchat("sync")
    assert (missing.code, missing.out) == (1, "1 failed.\n")
    assert missing.err == ("failed: notes does not exist, so nothing is removed. Is the disk mounted?\n")
    checks = {check["name"]: check for check in ragchat("doctor", "--json").json["checks"]}
    assert (checks["sources"]["status"], checks["sources"]["detail"]) == ("warning", "missing: notes")
    (ragchat.folder / "notes").mkdir()
    empty = ragchat("sync")
    assert (empty.code, empty.out) == (0, "1 skipped.\n")
    assert (
        ragchat("source", "rm", "notes").out
        == "notes is no longer a source; its 2 documents stay in memory.\n"
    )
    assert ragchat("memory", "ls", "--json").json["total"] == 2


@pytest.mark.smoke
def test_a_folder_that_is_no_source_can_be_synced(ragchat: Program) -> None:
    assert ragchat("sync", "notes").out == "2 added (2 chunks).\n"
    (ragchat.folder / "notes" / "tea.md").unlink()
    assert ragchat("sync", "notes").out == "1 unchanged, 1 removed (1 chunk).\n"


def test_a_file_that_is_emptied_or_ignored_is_named_and_no_longer_quoted(ragchat: Program) -> None:
    ragchat("source", "add", "notes")
    (ragchat.folder / "notes" / "tea.md").write_text("", encoding="utf-8")
    (ragchat.folder / "notes" / ".gitignore").write_text("sub/\n", encoding="utf-8")
    synced = ragchat("sync")
    assert (synced.code, synced.out) == (0, "2 removed.\n")
    assert synced.err == (
        "removed: notes/sub/coffee.md is excluded by .gitignore\nremoved: notes/tea.md is empty\n"
    )
    assert ragchat("query", "how is tea made").out == ""
    ragchat("memory", "undo")
    assert ragchat("query", "how is tea made").out.startswith("[1] notes/tea.md")


def test_restoring_says_what_the_next_sync_does_and_how_to_keep_the_text(ragchat: Program) -> None:
    tea = ragchat.folder / "notes" / "tea.md"
    first = tea.read_text(encoding="utf-8")
    ragchat("source", "add", "notes")
    tea.write_text("Another text.\n", encoding="utf-8")
    ragchat("sync")
    keep = f"To keep it: ragchat memory show {tea} > {tea}\n"
    assert ragchat("memory", "restore", "notes/tea.md").err.endswith(
        f"The next sync loads the text of its file again. {keep}"
    )
    tea.unlink()
    ragchat("sync")
    restored = ragchat("memory", "restore", "notes/tea.md", "1")
    assert restored.err.endswith(
        f"The next sync removes it again, because its file is gone or holds no text. {keep}"
    )
    tea.write_text(ragchat("memory", "show", str(tea)).out, encoding="utf-8")
    assert tea.read_text(encoding="utf-8") == first
    assert ragchat("sync").out == "2 unchanged (2 chunks).\n"


def test_the_restored_text_of_a_file_without_a_suffix_is_kept_in_its_file(ragchat: Program) -> None:
    makefile = ragchat.folder / "notes" / "Makefile"
    makefile.write_text("all:\n\techo tea\n", encoding="utf-8")
    ragchat("source", "add", "notes")
    makefile.unlink()
    ragchat("sync")
    keep = f"To keep it: ragchat memory show {makefile} > {makefile}\n"
    assert ragchat("memory", "restore", "notes/Makefile").err.endswith(keep)


def test_keeping_the_restored_text_of_a_converted_document_spares_its_file(ragchat: Program) -> None:
    page = ragchat.folder / "notes" / "page.html"
    page.write_text("<h1>Tea</h1><p>Steep it for three minutes.</p>", encoding="utf-8")
    ragchat("source", "add", "notes")
    page.write_text("<h1>Tea</h1><p>Steep it for four minutes.</p>", encoding="utf-8")
    ragchat("sync")
    restored = ragchat("memory", "restore", "notes/page.html")
    assert restored.err.endswith(f"To keep it: ragchat memory show {page} > {page}.md\n")


def test_the_chat_syncs(ragchat: Program) -> None:
    ragchat("source", "add", "notes")
    (ragchat.folder / "notes" / "tea.md").unlink()
    chat = ragchat(stdin="/sync\n")
    assert "1 unchanged, 1 removed (1 chunk)." in chat.out + chat.err


# Watching


def event(watch: Held, status: str, name: str) -> dict[str, Any]:
    """The next line that says this; fails on a line about another change."""
    line: dict[str, Any] = json.loads(watch.line())
    assert (line["status"], Path(line["uri"]).name) == (status, name)
    return line


@pytest.fixture
def watchable(ragchat: Program) -> Program:
    pytest.importorskip("watchfiles", reason="the environment was set up before watchfiles was needed")
    return ragchat


def test_changes_are_synced_as_they_happen(watchable: Program) -> None:
    notes = watchable.folder / "notes"
    with watchable.started("watch", "notes", "--json") as watch:
        event(watch, "added", "tea.md")
        event(watch, "added", "coffee.md")
        event(watch, "watching", "notes")
        (notes / "tea.md").write_text("# Tea\n\nTea is made with water.\n", encoding="utf-8")
        assert event(watch, "updated", "tea.md")["chunks"] == 1
        (notes / ".hidden.md").write_text("Not loaded.", encoding="utf-8")
        (notes / ".gitignore").write_text("ignored.md\n", encoding="utf-8")
        (notes / "ignored.md").write_text("Not loaded.", encoding="utf-8")
        (notes / "sub" / "coffee.md").unlink()
        event(watch, "removed", "coffee.md")
        (notes / "new").mkdir()
        (notes / "new" / "milk.md").write_text("Milk.", encoding="utf-8")
        event(watch, "added", "milk.md")


def test_a_watch_counts_the_documents_of_a_folder_that_is_moved(watchable: Program) -> None:
    for number in range(MAX_LINES + 1):
        (watchable.folder / "notes" / "sub" / f"{number}.md").write_text(f"Note {number}.", encoding="utf-8")
    with watchable.started("watch", "notes") as watch:
        assert watch.line().split()[1:] == [b"added", b"notes", b"(23", b"documents)"]
        assert b"watching" in watch.line()
        (watchable.folder / "notes" / "sub").rename(watchable.folder / "notes" / "new")
        assert watch.line().split()[1:] == [b"removed", b"notes/sub", b"(22", b"documents)"]
        assert watch.line().split()[1:] == [b"added", b"notes/new", b"(22", b"documents)"]


def test_a_file_that_keeps_changing_is_synced_ever_more_seldom() -> None:
    log, other, pacing = Path("log.md"), Path("note.md"), Pacing()
    synced = []
    for second in range(600):
        if pacing.ready([log], second):
            pacing.synced([log], second)
            synced.append(second)
    assert synced[:6] == [0, 2, 6, 14, 30, 62]
    assert {after - before for before, after in pairwise(synced[6:])} == {MAX_REST}
    assert pacing.ready([log, other], 600) == [other]
    # It has stayed as it was for a while.
    pacing.synced([log], 10_000)
    assert pacing.ready([log], 10_000 + FIRST_REST) == [log]


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_file_whose_name_is_not_text_does_not_end_watching(watchable: Program) -> None:
    notes = watchable.folder / "notes"
    with watchable.started("watch", "notes", "--json") as watch:
        for status, name in (("added", "tea.md"), ("added", "coffee.md"), ("watching", "notes")):
            event(watch, status, name)
        Path(os.fsdecode(os.fsencode(notes) + b"/\xff.md")).write_text("How milk is made.", encoding="utf-8")
        event(watch, "added", "%FF.md")
        (notes / "sub" / "coffee.md").unlink()
        event(watch, "removed", "coffee.md")


def python_under(folder: Path, command: str) -> str:
    """A Python that this command of the shell starts; skips the test where it cannot."""
    python = folder / "python"
    python.write_text(f'#!/bin/sh\n{command} {sys.executable} "$@"\n', encoding="utf-8")
    python.chmod(0o700)
    if subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode:
        pytest.skip(f"`{command}` does not work on this machine")
    return str(python)


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="on Linux each folder is watched by itself")
def test_a_folder_that_may_not_be_read_does_not_hide_the_changes_in_others(
    watchable: Program, tmp_path: Path
) -> None:
    folders = [watchable.folder / "notes" / name for name in "abcdefgh"]
    for folder in folders:
        folder.mkdir()
    unreadable = folders.pop(3)
    unreadable.chmod(0)
    # Root may read everything.
    python = python_under(tmp_path, "exec" if os.geteuid() else "exec setpriv --bounding-set=-all")
    with watchable.started("watch", "notes", "--json", python=python) as watch:
        while json.loads(watch.line())["status"] != "watching":
            pass
        for folder in folders:
            (folder / "milk.md").write_text(f"How milk is made in {folder}.", encoding="utf-8")
        found = {Path(json.loads(watch.line())["uri"]).parent.name for _ in folders}
    unreadable.chmod(0o700)
    assert found == {folder.name for folder in folders}


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such limits")
@pytest.mark.parametrize(("limit", "value"), [("max_inotify_instances", 0), ("max_inotify_watches", 1)])
def test_where_the_system_watches_no_more_folders_they_are_compared(
    watchable: Program, tmp_path: Path, limit: str, value: int
) -> None:
    notes = watchable.folder / "notes"
    (notes / "loop").symlink_to(notes)
    # A namespace of users has limits of its own.
    command = f"echo {value} > /proc/sys/user/{limit} && exec"
    python = python_under(tmp_path, f"exec unshare -Ur sh -c '{command} \"$@\"' -")
    with watchable.started("watch", "notes", "--json", python=python) as watch:
        event(watch, "added", "tea.md")
        event(watch, "added", "coffee.md")
        watching = event(watch, "watching", "notes")
        assert watching["error"].startswith(f"is compared every {LOOK_SECONDS:g} s: ")
        # An older file of the same length in the place of another one.
        text = (notes / "tea.md").read_text(encoding="utf-8")
        (notes / "tea.md").write_text(text.swapcase(), encoding="utf-8")
        os.utime(notes / "tea.md", (0, 0))
        (notes / "sub" / "coffee.md").unlink()
        assert {json.loads(watch.line())["status"] for _ in range(2)} == {"removed", "updated"}


@pytest.mark.full
def test_web_pages_are_watched_beside_folders(watchable: Program) -> None:
    with page_server() as pages:
        tea = pages.add("/tea", "<p>Oolong takes three minutes.")
        with watchable.started("watch", "--json", "--allow-private", tea, "notes") as watch:
            events = [json.loads(watch.line()) for _ in range(5)]
        assert {"watching", "added"} == {event["status"] for event in events if event["uri"] == tea}
        assert any(event["uri"].endswith("coffee.md") for event in events)


def test_a_watched_folder_may_disappear_and_come_back(watchable: Program) -> None:
    watchable("source", "add", "notes")
    with watchable.started("watch", "--json") as watch:
        event(watch, "watching", "notes")
        (watchable.folder / "notes").rename(watchable.folder / "elsewhere")
        event(watch, "missing", "notes")
        # The empty folder at which a disk was mounted; its files are not listed one by one.
        (watchable.folder / "notes").mkdir()
        assert "Is the disk mounted?" in event(watch, "skipped", "notes")["error"]
        event(watch, "watching", "notes")
        (watchable.folder / "notes").rmdir()
        event(watch, "missing", "notes")
        (watchable.folder / "elsewhere" / "tea.md").unlink()
        (watchable.folder / "elsewhere").rename(watchable.folder / "notes")
        event(watch, "removed", "tea.md")
        event(watch, "watching", "notes")
        (watchable.folder / "notes" / "milk.md").write_text("Milk.", encoding="utf-8")
        event(watch, "added", "milk.md")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_ends_watching_quietly(watchable: Program) -> None:
    # The memory is in the watched folder: its own writes are no changes.
    with watchable.started("watch", ".", "--memory", "memory.db") as watch:
        while b"watching" not in (line := watch.line()):
            assert b"added" in line
        watch.send_signal(signal.SIGINT)
        try:
            out, err = watch.communicate(timeout=LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            pytest.fail("it goes on")
        assert (watch.returncode, out, err) == (0, b"", b"")


def test_watching_a_path_that_does_not_exist_fails(watchable: Program) -> None:
    refused = watchable("watch", "none")
    assert (refused.code, refused.err) == (1, "ragchat: none does not exist.\n")
