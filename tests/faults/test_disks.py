"""Full and read-only disks, with real processes on a real small disk."""

from __future__ import annotations

import random
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from ragchat.memory.transfer import new_file
from ragchat.offline.answer import NO_MODEL
from tests.support.disks import SmallDisk, small_disk
from tests.support.processes import attempt, called, memory_process, uris
from tests.support.program import Program, program_in

FULL = "the disk is full"
READ_ONLY = "it is on a read-only disk"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", "4m") as disk:
        yield disk


@pytest.fixture
def ragchat(tmp_path: Path, disk: SmallDisk) -> Program:
    """Its home is on the disk, its documents are not."""
    folder = tmp_path / "folder"
    folder.mkdir()
    return Program(disk.path / "home", folder, {"TMPDIR": str(tmp_path)})


def write_tea(ragchat: Program) -> None:
    (ragchat.folder / "tea.md").write_text("# Tea\n\nGreen tea is brewed at 75 degrees.\n", encoding="utf-8")


def check_that_reading_works(ragchat: Program, session: str, why: str) -> None:
    """Every command that only reads answers; the only warning is that a turn is not saved."""
    found = ragchat("query", "green tea", "--json")
    assert (found.code, found.err, len(found.json["hits"])) == (0, "", 1)
    asked = ragchat("ask", "At which temperature is green tea brewed?")
    assert (asked.code, "75 degrees" in asked.out) == (0, True)
    assert asked.err.replace(f"{NO_MODEL}\n", "").count("\n") <= 1
    assert why in asked.out + asked.err
    chat = ragchat(stdin="At which temperature is green tea brewed?\n")
    assert (chat.code, "75 degrees" in chat.out) == (0, True)
    for words in ("memory show tea.md", "memory log", "memory verify", f"session show {session}"):
        done = ragchat(*words.split(), "--json")
        assert (words, done.code, done.err) == (words, 0, "")
    assert ragchat("memory", "ls", "--json").json["total"] == 1
    assert len(ragchat("session", "ls", "--json").json["sessions"]) == 1


def check_that_writing_is_refused(ragchat: Program, code: str, why: str) -> None:
    """A load of unchanged files writes nothing."""
    unchanged = ragchat("inject", "tea.md")
    assert (unchanged.code, unchanged.out, unchanged.err) == (0, "1 unchanged (1 chunk).\n", "")
    (ragchat.folder / "coffee.md").write_text("# Coffee\n\nPressed at nine bar.\n", encoding="utf-8")
    failed = ragchat("inject", "coffee.md")
    assert (failed.code, failed.out) == (1, "1 failed.\n")
    assert failed.err.startswith("failed: coffee.md\n")
    assert failed.err.count(why) == 1
    refused = ragchat("memory", "undo", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, code)
    kept = ragchat("memory", "rm", "tea.md")
    assert (kept.code, kept.out, why in kept.err) == (1, "", True)


def test_an_export_to_a_full_disk_names_its_file(disk: SmallDisk) -> None:
    path = disk.path / "export.jsonl"
    disk.fill()
    with pytest.raises(OSError, match=re.escape(str(path))), new_file(path) as file:
        file.write(bytes(1 << 20))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_logs_on_a_full_disk_stop_nothing_and_are_not_on_the_screen(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path)
    state = ragchat.home / "state"
    state.mkdir(parents=True)
    for name in ("ragchat.log", "ragmemory.log"):
        (state / name).symlink_to("/dev/full")
    failed = ragchat("memory", "show", "nothing.md")
    assert (failed.code, failed.out) == (1, "")
    assert failed.err == (
        "ragchat: There is no document nothing.md in memory.\n"
        "  `ragchat memory ls` and the tool list_documents list the documents.\n"
    )


def test_on_a_full_disk_reading_goes_on_and_writing_does_so_when_there_is_room(
    ragchat: Program, disk: SmallDisk
) -> None:
    write_tea(ragchat)
    assert ragchat("inject", "tea.md").code == 0
    session = ragchat("ask", "How is green tea brewed?", "--json").json["session_id"]
    disk.fill()
    check_that_reading_works(ragchat, session, FULL)
    check_that_writing_is_refused(ragchat, "MEMORY_FULL", FULL)
    checks = {check["name"]: check for check in ragchat("doctor", "--json").json["checks"]}
    assert {name for name, check in checks.items() if check["status"] != "ok"} == {"folders"}
    assert (checks["folders"]["status"], "0 MB free" in checks["folders"]["detail"]) == ("warning", True)
    disk.free()
    assert ragchat("inject", ".").out == "1 added, 1 unchanged (2 chunks).\n"


def test_on_a_read_only_disk_reading_goes_on(ragchat: Program, disk: SmallDisk) -> None:
    write_tea(ragchat)
    assert ragchat("inject", "tea.md").code == 0
    session = ragchat("ask", "How is green tea brewed?", "--json").json["session_id"]
    disk.remount("ro")
    check_that_reading_works(ragchat, session, READ_ONLY)
    check_that_writing_is_refused(ragchat, "MEMORY_READ_ONLY", READ_ONLY)
    checks = {check["name"]: check["status"] for check in ragchat("doctor", "--json").json["checks"]}
    assert {name for name, status in checks.items() if status != "ok"} == {"folders"}


