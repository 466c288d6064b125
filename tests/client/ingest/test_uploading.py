"""Files of this machine in a memory on another one: a real HTTP server, and a home for each client.

The server runs on this machine, of course, but has left no note in the homes of its clients.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from ragchat.errors import MemoryRefused, UploadsRefused
from ragchat.ingest.loading import load_files, source_uri, sync_files
from ragchat.ingest.report import InjectReport, Progress
from ragchat.ingest.sources import add_sources
from ragchat.ingest.uploading import forget_uploads
from ragchat.memory.client import MemoryClient
from ragchat.memory.transfer import BATCH
from ragchat.servers.memory.server import open_memory
from ragcommon.contract.documents import Forgotten
from ragconfig.settings import load_settings
from tests.support.documents import pdf
from tests.support.http_memory import HttpMemory, http_memory
from tests.support.processes import RAGMEMORY

TOKEN = "correct-horse"
TOOLSETS = "memory,documents,maintenance,history"


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGMEMORY_TOKEN", TOKEN)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HttpMemory]:
    (tmp_path / "server").mkdir()
    with http_memory(tmp_path / "server", "--toolsets", TOOLSETS, RAGMEMORY_TOKEN=TOKEN) as server:
        yield server


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("tea", "coffee"):
        write(folder, f"{name}.md", f"# {name.title()}\n\nHow {name} is made.\n")
    return folder


@asynccontextmanager
async def machine(home: Path, url: str) -> AsyncIterator[MemoryClient]:
    """The memory at `url` as a client with this home uses it."""
    settings = load_settings(None, {"memory_server.url": url}, {"RAGCHAT_HOME": str(home)}, home.parent)
    async with open_memory(settings) as memory:
        yield memory


@pytest.fixture
async def laptop(tmp_path: Path, server: HttpMemory) -> AsyncIterator[MemoryClient]:
    async with machine(tmp_path / "laptop", server.url) as memory:
        yield memory


@pytest.fixture
async def desktop(tmp_path: Path, server: HttpMemory) -> AsyncIterator[MemoryClient]:
    async with machine(tmp_path / "desktop", server.url) as memory:
        yield memory


def write(folder: Path, name: str, text: str) -> None:
    folder.joinpath(name).write_text(text, "utf-8")


def counts(report: InjectReport) -> dict[str, int]:
    found = [one.status for one in report.outcomes]
    return {status: found.count(status) for status in sorted(set(found))}


async def stored(memory: MemoryClient) -> dict[str, str]:
    """The names of all files on the server, and their machines."""
    page = await memory.documents(None)
    return {document.uri.rpartition("/")[2]: document.machine for document in page.documents}


async def text_of(memory: MemoryClient, path: Path) -> str:
    return (await memory.show(str(path))).text


async def test_a_folder_is_uploaded_once_and_changes_follow(laptop: MemoryClient, notes: Path) -> None:
    assert counts(await load_files(laptop, [notes])) == {"added": 2}
    assert laptop.mirror is not None
    name = laptop.mirror.machine
    assert await stored(laptop) == {"tea.md": name, "coffee.md": name}
    [hit] = (await laptop.query("how tea is made", 1)).hits
    assert hit.uri == source_uri(notes / "tea.md")
    before = {one.uri: one for one in (await laptop.documents()).documents}
    mirrored = {one.uri: one for one in (await laptop.mirror.memory.documents()).documents}
    assert [one.updated_at for one in before.values()] == [one.updated_at for one in mirrored.values()]

    assert counts(await load_files(laptop, [notes])) == {"unchanged": 2}
    write(notes, "tea.md", "# Tea\n\nTea is brewed.\n")
    assert counts(await load_files(laptop, [notes])) == {"unchanged": 1, "updated": 1}
    assert await text_of(laptop, notes / "tea.md") == "# Tea\n\nTea is brewed.\n"
    versions = (await laptop.versions(str(notes / "tea.md"))).versions
    assert [version.action for version in versions] == ["updated", "added"]

    (notes / "tea.md").unlink()
    assert counts(await load_files(laptop, [notes])) == {"missing": 1, "unchanged": 1}
    assert counts(await load_files(laptop, [notes], prune=True)) == {"removed": 1, "unchanged": 1}
    assert await stored(laptop) == {"coffee.md": name}


@pytest.mark.full
async def test_sources_are_those_of_this_machine(laptop: MemoryClient, notes: Path) -> None:
    with pytest.raises(MemoryRefused) as caught:
        await sync_files(laptop)
    assert caught.value.word == "NO_SOURCES"
    (notes / "inner").mkdir()
    write(notes / "inner", ".hidden.md", "")
    write(notes, "late.md", "Late.")
    await laptop.add_sources([source_uri(notes)])
    assert counts(await sync_files(laptop)) == {"added": 3}
    [source] = await laptop.sources()
    assert (source.uri, source.documents, source.exists) == (source_uri(notes), 3, True)
    # As `watch` does for a change.
    write(notes, "tea.md", "Tea is brewed.")
    (notes / "late.md").unlink()
    changed = await sync_files(laptop, [notes], within=[notes / "tea.md", notes / "late.md"])
    assert counts(changed) == {"removed": 1, "updated": 1}
    await forget_uploads(laptop, str(notes), "g")
    assert await stored(laptop) == {}
    removed = await laptop.remove_source(source_uri(notes), forget=True, group="g")
    assert (removed.documents, await laptop.sources()) == (2, [])


@pytest.mark.full
async def test_pages_and_many_documents_arrive(laptop: MemoryClient, notes: Path) -> None:
    (notes / "crane.pdf").write_bytes(pdf(["Nothing.", "The crane lifts 12 tonnes."]))
    for number in range(BATCH):
        write(notes, f"{number}.md", f"Note {number}.")
    seen: list[tuple[int, int]] = []

    def on_progress(progress: Progress) -> None:
        seen.append((progress.done_files, progress.files))

    report = await load_files(laptop, [notes], on_progress)
    assert counts(report) == {"added": BATCH + 3}
    assert (report.files, report.begun, report.done) == (BATCH + 3,) * 3
    assert seen[-2:] == [(BATCH, BATCH + 3), (BATCH + 3, BATCH + 3)]
    [hit] = (await laptop.query("what the crane lifts", 1)).hits
    assert hit.places == [(1, "p. 1"), (3, "p. 2")]


async def test_each_machine_removes_only_what_it_has_uploaded(
    laptop: MemoryClient, desktop: MemoryClient, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await load_files(laptop, [notes])
    # The same path on another machine: the same coffee, no tea, and milk.
    (notes / "tea.md").unlink()
    write(notes, "milk.md", "Milk.")
    assert counts(await sync_files(desktop, [notes])) == {"added": 1, "unchanged": 1}
    assert laptop.mirror is not None
    assert desktop.mirror is not None
    one, two = laptop.mirror.machine, desktop.mirror.machine
    assert one != two
    assert await stored(desktop) == {"tea.md": one, "coffee.md": one, "milk.md": two}
    (notes / "coffee.md").unlink()
    assert counts(await sync_files(desktop, [notes])) == {"unchanged": 1}
    assert "coffee.md" in await stored(desktop)
    # The first machine has lost all but the milk, which the other one has uploaded.
    assert counts(await sync_files(laptop, [notes])) == {"removed": 2, "unchanged": 1}
    assert await stored(desktop) == {"milk.md": two}

    # What the other one uploads while it is removed stays.
    write(notes, "tea.md", "That of the laptop.")
    assert counts(await load_files(laptop, [notes])) == {"added": 1, "unchanged": 1}
    (notes / "tea.md").unlink()
    forget = laptop.forget

    async def late(*arguments: str) -> Forgotten:
        write(notes, "tea.md", "That of the desktop.")
        await load_files(desktop, [notes / "tea.md"])
        return await forget(*arguments)

    monkeypatch.setattr(laptop, "forget", late)
    await sync_files(laptop, [notes])
    assert await text_of(desktop, notes / "tea.md") == "That of the desktop."


@pytest.mark.full
async def test_of_two_texts_the_later_one_stays(
    laptop: MemoryClient, desktop: MemoryClient, notes: Path
) -> None:
    tea = notes / "tea.md"
    await load_files(laptop, [tea])
    write(notes, "tea.md", "That of the desktop.")
    assert counts(await load_files(desktop, [tea])) == {"updated": 1}
    assert desktop.mirror is not None
    assert await stored(laptop) == {"tea.md": desktop.mirror.machine}
    write(notes, "tea.md", "# Tea\n\nHow tea is made.\n")
    # The file of the laptop, which has not changed since.
    for _ in range(2):
        assert counts(await load_files(laptop, [tea])) == {"unchanged": 1}
    assert await text_of(laptop, tea) == "That of the desktop."
    write(notes, "tea.md", "That of the laptop.")
    assert counts(await load_files(laptop, [tea])) == {"updated": 1}
    assert await text_of(desktop, tea) == "That of the laptop."


@pytest.mark.full
async def test_what_the_server_has_lost_is_uploaded_again_by_its_own_command_only(
    laptop: MemoryClient, notes: Path
) -> None:
    report = await load_files(laptop, [notes])
    assert {entry.origin.group for entry in await laptop.journal()} == {report.group}
    undone = await laptop.undo()
    assert (undone.writes, await stored(laptop)) == ({"added": 2}, {})
    assert counts(await load_files(laptop, [notes / "tea.md"])) == {"added": 1}
    assert [*await stored(laptop)] == ["tea.md"]
    assert counts(await load_files(laptop, [notes])) == {"added": 1, "unchanged": 1}


@pytest.mark.full
async def test_an_interrupted_sync_is_finished_by_the_next(laptop: MemoryClient, notes: Path) -> None:
    await load_files(laptop, [notes])
    (notes / "tea.md").unlink()
    write(notes, "milk.md", "Milk.")
    assert laptop.mirror is not None
    # As if the client had been killed when the mirror was ready.
    await sync_files(laptop.mirror.memory, [notes])
    assert sorted(await stored(laptop)) == ["coffee.md", "tea.md"]
    assert counts(await sync_files(laptop, [notes])) == {"added": 1, "removed": 1, "unchanged": 1}
    assert sorted(await stored(laptop)) == ["coffee.md", "milk.md"]


@pytest.mark.full
async def test_a_lost_mirror_removes_nothing_that_was_not_to_be_removed(
    tmp_path: Path, server: HttpMemory, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "laptop"
    async with machine(home, server.url) as memory:
        await load_files(memory, [notes])
        assert memory.mirror is not None
        mirror = memory.mirror.path
    for file in mirror.parent.iterdir():
        if file.is_file():
            file.unlink()
    (notes / "tea.md").unlink()
    async with machine(home, server.url) as memory:
        assert counts(await load_files(memory, [notes])) == {"unchanged": 1}
        assert sorted(await stored(memory)) == ["coffee.md", "tea.md"]
        (tmp_path / "other").mkdir()
        write(tmp_path / "other", "milk.md", "Milk.")
        monkeypatch.chdir(notes)
        assert counts(await sync_files(memory, ["", tmp_path / "other"])) == {"added": 1, "failed": 1}
        (notes / "coffee.md").rename(tmp_path / "coffee.md")
        assert "removed" not in counts(await sync_files(memory, [notes]))  # perhaps an unmounted disk
        assert "removed" not in counts(await sync_files(memory, [notes, tmp_path / "other"]))
        assert "tea.md" in await stored(memory)


@pytest.mark.full
async def test_a_document_that_the_server_refuses_does_not_affect_the_others(
    tmp_path: Path, notes: Path
) -> None:
    write(notes, "long.md", "Long. " * 20_000)
    (tmp_path / "server").mkdir()
    limit = {"RAGCHAT_HTTP_MESSAGE_BYTES": "66000", "RAGMEMORY_TOKEN": TOKEN}
    async with AsyncExitStack() as stack:
        server = stack.enter_context(http_memory(tmp_path / "server", "--toolsets", TOOLSETS, **limit))
        memory = await stack.enter_async_context(machine(tmp_path / "laptop", server.url))
        report = await load_files(memory, [notes])
        assert counts(report) == {"added": 2, "failed": 1}
        [failed] = [one for one in report.documents if one.error]
        assert (failed.uri, failed.document_id) == (source_uri(notes / "long.md"), None)
        assert "over the limit" in (failed.error or "")


async def test_a_server_that_lacks_the_tools_is_named_with_what_it_needs(tmp_path: Path, notes: Path) -> None:
    (tmp_path / "server").mkdir()
    with http_memory(tmp_path / "server", RAGMEMORY_TOKEN=TOKEN) as server:
        async with machine(tmp_path / "laptop", server.url) as memory:
            with pytest.raises(UploadsRefused) as caught:
                await load_files(memory, [notes])
            with pytest.raises(UploadsRefused):
                await add_sources(memory, [str(notes)], InjectReport())
            assert await memory.sources() == []
    assert caught.value.tools == ["delete_document", "import_documents", "list_documents"]
    assert '"documents" and "maintenance"' in caught.value.hint


@pytest.mark.full
async def test_a_server_on_postgresql_takes_uploads_as_well(
    tmp_path: Path, database: str, notes: Path
) -> None:
    (tmp_path / "server").mkdir()
    url = f"{database}&schema=test_{secrets.token_hex(6)}"
    command = [*RAGMEMORY, "--memory", url, "http", "--toolsets", TOOLSETS]
    async with AsyncExitStack() as stack:
        server = stack.enter_context(http_memory(tmp_path / "server", command=command, RAGMEMORY_TOKEN=TOKEN))
        memory = await stack.enter_async_context(machine(tmp_path / "laptop", server.url))
        assert counts(await sync_files(memory, [notes])) == {"added": 2}
        (notes / "tea.md").unlink()
        assert counts(await sync_files(memory, [notes])) == {"removed": 1, "unchanged": 1}
        assert memory.mirror is not None
        assert await stored(memory) == {"coffee.md": memory.mirror.machine}
