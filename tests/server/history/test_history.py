"""The versions of documents: listed, compared, restored.

Covers `ragmemory.stores.versions`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from ragmemory.errors import DocumentNotFound, VersionNotFound, VersionNotKept
from ragmemory.ingest.documents import document_id
from ragmemory.service import MemoryService
from tests.support.memories import ORIGIN, service_for
from tests.support.stores import BOTH_ENGINES

pytestmark = BOTH_ENGINES

FIRST = "Bake the pie for forty minutes.\nLet it cool.\n"
SECOND = "Bake the pie for fifty minutes.\nLet it cool.\n"
# More than a page of chunks: its versions are hidden documents.
LONG = "".join(f"# Part {number}\n\nThe oven of part {number} is hot. a\tb\n\n" for number in range(600))


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[MemoryService]:
    with anyio.fail_after(60):
        async with service_for(tmp_path) as memory:
            yield memory


async def put(memory: MemoryService, *texts: str, uri: str = "pie") -> None:
    for text in texts:
        await memory.writer.inject(text, {"uri": uri, "title": "Pie", "tags": ["food"]}, ORIGIN)


async def listed(memory: MemoryService, document: str = "pie") -> list[tuple[int, str, int | None]]:
    found = (await memory.history.versions(document, 100)).versions
    assert [one.current for one in found] == [True] + [False] * (len(found) - 1)
    assert {one.origin for one in found} == {ORIGIN}
    return [(one.number, one.action, one.characters) for one in found]


async def text_of(memory: MemoryService, document: str = "pie") -> str:
    return (await memory.documents.read(document))[1]


async def test_the_versions_are_the_writes_and_the_undos_the_current_one_first(
    memory: MemoryService,
) -> None:
    await put(memory, FIRST, "a\tb", LONG)
    await put(memory, "Another document.", uri="other")
    await memory.writer.forget("pie", ORIGIN)
    await put(memory, SECOND)
    assert await listed(memory) == [
        (6, "added", len(SECOND)),
        (5, "removed", 0),
        (3, "updated", len(LONG)),
        (2, "updated", 3),
        (1, "added", len(FIRST)),
    ]
    texts = {number: (await memory.history.version("pie", number)).text for number in (1, 2, 3, 5, 6)}
    assert texts == {1: FIRST, 2: "a\tb", 3: LONG, 5: "", 6: SECOND}
    for _ in range(2):
        await memory.history.undo(ORIGIN)
    assert await listed(memory) == [
        (8, "updated", len(LONG)),
        (7, "removed", 0),
        (6, "added", len(SECOND)),
        (5, "removed", 0),
        (3, "updated", len(LONG)),
        (2, "updated", 3),
        (1, "added", len(FIRST)),
    ]
    assert (await memory.history.version("pie")).text == LONG
    assert (await memory.history.version("pie", 1)).metadata == {
        "uri": "pie",
        "title": "Pie",
        "tags": ["food"],
    }


async def test_a_diff_is_of_the_last_write_or_of_two_versions(memory: MemoryService) -> None:
    await put(memory, FIRST, SECOND)
    await memory.writer.inject(SECOND, {"uri": "pie", "title": "Pie", "tags": ["sweet"]}, ORIGIN)
    last = await memory.history.difference("pie")
    assert (last.before and last.before.number, last.after.number) == (2, 3)
    assert [line for line in last.diff.split("\n") if line[0] in "+-"] == [
        "--- pie (version 2) (metadata)",
        "+++ pie (version 3) (metadata)",
        '-    "food"',
        '+    "sweet"',
    ]
    texts = (await memory.history.difference("pie", 1, 2)).diff
    assert texts.split("\n") == [
        "--- pie (version 1)",
        "+++ pie (version 2)",
        "@@ -1,2 +1,2 @@",
        "-Bake the pie for forty minutes.",
        "+Bake the pie for fifty minutes.",
        " Let it cool.",
    ]
    assert (await memory.history.difference("pie", 3, 3)).diff == ""
    added = await memory.history.difference("pie", after=1)
    assert added.before is None
    assert "+Let it cool." in added.diff


async def test_a_diff_tells_whether_the_last_line_ends(memory: MemoryService) -> None:
    await put(memory, FIRST, FIRST.rstrip())
    assert (await memory.history.difference("pie")).diff.split("\n")[3:] == [
        " Bake the pie for forty minutes.",
        "-Let it cool.",
        "+Let it cool.",
        "\\ No newline at end of file",
    ]


async def test_an_earlier_version_is_restored_as_a_new_write_that_undo_takes_back(
    memory: MemoryService,
) -> None:
    await put(memory, FIRST, SECOND)
    restored = await memory.history.restore("pie", None, ORIGIN)
    assert (restored.uri, restored.version, restored.status) == ("pie", 1, "updated")
    assert await text_of(memory) == FIRST
    assert (await memory.history.restore("pie", 1, ORIGIN)).status == "unchanged"
    assert (await memory.history.undo(ORIGIN)).entry.action == "updated"
    assert await text_of(memory) == SECOND


@pytest.mark.parametrize("text", [FIRST, LONG], ids=["short", "long"])
async def test_a_removed_document_comes_back_whole_by_its_uri_or_id(memory: MemoryService, text: str) -> None:
    await put(memory, text)
    before, _ = await memory.documents.read("pie")
    await memory.writer.forget("pie", ORIGIN)
    restored = await memory.history.restore(document_id("pie"), None, ORIGIN)
    assert restored.status == "added"
    after, restored_text = await memory.documents.read("pie")
    assert restored_text == text
    assert (after.title, after.metadata, after.added_at) == (before.title, before.metadata, before.added_at)
    assert (await memory.search.query("oven pie", 3)).hits[0].uri == "pie"
    assert (await memory.history.undo(ORIGIN)).entry.action == "added"
    with pytest.raises(DocumentNotFound):
        await memory.documents.read("pie")


@pytest.mark.parametrize("text", [SECOND, LONG], ids=["short", "long"])
async def test_a_document_whose_addition_is_undone_is_restored_like_a_removed_one(
    memory: MemoryService, text: str
) -> None:
    await put(memory, FIRST)
    await memory.history.undo(ORIGIN)
    await put(memory, text, "Another text.")
    for _ in range(2):
        await memory.history.undo(ORIGIN)
    assert await listed(memory) == [
        (6, "removed", 0),
        (5, "updated", len(text)),
        (4, "updated", len("Another text.")),
        (3, "added", len(text)),
        (2, "removed", 0),
        (1, "added", len(FIRST)),
    ]
    assert await listed(memory, document_id("pie")) == await listed(memory)
    assert (await memory.history.version("pie", 1)).text == FIRST
    restored = await memory.history.restore("pie", None, ORIGIN)
    assert (restored.version, restored.status) == (5, "added")
    assert await text_of(memory) == text
    assert (await listed(memory))[:2] == [(7, "added", len(text)), (6, "removed", 0)]


@pytest.mark.parametrize("texts", [(FIRST, SECOND), (LONG, LONG + "The end.\n")], ids=["short", "long"])
async def test_the_text_of_an_undone_update_stays_a_version_that_is_restored(
    memory: MemoryService, texts: tuple[str, str]
) -> None:
    first, second = texts
    await put(memory, first, second, "Third.")
    for _ in range(2):
        await memory.history.undo(ORIGIN)
    assert await text_of(memory) == first
    assert await listed(memory) == [
        (5, "updated", len(first)),
        (4, "updated", len(second)),
        (3, "updated", len("Third.")),
        (2, "updated", len(second)),
        (1, "added", len(first)),
    ]
    for number, text in ((3, "Third."), (2, second)):
        assert (await memory.history.restore("pie", number, ORIGIN)).status == "updated"
        assert await text_of(memory) == text
    assert (await memory.search.query("oven pie", 3)).hits[0].uri == "pie"


async def test_a_version_whose_text_is_no_longer_kept_is_listed_and_refused(tmp_path: Path) -> None:
    async with service_for(tmp_path, undo_depth=1) as memory:
        await put(memory, FIRST, SECOND, "Third.")
        assert await listed(memory) == [(3, "updated", 6), (2, "updated", len(SECOND)), (1, "added", None)]
        with pytest.raises(VersionNotKept, match="The text of version 1 of pie is no longer kept"):
            await memory.history.restore("pie", 1, ORIGIN)
        assert await text_of(memory) == "Third."


async def test_what_does_not_exist_is_refused(memory: MemoryService) -> None:
    await put(memory, FIRST)
    with pytest.raises(DocumentNotFound):
        await memory.history.versions("cake", 100)
    with pytest.raises(VersionNotFound, match="pie has no version 7 with a text"):
        await memory.history.version("pie", 7)
    with pytest.raises(VersionNotFound, match="pie has no earlier version with a text"):
        await memory.history.restore("pie", None, ORIGIN)
    await memory.writer.forget("pie", ORIGIN)
    with pytest.raises(VersionNotFound, match="pie has no version 2 with a text"):
        await memory.history.restore("pie", 2, ORIGIN)