def test_on_a_read_only_disk_without_a_memory_there_is_an_empty_one(
    ragchat: Program, disk: SmallDisk
) -> None:
    disk.remount("ro")
    found = ragchat("query", "tea")
    assert (found.code, found.err.startswith("Memory is empty.")) == (0, True)
    assert ragchat("session", "ls").err == "There are no past conversations yet.\n"
    write_tea(ragchat)
    assert READ_ONLY in ragchat("inject", "tea.md").err


def test_a_load_that_fills_the_disk_counts_what_is_stored_and_is_gone_on_with(
    ragchat: Program, disk: SmallDisk
) -> None:
    words = random.Random(1)
    for number in range(200):
        text = " ".join(f"w{words.randrange(5000)}" for _ in range(600))
        (ragchat.folder / f"{number}.md").write_text(f"# Doc {number}\n\n{text}\n", encoding="utf-8")
    disk.remount("size=2m")
    load = ragchat("inject", ".", "--json")
    counts = {name: load.json[name] for name in ("added", "updated", "unchanged", "failed")}
    assert (load.code, load.json["error"]["code"], load.err) == (1, "MEMORY_FULL", "")
    assert counts["failed"] > 0
    assert all(FULL in document["error"] for document in load.json["documents"] if document["error"])
    # The log of what is stored cannot be written back; neither is there room for a copy of it.
    disk.fill()
    ragchat.environ["TMPDIR"] = str(disk.path)
    assert ragchat("query", "w1 w2", "--json").json["hits"]
    disk.remount("size=64m")
    with closing(sqlite3.connect(ragchat.home / "data" / "memory.db")) as memory:
        [(stored,)] = memory.execute("SELECT count(*) FROM documents")
    assert stored == counts["added"]
    again = ragchat("inject", ".", "--json").json
    assert (again["added"], again["unchanged"], again["failed"]) == (200 - stored, stored, 0)


async def test_a_disk_that_fills_under_a_running_server_loses_nothing_that_was_acknowledged(
    tmp_path: Path, disk: SmallDisk
) -> None:
    async def inject(number: int) -> dict[str, Any]:
        text = f"Report {number}. " + "More of it. " * 2000
        done = await attempt(client, "Inject", text=text, metadata={"uri": f"n{number}"})
        return done.structured(dict)

    variables = {"TMPDIR": str(tmp_path)}
    with anyio.fail_after(120):
        async with memory_process(disk.path, variables=variables) as client:
            acknowledged: list[str] = []
            while "errorCode" not in (last := await inject(len(acknowledged))):
                acknowledged.append(last["uri"])
            assert last["errorCode"] == "MEMORY_FULL"
            assert acknowledged
            listed = await called(client, "list_documents", limit=1000, max_tokens=1_000_000)
            assert sorted(document["uri"] for document in listed["documents"]) == sorted(acknowledged)
            assert uris(await called(client, "Query", query="report"))
            disk.remount("size=32m")
            assert (await inject(len(acknowledged)))["status"] == "added"


async def test_a_server_started_on_a_full_disk_sees_and_does_writes_once_there_is_room(
    disk: SmallDisk,
) -> None:
    with anyio.fail_after(60):
        async with memory_process(disk.path) as client:
            await called(client, "Inject", text="Green tea.", metadata={"uri": "tea"})
        disk.fill()
        async with memory_process(disk.path) as one, memory_process(disk.path) as two:
            assert uris(await called(one, "Query", query="tea")) == ["tea"]
            assert uris(await called(two, "Query", query="tea")) == ["tea"]
            refused = await attempt(one, "Inject", text="Black tea.", metadata={"uri": "black"})
            assert refused.structured(dict)["errorCode"] == "MEMORY_FULL"
            disk.free()
            await called(one, "Inject", text="Black tea.", metadata={"uri": "black"})
            assert set(uris(await called(one, "Query", query="tea"))) == {"tea", "black"}
            assert set(uris(await called(two, "Query", query="tea"))) == {"tea", "black"}


@pytest.mark.parametrize("shm", [True, False], ids=["with -shm", "without -shm"])
async def test_the_write_ahead_log_of_a_killed_server_is_read_from_a_read_only_disk(
    tmp_path: Path, disk: SmallDisk, shm: bool
) -> None:
    with anyio.fail_after(60):
        async with memory_process(disk.path) as client:
            await called(client, "Inject", text="Green tea.", metadata={"uri": "tea"})
            # What a server leaves that is killed now.
            killed = tmp_path / "killed"
            killed.mkdir()
            names = ["memory.db", "memory.db-wal", *(["memory.db-shm"] if shm else [])]
            for name in names:
                shutil.copyfile(disk.path / name, killed / name)
        for name in names:
            shutil.copyfile(killed / name, disk.path / name)
        disk.remount("ro")
        (tmp_path / "log").touch()
        async with memory_process(
            disk.path, "--read-only", log=tmp_path / "log", variables={"TMPDIR": str(killed)}
        ) as client:
            assert uris(await called(client, "Query", query="tea")) == ["tea"]
    assert sorted(file.name for file in killed.iterdir()) == sorted(names)  # the copy is gone
