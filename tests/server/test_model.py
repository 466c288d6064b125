"""The memory against a model of it: a dict of documents and a list of journal lines.

A plan of random steps is played by several services on one file. After each step the service that took it
must list the documents and the journal of the model; at the end every one, also the texts and what is found.

Covers `limits`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import anyio
import pytest
from anyio.abc import TaskGroup, TaskStatus
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ragcommon.contract.documents import Metadata
from ragmemory.errors import (
    BadArgument,
    DocumentNotFound,
    NotAWrite,
    NothingToUndo,
    NotUndoable,
    RagMemoryError,
    WrittenLater,
)
from ragmemory.ingest.documents import document_id
from ragmemory.limits import MAX_URI_LENGTH
from ragmemory.service import MemoryService
from ragmemory.types.history import Selection
from tests.support.memories import ORIGIN, SwitchableEmbedder, service_for

CLIENTS = 3

# What is in the model


@dataclass(frozen=True)
class Document:
    text: str
    metadata: str  # JSON, so that 1, 1.0 and true differ

    @property
    def values(self) -> Metadata:
        values: Metadata = json.loads(self.metadata)
        return values


@dataclass(eq=False)
class Line:
    action: str
    uri: str
    before: Document | None = None
    group: str = ""
    undone: bool = False

    @property
    def is_pending(self) -> bool:
        return not self.undone and self.action != "restored"


@dataclass
class Model:
    documents: dict[str, Document] = field(default_factory=dict)
    journal: list[Line] = field(default_factory=list)

    def inject(self, uri: str, document: Document, depth: int, group: str = "") -> str:
        before = self.documents.get(uri)
        if before == document:
            return "unchanged"
        self.documents[uri] = document
        return self._note(Line("updated" if before else "added", uri, before, group), depth)

    def forget(self, name: str, depth: int, group: str = "") -> str:
        by_id = {document_id(uri): uri for uri in self.documents}
        uri = by_id.get(name, name)
        if uri not in self.documents:
            raise DocumentNotFound(name)
        return self._note(Line("removed", uri, self.documents.pop(uri), group), depth)

    def undo(self, numbers: Sequence[int] = ()) -> str:
        chosen = [self.journal[number - 1] for number in numbers]
        if any(line.action == "restored" for line in chosen):
            raise NotAWrite(0)
        pending = [line for line in self.journal if line.is_pending]
        if not numbers and pending:
            last = pending[-1]
            chosen = [line for line in pending if line is last or (last.group and line.group == last.group)]
        change: list[Line] = []
        replaced: set[str] = set()
        for line in reversed(pending):
            if line not in chosen:
                replaced.add(line.uri)
            elif line.uri not in replaced:
                change.append(line)
            elif numbers:
                raise WrittenLater([line.uri])
        if not change:
            raise NothingToUndo
        for line in change:
            if line.action != "added" and line.before is None:
                raise NotUndoable(0, line.action, line.uri)
        # Several writes are undone as one group.
        group = f"undo {len(self.journal)}" if len(change) > 1 else ""
        for line in change:
            if line.before is None:
                del self.documents[line.uri]
            else:
                self.documents[line.uri] = line.before
            line.undone, line.before = True, None
            self.journal.append(Line("restored", line.uri, group=group))
        return change[0].action

    def _note(self, line: Line, depth: int) -> str:
        self.journal.append(line)
        pending = [line for line in self.journal if line.is_pending]
        recent = pending[max(0, len(pending) - depth) :]
        groups = {line.group for line in recent if line.group}
        for line_beyond in pending:
            if line_beyond in recent or line_beyond.group in groups:
                break
            line_beyond.before = None
        return line.action


def passes(document: Document, key: str, value: Any) -> bool:
    """Whether a filter on one key lets a document pass."""
    has = document.values.get(key)
    if key == "tags":
        return all(tag in (has or []) for tag in value)
    return is_equal(has, value)


def is_equal(one: Any, other: Any) -> bool:
    numbers = [type(value) in (int, float) for value in (one, other)]
    return bool(one == other) if all(numbers) else canonical(one) == canonical(other)


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


# What may happen


@dataclass(frozen=True)
class Inject:
    uri: str
    text: str
    metadata: Metadata
    group: str = ""


@dataclass(frozen=True)
class InjectAtOnce:
    """By all clients in turn, without waiting for one another."""

    number: int
    uris: list[str]


@dataclass(frozen=True)
class Refused:
    """An inject that must change nothing."""

    text: str
    metadata: Metadata


@dataclass(frozen=True)
class Forget:
    document: str
    group: str = ""


@dataclass(frozen=True)
class Undo:
    times: int


@dataclass(frozen=True)
class UndoSome:
    """Writes by their numbers; a seed counts from the end of the journal."""

    seeds: list[int]


@dataclass(frozen=True)
class Reembed:
    pass


@dataclass(frozen=True)
class Reopen:
    """With texts kept for so many writes from now on."""

    undo_depth: int


Step: TypeAlias = Inject | InjectAtOnce | Refused | Forget | Undo | UndoSome | Reembed | Reopen

URIS = [
    *("a", "A", " a ", "a*", "[a]", "?", "%00", "a'b\"c", "a\nb", "日本語/ファイル.md", "😀", "a.txt"),
    *("file:///notes/[x]*.md", document_id("a"), "u" * MAX_URI_LENGTH),
]
# Mostly one of two: the same document must be met again.
uris = st.integers(0, 3).flatmap(lambda number: st.sampled_from(URIS[:2] if number else URIS))
groups = st.sampled_from(["", "load", "load", "other"])
storable = st.characters(codec="utf-8", exclude_characters="\0")
odd_texts = st.text(st.characters(exclude_characters="\0"), max_size=30) | st.sampled_from(
    [
        *("# Heading\n\n", "```\n# no heading", "\ufeff", "e\u0301\u200d", "שלום", "ไทย", "\r\n\r\n"),
        *("Title\n=====\n", "| a | b |\n|---|---|\n", "word " * 2_000, "# Part\n\nSome words.\n\n" * 100),
    ]
)
scalars = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(-1e9, 1e9) | st.text(storable)
values = st.sampled_from([0, 1, 1.0, True, "1", None]) | st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(storable), inner, max_size=3),
    max_leaves=4,
)
keys = st.sampled_from(["year", "", "a.b", 'a"b.$c', "a\\b\n", "ключ", "[0]"])
metadata = st.builds(
    lambda free, known: {**free, **known},
    st.dictionaries(keys, values, max_size=3),
    st.fixed_dictionaries(
        {},
        optional={
            "title": st.text(storable, max_size=20),
            "tags": st.lists(st.sampled_from(["red", "b'l\"u*e", "緑"]), max_size=3),
            "created_at": st.sampled_from(["2026-01-31", "1066-10-14T09:00:00+00:00"]),
        },
    ),
)
unacceptable = st.sampled_from(
    [
        *(
            {"uri": "a\0b"},
            {"uri": ""},
            {"uri": "u" * (MAX_URI_LENGTH + 1)},
            {"uri": "\ud800"},
            {"uri": 1},
        ),
        *({"title": "a\0b"}, {"tags": "red"}, {"k\0": 1}, {"k": ["\0"]}, {"k": float("inf")}),
    ]
)
steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(Inject, uris, odd_texts, metadata),
    st.builds(Inject, uris, st.sampled_from(["one", "two"]), metadata, groups),
    st.builds(Inject, uris, st.sampled_from(["one", "two"]), st.just({}), groups),
    st.builds(InjectAtOnce, st.integers(0, 1), st.lists(uris, unique=True, min_size=2, max_size=5)),
    st.builds(Refused, st.just("text"), unacceptable) | st.just(Refused(" \n", {})),
    st.builds(Forget, uris | uris.map(document_id), groups),
    st.builds(Undo, st.integers(1, 4)),
    st.builds(Undo, st.just(1)),
    st.builds(UndoSome, st.lists(st.integers(0, 7), min_size=1, max_size=5)),
    st.builds(Reembed),
    st.builds(Reopen, st.sampled_from([0, 1, 2, 1000])),
)
plans = st.lists(st.tuples(st.integers(0, CLIENTS - 1), steps), min_size=15, max_size=40)


@settings(deadline=None, max_examples=settings().max_examples // 6)
@given(plans)
def test_the_memory_is_at_every_step_what_the_model_is(plan: list[tuple[int, Step]]) -> None:
    with TemporaryDirectory() as folder:
        anyio.run(play, Path(folder), plan)


# Playing it


async def play(folder: Path, plan: Sequence[tuple[int, Step]]) -> None:
    model = Model()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            clients = [Client(folder, model, tasks) for _ in range(CLIENTS)]
            for number, step in plan:
                await take(clients[number], step, clients)
                await clients[number].compare()
            for client in clients:
                await client.compare()
                await client.read()
                await client.search()
                await client.close()


class Client:
    """One service on the file. It runs in a task of its own, because services end in any order."""

    def __init__(self, folder: Path, model: Model, tasks: TaskGroup) -> None:
        self._folder = folder
        self._tasks = tasks
        self._service: MemoryService | None = None
        self.model = model
        self.depth = 1000

    async def service(self) -> MemoryService:
        if self._service is None:
            self._service = await self._tasks.start(self._serve)
        return self._service

    async def _serve(self, *, task_status: TaskStatus[MemoryService]) -> None:
        self._left, self._ended = anyio.Event(), anyio.Event()
        async with service_for(self._folder, SwitchableEmbedder(), undo_depth=self.depth) as service:
            task_status.started(service)
            await self._left.wait()
        self._ended.set()

    async def close(self) -> None:
        if self._service:
            self._left.set()
            await self._ended.wait()
        self._service = None

    async def inject(self, uri: str, text: str, metadata: Metadata, group: str = "") -> str:
        origin = replace(ORIGIN, group=group)
        return (await (await self.service()).writer.inject(text, {**metadata, "uri": uri}, origin)).status

    async def forget(self, document: str, group: str) -> str:
        await (await self.service()).writer.forget(document, replace(ORIGIN, group=group))
        return "removed"

    async def undo(self, numbers: Sequence[int] = ()) -> str:
        service = await self.service()
        return (await service.history.undo(ORIGIN, selection=Selection(numbers))).entry.action

    async def compare(self) -> None:
        """List the same documents and the same journal."""
        service = await self.service()
        listed, total = await service.documents.page(100)
        assert [info.uri for info in listed] == sorted(self.model.documents)
        assert total == len(listed) == (await service.maintenance.stats()).documents
        metadata = {uri: document.metadata for uri, document in self.model.documents.items()}
        assert {info.uri: canonical(info.metadata) for info in listed} == metadata
        entries = (await service.history.journal(10_000))[::-1]
        known = {line.group for line in self.model.journal}
        undos = {
            entry.origin.group: f"undo {number}"
            for number, entry in reversed(list(enumerate(entries)))
            if entry.origin.group not in known
        }
        journal = [
            (entry.action, entry.uri, undos.get(entry.origin.group, entry.origin.group), entry.undone)
            for entry in entries
        ]
        expected = [(line.action, line.uri, line.group, line.undone) for line in self.model.journal]
        assert in_any_order_of_restoring(journal) == in_any_order_of_restoring(expected)

    async def read(self) -> None:
        """Show the same texts."""
        for uri, document in self.model.documents.items():
            _, text = await (await self.service()).documents.read(document_id(uri))
            assert text == document.text

    async def search(self) -> None:
        """Find by its own word each document that is there, and no other; filters let the right ones pass."""
        service = await self.service()
        for uri in {line.uri for line in self.model.journal}:
            document = self.model.documents.get(uri)
            here = {"uri": re.sub(r"([*?[])", r"[\1]", uri)}
            found = (await service.search.query(word(uri), 100, here)).hits
            assert {hit.uri for hit in found} == ({uri} if document else set())
            assert not document or any(word(uri) in hit.text for hit in found)
            if document:
                for other in self.model.documents.values():
                    for key, value in other.values.items():
                        if key not in ("uri", "created_at"):
                            hits = (await service.search.query(word(uri), 100, {**here, key: value})).hits
                            assert bool(hits) == passes(document, key, value), (key, value, document)


def in_any_order_of_restoring(
    journal: Sequence[tuple[str, str, str, bool]],
) -> list[list[tuple[str, str, str, bool]]]:
    """The lines in their order, except that one undo may restore its documents in any order."""
    runs = groupby(journal, lambda line: line[0] == "restored")
    return [sorted(lines) if restored else list(lines) for restored, lines in runs]


def word(uri: str) -> str:
    """What a document's text has and no other's."""
    return f"zebra{document_id(uri)}"


async def take(client: Client, step: Step, clients: Sequence[Client]) -> None:
    """Take one step in the memory and in the model, with the same outcome."""
    model, depth = client.model, client.depth
    match step:
        case Inject(uri, text, metadata, group):
            text = f"{text} {word(uri)}"
            document = Document(text, canonical({**metadata, "uri": uri}))
            expected = model.inject(uri, document, depth, group)
            assert await client.inject(uri, text, metadata, group) == expected
        case InjectAtOnce(number, uris):
            await inject_at_once(clients, number, uris)
        case Refused(text, metadata):
            with pytest.raises(BadArgument):
                await (await client.service()).writer.inject(text, metadata, ORIGIN)
        case Forget(name, group):
            expected = model_outcome(model.forget, name, depth, group)
            assert await outcome(client.forget(name, group)) == expected
        case Undo(times):
            for _ in range(times):
                assert await outcome(client.undo()) == model_outcome(model.undo)
        case UndoSome(seeds):
            length = len(model.journal)
            numbers = sorted({length - seed for seed in seeds if seed < length})
            assert await outcome(client.undo(numbers)) == model_outcome(model.undo, numbers)
        case Reembed():
            await (await client.service()).maintenance.reembed(ignore)
        case Reopen(undo_depth):
            await client.close()
            client.depth = undo_depth


async def inject_at_once(clients: Sequence[Client], number: int, uris: Sequence[str]) -> None:
    statuses: dict[str, str] = {}

    async def inject(client: Client, uri: str) -> None:
        statuses[uri] = await client.inject(uri, f"at once {number} {word(uri)}", {})

    for client in clients:
        await client.service()  # opened by one of them alone
    async with anyio.create_task_group() as tasks:
        for index, uri in enumerate(uris):
            tasks.start_soon(inject, clients[index % CLIENTS], uri)
    model = clients[0].model
    # Which came first is not said, but the journal knows.
    entries = await (await clients[0].service()).history.journal(len(uris))
    written = [uri for uri in uris if statuses[uri] != "unchanged"]
    order = [entry.uri for entry in entries[: len(written)]][::-1]
    assert sorted(order) == sorted(written)
    for uri in [*order, *(set(uris) - set(order))]:
        depth = clients[list(uris).index(uri) % CLIENTS].depth
        document = Document(f"at once {number} {word(uri)}", canonical({"uri": uri}))
        assert model.inject(uri, document, depth) == statuses[uri]


async def ignore(done: int, total: int) -> None:
    assert done <= total


async def outcome(action: Awaitable[str]) -> str:
    """What it returned, or the name of the error."""
    try:
        return await action
    except RagMemoryError as error:
        return type(error).__name__


def model_outcome(action: Callable[..., str], *arguments: Any) -> str:
    try:
        return action(*arguments)
    except RagMemoryError as error:
        return type(error).__name__
