"""Which documents a user's words mean."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal
from unicodedata import normalize

import pytest

from ragchat.errors import MemoryRefused, NoDocumentMatches, NotOneDocument, SeveralDocumentsMatch
from ragchat.memory.client import MemoryClient
from ragchat.memory.matching import about_one, about_past, called, filter_of, forget, match, to_remove
from tests.support.memory import memory_in

Form = Literal["NFC", "NFD"]
NAMES = ("notes/flat.md", "notes/garden.md", "my [x] dir/Öl.md", "flat.txt")


@asynccontextmanager
async def loaded(folder: Path) -> AsyncIterator[MemoryClient]:
    """Memory with four files of `folder`, one tagged, two documents without a URI, and one of the web."""
    async with memory_in(folder) as memory:
        for name in NAMES:
            tags = ["home"] if name == "notes/flat.md" else []
            await memory.inject(f"This is {name}.", {"uri": (folder / name).as_uri(), "tags": tags})
        for number in (1, 2):
            await memory.inject(f"Tea number {number}.", {"title": f"Tea {number}"})
        await memory.inject("This is a page.", {"uri": "https://example.org/a?b=[1]"})
        yield memory


MEANT = [
    ("notes/flat.md", ["notes/flat.md"]),
    ("./notes/../notes/flat.md", ["notes/flat.md"]),
    ("notes", ["notes/flat.md", "notes/garden.md"]),
    ("notes/", ["notes/flat.md", "notes/garden.md"]),
    ("my [x] dir", ["my [x] dir/Öl.md"]),
    ("DIR/öL", ["my [x] dir/Öl.md"]),
    ("notes/*.md", ["notes/flat.md", "notes/garden.md"]),
    ("flat.*", ["flat.txt"]),
    ("*/flat.md", ["notes/flat.md"]),
    ("*Ö*", []),
    ("gard*", ["notes/garden.md"]),
    ("home", ["notes/flat.md"]),
    ("#home", ["notes/flat.md"]),
    ("#office", []),
    ("Öl", ["my [x] dir/Öl.md"]),
    ("GARDEN", ["notes/garden.md"]),
    ("https://example.org/a?b=[1]", ["https://example.org/a?b=[1]"]),
    ("https://example.org/", ["https://example.org/a?b=[1]"]),
    ("tea 2", ["Tea 2"]),
    ("Tea", ["Tea 1", "Tea 2"]),
    ("coffee", []),
]


async def test_words_mean_a_document_a_folder_a_glob_a_tag_or_a_part_of_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = {(tmp_path / name).as_uri(): name for name in NAMES}
    async with loaded(tmp_path) as memory:
        for words, names in MEANT:
            if not names:
                with pytest.raises(NoDocumentMatches):
                    await match(memory, words)
                continue
            found = await match(memory, words, limit=100)
            assert {shown.get(one.uri, one.title or one.uri) for one in found.documents} == {*names}, words
            assert found.total == len(names)
            assert (await match(memory, words)).total == len(names)


async def test_a_document_is_found_by_its_id(tmp_path: Path) -> None:
    async with loaded(tmp_path) as memory:
        listed = (await memory.documents()).documents[0]
        assert [info.uri for info in (await match(memory, listed.document_id)).documents] == [listed.uri]
        with pytest.raises(NoDocumentMatches):
            await match(memory, "0123456789abcdef")


async def test_a_filter_finds_only_what_the_words_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with loaded(tmp_path) as memory:
        hits = (await memory.query("this", filter=await filter_of(memory, "my [x] dir"))).hits
        assert [hit.uri for hit in hits] == [(tmp_path / "my [x] dir/Öl.md").as_uri()]
        hits = (await memory.query("number", filter=await filter_of(memory, "tea 1"))).hits
        assert [hit.title for hit in hits] == ["Tea 1"]
        with pytest.raises(SeveralDocumentsMatch, match="The titles of 2 documents"):
            await filter_of(memory, "Tea")


async def test_a_part_of_a_name_means_the_one_document_that_is_listed_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with loaded(tmp_path) as memory:
        for words in ("garden", "Öl", "notes/garden.md", "home", "tea 1"):
            versions = await about_one(memory, words, memory.versions)
            assert len(versions.versions) == 1, words
        with pytest.raises(NotOneDocument, match="flat matches 2 documents"):
            await about_one(memory, "flat", memory.show)
        with pytest.raises(MemoryRefused, match="no document coffee in memory"):
            await about_one(memory, "coffee", memory.versions)
        await memory.forget("notes/garden.md")
        removed = await about_one(memory, "notes/garden.md", memory.versions)
        assert removed.versions[0].action == "removed"


async def test_a_name_means_the_only_document_that_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    async with loaded(tmp_path) as memory:
        monkeypatch.chdir(tmp_path / "elsewhere")
        for name in ("garden.md", "Notes/Garden.md", "öl.md", "tea 1"):
            assert (await called(memory, name)).text, name
        for part in ("arden.md", "garden", "tea"):
            with pytest.raises(MemoryRefused, match="no document"):
                await called(memory, part)
        await memory.inject("Another garden.", {"uri": "https://example.org/garden.md"})
        with pytest.raises(NotOneDocument, match=r"garden\.md matches 2 documents: .*notes/garden.md"):
            await called(memory, "garden.md")


async def test_a_name_alone_removes_nothing_and_the_error_has_its_path(tmp_path: Path) -> None:
    async with loaded(tmp_path) as memory:
        path = str(tmp_path / "notes/garden.md")
        for name in ("garden.md", "Notes/Garden.md"):
            with pytest.raises(MemoryRefused, match=re.escape(f"its path or its id, such as {path}.")):
                await forget(memory, name, "")
        tea = (await match(memory, "tea 1")).documents[0].document_id
        with pytest.raises(MemoryRefused, match=f"its path or its id, such as {tea}."):
            await forget(memory, "tea 1", "")
        with pytest.raises(MemoryRefused, match=r"no document arden\.md in memory"):
            await forget(memory, "arden.md", "")
        assert (await forget(memory, path, "")).uri == Path(path).as_uri()


@pytest.mark.skipif(os.name == "nt", reason="the names of files are Unicode")
async def test_a_path_that_is_not_utf_8_is_found_by_its_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path, missing = os.fsdecode(b"my dir/b\xe4d.md"), os.fsdecode(b"my dir/n\xf6.md")
    uri = (tmp_path / path).as_uri()
    async with loaded(tmp_path) as memory:
        await memory.inject("This is bad.", {"uri": uri})
        assert (await match(memory, path)).documents[0].uri == uri
        assert (await match(memory, os.fsdecode(b"b\xe4d"))).documents[0].uri == uri
        assert (await about_one(memory, path, memory.show)).uri == uri
        with pytest.raises(NoDocumentMatches):
            await match(memory, missing)
        for ask in (memory.show, memory.versions):
            with pytest.raises(MemoryRefused, match=r"no document .*n%F6\.md in memory"):
                await about_one(memory, missing, ask)
        with pytest.raises(MemoryRefused, match=r"no document .*n%F6\.md in memory"):
            await forget(memory, missing, "")
        assert (await forget(memory, path, "")).uri == uri


@pytest.mark.parametrize(("stored", "typed"), [("NFD", "NFC"), ("NFC", "NFD")])
async def test_a_name_means_the_file_whose_accents_are_composed_differently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: Form, typed: Form
) -> None:
    monkeypatch.chdir(tmp_path)
    uri = (tmp_path / normalize(stored, "Büro/Schlüssel.md")).as_uri()
    async with memory_in(tmp_path) as memory:
        await memory.inject("The key is in the cellar.", {"uri": uri})
        for words in ("Büro/Schlüssel.md", "Büro", "Schlüssel*", "schlüssel", "Büro/*"):
            found = await match(memory, normalize(typed, words))
            assert [one.uri for one in found.documents] == [uri]
        assert (await called(memory, normalize(typed, "Schlüssel.md"))).uri == uri
        for words in ("Büro/Schlüssel.md", "Büro/*.md"):
            assert await to_remove(memory, normalize(typed, words)) == [uri]
        await memory.forget(uri, "g")
        versions = await about_past(memory, normalize(typed, "Schlüssel.md"), memory.versions)
        assert versions.uri == uri


async def test_a_document_that_was_removed_is_found_by_the_end_of_its_path(tmp_path: Path) -> None:
    async with loaded(tmp_path) as memory:
        await memory.inject("This is another garden.", {"uri": (tmp_path / "old/garden.md").as_uri()})
        for name in ("notes/garden.md", "old/garden.md", "my [x] dir/Öl.md"):
            await memory.forget(str(tmp_path / name))
        for words in ("Öl.md", "my [x] dir/Öl.md"):
            restored = await about_past(memory, words, lambda found: memory.restore(found, None))
            assert restored.uri == (tmp_path / "my [x] dir/Öl.md").as_uri()
            await memory.forget(restored.uri)
        with pytest.raises(NotOneDocument, match=r"garden\.md matches 2 documents"):
            await about_past(memory, "garden.md", memory.versions)
        with pytest.raises(MemoryRefused, match=r"no document arden\.md in memory"):
            await about_past(memory, "arden.md", memory.versions)
