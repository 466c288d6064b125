"""Several machines, each with files of its own, and one memory in PostgreSQL.

The machines are two services with a home each. A folder is on the disk of the one that looks at it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from ragcommon.contract.files import Ingestion
from ragmemory.blocks.editor import replacement
from ragmemory.errors import NoSources, NotWrittenBack, SourceNotFound
from ragmemory.files import ingestions as module
from ragmemory.service import MemoryService
from tests.support.memories import ORIGIN, put, service_for

pytestmark = pytest.mark.full

OLD = 1_000_000_000


@dataclass
class Machine:
    """A machine of the memory. Its folder is at `place` while it is used, else where others do not look."""

    memory: MemoryService
    place: Path
    disk: Path

    @property
    def name(self) -> str:
        return self.memory._store.engine.machine

    @contextmanager
    def folder(self) -> Iterator[Path]:
        self.disk.mkdir(exist_ok=True)
        self.disk.rename(self.place)
        try:
            yield self.place
        finally:
            self.place.rename(self.disk)

    def write(self, name: str, text: str, changed: int = OLD) -> str:
        """The uri of a file of this machine that was changed long ago."""
        self.disk.mkdir(exist_ok=True)
        file = self.disk / name
        file.write_text(text, encoding="utf-8")
        os.utime(file, (changed, changed))
        return self.uri(name)

    def uri(self, name: str) -> str:
        return (self.place / name).as_uri()

    def remove(self, name: str) -> None:
        (self.disk / name).unlink()

    async def load(self, *, prune: bool = True) -> dict[str, str]:
        """The outcomes of a sync of the folder, or of a load of it, by the names of the files."""
        jobs = self.memory.ingestions
        with self.folder():
            job = await jobs.start([str(self.place)], prune=prune, origin=ORIGIN)
            await self.ended(job)
        _, outcomes = await jobs.status(job.job_id)
        return {one.uri.rpartition("/")[2]: one.status for one in outcomes}

    async def ended(self, job: Ingestion) -> Ingestion:
        with anyio.fail_after(60):
            while job.status == "running":
                job, _ = await self.memory.ingestions.status(job.job_id, wait_seconds=10)
        return job

    async def stored(self) -> dict[str, str]:
        """The texts in memory by the names of their files."""
        documents, _ = await self.memory.documents.page(100)
        found = [await self.memory.documents.read(one.uri) for one in documents]
        return {info.uri.rpartition("/")[2]: text for info, text in found}


@pytest.fixture
async def machines(tmp_path: Path, database: str) -> AsyncIterator[tuple[Machine, Machine]]:
    url = f"{database}&schema=test_{secrets.token_hex(6)}"
    with anyio.fail_after(120):
        async with (
            service_for(tmp_path / "one", roots=["*"], url=url) as one,
            service_for(tmp_path / "two", roots=["*"], url=url) as two,
        ):
            place = tmp_path / "notes"
            yield Machine(one, place, tmp_path / "disk-1"), Machine(two, place, tmp_path / "disk-2")


async def test_a_sync_removes_only_what_its_own_machine_has_loaded(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    one.write("one.md", "A note of the first machine.")
    one.write("both.md", "A note that the first machine removes.")
    two.write("two.md", "A note of the second machine.")
    assert await one.load() == {"one.md": "added", "both.md": "added"}
    assert await two.load(prune=False) == {"two.md": "added"}  # without a word about files that it lacks
    assert await two.load() == {"two.md": "unchanged"}
    assert await one.load() == {"one.md": "unchanged", "both.md": "unchanged"}
    one.remove("both.md")
    assert await two.load() == {"two.md": "unchanged"}
    assert await one.load() == {"one.md": "unchanged", "both.md": "removed"}
    assert set(await two.stored()) == {"one.md", "two.md"}


async def test_rules_and_empty_files_of_one_machine_remove_nothing_of_another(
    machines: tuple[Machine, Machine],
) -> None:
    one, two = machines
    for name in ("ignored.md", "empty.md"):
        one.write(name, f"What {name} says on the first machine.")
    await one.load()
    two.write("here.md", "A note of the second machine.")
    two.write("ignored.md", "What is ignored.")
    two.write("empty.md", "")
    two.write(".gitignore", "ignored.md\n")
    await two.load()
    assert set(await two.stored()) == {"ignored.md", "empty.md", "here.md"}


async def test_a_folder_that_two_machines_share_stays_with_the_first(
    machines: tuple[Machine, Machine],
) -> None:
    """Also where their copies differ in their times."""
    one, two = machines
    for machine, changed in ((one, OLD), (two, OLD + 1)):
        machine.write("same.md", "The same text for both.", changed)
        machine.write("rest.md", "The rest.")
    await one.load()
    engine = one.memory._store.engine
    assert await two.load() == {"same.md": "unchanged", "rest.md": "unchanged"}
    assert await one.load() == {"same.md": "unchanged", "rest.md": "unchanged"}
    files = await one.memory.documents.files([one.uri("same.md"), one.uri("rest.md")])
    assert {(file.machine, file.stamp.split(":")[2]) for file in files.values()} == {
        (one.name, f"{OLD}000000000@{len(one.place.parts)}")
    }
    assert engine.machine == one.name != two.name
    one.remove("same.md")
    assert (await two.load())["same.md"] == "unchanged"
    assert (await one.load())["same.md"] == "removed"
    assert (await two.load())["same.md"] == "added"
    assert (await one.load()) == {"rest.md": "unchanged"}


async def test_of_two_texts_at_one_path_the_last_one_loaded_stays(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    one.write("plan.md", "The plan of the first machine.")
    one.write("rest.md", "The rest.")
    two.write("plan.md", "The plan of the second machine.", OLD + 1)
    await one.load()
    assert await two.load() == {"plan.md": "updated"}
    one.remove("plan.md")
    assert await one.load() == {"rest.md": "unchanged"}
    assert (await one.stored())["plan.md"] == "The plan of the second machine."


async def test_what_another_machine_loads_while_it_is_removed_stays(
    machines: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = machines
    one.write("plan.md", "The plan of the first machine.")
    one.write("rest.md", "The rest.")
    await one.load()
    one.remove("plan.md")
    two.write("plan.md", "The plan of the second machine.", OLD + 1)
    forget_all = one.memory.writer.forget_all

    async def late(uris: list[str], *others: object) -> object:
        one.place.rename(one.disk)
        await two.load()
        one.disk.rename(one.place)
        return await forget_all(uris, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(one.memory.writer, "forget_all", late)
    await one.load()
    assert (await two.stored())["plan.md"] == "The plan of the second machine."


async def test_each_machine_has_its_own_sources(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    uri = one.place.as_uri()
    for machine in machines:
        machine.write(f"{machine.disk.name}.md", f"A note of {machine.disk.name}.")
    with pytest.raises(NoSources):
        await two.memory.sources.sync([], ORIGIN)
    with one.folder():
        [added] = await one.memory.sources.add([str(one.place)])
        assert (added.status, added.uri) == ("added", uri)
        await one.ended(await one.memory.sources.sync([], ORIGIN))
    [source] = await two.memory.sources.listed()
    assert (source.uri, source.machine, source.documents, source.problem) == (uri, one.name, 1, "")
    with pytest.raises(NoSources, match=f"on this machine, but on {one.name}"):
        await two.memory.sources.sync([], ORIGIN)
    with two.folder():
        [added] = await two.memory.sources.add([str(two.place)])
        assert added.status == "added"
        await two.ended(await two.memory.sources.sync([], ORIGIN))
        seen = {found.machine: found for found in await two.memory.sources.listed()}
    assert set(seen) == {one.name, ""}
    assert [seen[name].documents for name in (one.name, "")] == [1, 1]
    outcome = seen[""].outcome
    assert outcome is not None
    assert outcome.files == {"added": 1}
    [missing] = [found for found in await one.memory.sources.listed() if not found.machine]
    assert missing.problem == "does not exist"  # its own disk is away now


async def test_a_source_of_another_machine_is_removed_where_it_is_named(
    machines: tuple[Machine, Machine],
) -> None:
    one, two = machines
    for machine in machines:
        machine.write(f"{machine.disk.name}.md", f"A note of {machine.disk.name}.")
        await machine.load()
    with one.folder():
        await one.memory.sources.add([str(one.place)])
    sources = two.memory.sources
    with pytest.raises(SourceNotFound) as caught:
        await sources.remove(str(two.place), ORIGIN, forget=True)
    assert str(caught.value) == f"{two.place} is not a source of this machine, but of {one.name}."
    assert caught.value.hint == f"`ragchat source rm PATH --machine {one.name}` removes it."
    with pytest.raises(SourceNotFound):
        await sources.remove("file://[", ORIGIN, forget=True, machine=one.name)
    removed = await sources.remove(str(two.place), ORIGIN, forget=True, machine=one.name)
    assert (removed.documents, await sources.listed()) == (1, [])
    assert set(await two.stored()) == {"disk-2.md"}


async def test_what_an_earlier_release_has_stored_is_of_no_machine_until_it_is_loaded_again(
    machines: tuple[Machine, Machine],
) -> None:
    one, two = machines
    one.write("kept.md", "A note that stays.")
    one.write("gone.md", "A note that is removed.")
    with one.folder():
        await one.memory.sources.add([str(one.place)])
    await one.load()
    async with one.memory._store.engine.transaction() as connection:
        for table in ("documents", "sources"):
            await connection.execute(f"UPDATE {table} SET machine = ''")
    one.remove("gone.md")
    two.write("two.md", "A note of the second machine.")
    assert await two.load() == {"two.md": "added"}
    assert await one.load() == {"kept.md": "unchanged"}
    one.remove("kept.md")
    one.write("new.md", "A new note.")
    with one.folder():
        assert [added.status for added in await one.memory.sources.add([str(one.place)])] == ["added"]
        job = await one.ended(await one.memory.sources.sync([], ORIGIN))
        assert (job.removed, job.added) == (1, 1)
    [source] = await two.memory.sources.listed()
    assert (source.machine, source.documents) == (one.name, 1)
    assert set(await two.stored()) == {"gone.md", "new.md", "two.md"}


async def test_a_file_of_another_machine_is_neither_gone_nor_changed(
    machines: tuple[Machine, Machine],
) -> None:
    one, two = machines
    uri = one.write("plan.md", "The plan.")
    await one.load()
    two.write("two.md", "A note of the second machine.")
    with two.folder():
        await two.memory.sources.add([str(two.place)])
        assert await two.memory.sources.next_sync(uri) == ""
    assert (
        (await one.memory.documents.find(uri)).machine,
        (await two.memory.documents.find(uri)).machine,
    ) == (
        "",
        one.name,
    )
    editor = two.memory.block_editor
    [block] = await editor.blocks(uri)
    change = replacement(block.block_id, "Another plan.")
    with pytest.raises(NotWrittenBack, match=f"its file is on {one.name}"):
        await editor.edit(uri, block.version, change, ORIGIN, write_back=True)
    await editor.edit(uri, block.version, change, ORIGIN)
    assert (await two.memory.documents.find(uri)).machine == one.name  # an edit does not move the file
    assert (await put(two.memory, "A text without a file.", uri="note")).status == "added"
    assert (await one.memory.documents.find("note")).machine == ""


async def test_a_job_is_resumed_only_on_its_machine_and_cancelled_anywhere(
    machines: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = machines
    one.write("one.md", "A note of the first machine.")

    def job(uri: str) -> Ingestion:
        return Ingestion(secrets.token_hex(4), [uri], False, "killed", "group", "")

    resumed = await one.memory._store.ingestions.begin(job(one.place.as_uri()))
    other = await two.memory._store.ingestions.begin(job(one.place.as_uri()))
    assert resumed.job_id != other.job_id  # the same request on another machine is another job
    assert await two.memory._store.ingestions.begin(job(one.place.as_uri())) == other
    assert (await one.memory.ingestions.cancel(other.job_id)).status == "cancelled"
    assert await two.memory._store.ingestions.of_others("another") == []
    assert not await two.memory._store.ingestions.take_over(resumed.job_id, "another", 0.0)
    with one.folder():
        # Not before: the services, which have just started, would take the jobs over without the folder.
        monkeypatch.setattr(module, "SILENT_SECONDS", 0.0)
        monkeypatch.setattr(module, "BEAT_SECONDS", 0.05)
        one.memory.ingestions.wake()
        with anyio.fail_after(30):
            while (found := (await two.memory.ingestions.status(resumed.job_id))[0]).status == "running":
                await anyio.lowlevel.checkpoint()
    assert (found.status, found.added, set(await two.stored())) == ("completed", 1, {"one.md"})
