"""Symbols and what uses them, in files of several languages.

Covers `ragmemory.code.files`, `ragmemory.code.references`, `ragmemory.code.tracing` and
`ragmemory.stores.code`.
"""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from ragcommon.contract.code import TraceStep
from ragmemory.code import tracing
from ragmemory.errors import BadArgument
from ragmemory.service import MemoryService
from ragmemory.stores.code import MIN_WORK
from ragmemory.types.code import CodeFile, Direction
from tests.server.code.samples import skip_without_grammar
from tests.support.memories import ORIGIN, SwitchableEmbedder, service_for
from tests.support.stores import BOTH_ENGINES

pytestmark = BOTH_ENGINES

PROJECTS = {
    "python": {
        "disk.py": "def load(name):\n    return name\n",
        "store.py": (
            "from disk import load\n\n\nclass Store:\n"
            "    def find(self, name):\n        return load(name)\n\n"
            "    def both(self, load):\n        return load(self.find(load))\n"
        ),
        "main.py": "from store import Store\n\n\ndef main():\n    return Store().find('x')\n",
    },
    "typescript": {
        "disk.ts": "export function load(name: string) { return name; }\n",
        "store.ts": (
            'import { load } from "./disk";\nexport class Store {\n'
            "  find(name: string) { return load(name); }\n"
            "  both(load: Load) { return load(this.find(load)); }\n}\n"
        ),
        "main.ts": ('import { Store } from "./store";\nexport const main = () => new Store().find("x");\n'),
    },
    "go": {
        "disk.go": "package store\n\nfunc load(name string) string { return name }\n",
        "store.go": (
            "package store\n\ntype Store struct{}\n\n"
            "func (s *Store) find(name string) string { return load(name) }\n\n"
            "func (s *Store) both(load Load) string { return load(s.find(load)) }\n"
        ),
        "main.go": 'package main\n\nfunc main() { s := Store{}; s.find("x") }\n',
    },
    "kotlin": {
        "disk.kt": "package store\n\nfun load(name: String): String = name\n",
        "store.kt": (
            "package store\n\nimport disk.load\n\nclass Store {\n"
            "    fun find(name: String): String {\n        return load(name)\n    }\n\n"
            "    fun both(load: Load): String {\n        return load(this.find(load))\n    }\n}\n"
        ),
        "main.kt": "package store\n\nfun main() {\n    Store().find(1)\n}\n",
    },
    "swift": {
        "disk.swift": "func load(name: String) -> String { return name }\n",
        "store.swift": (
            "import struct Disk.load\n\nclass Store {\n"
            "    func find(name: String) -> String { return load(name) }\n"
            "    func both(load: Load) -> String { return load(self.find(load)) }\n}\n"
        ),
        "main.swift": "func main() { Store().find(1) }\n",
    },
    "rust": {
        "disk.rs": "pub fn load(name: &str) -> &str { name }\n",
        "store.rs": (
            "use crate::disk::load;\n\npub struct Store;\n\nimpl Store {\n"
            "    pub fn find(&self, name: &str) { load(name); }\n"
            "    pub fn both(&self, load: Load) { load(self.find(load)); }\n}\n"
        ),
        "main.rs": 'use crate::store::Store;\n\nfn main() { Store.find("x"); }\n',
    },
}
METHOD = {"rust": "Store::find"}


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[MemoryService]:
    with anyio.fail_after(60):
        async with service_for(tmp_path / "home", roots=["*"]) as service:
            yield service


async def load(memory: MemoryService, folder: Path, files: dict[str, str]) -> None:
    write(folder, files)
    await build(memory, folder)


def write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


async def build(memory: MemoryService, folder: Path) -> None:
    ingestions = memory.ingestions
    job = await ingestions.start([str(folder)], prune=True, origin=ORIGIN)
    job, _ = await ingestions.status(job.job_id, wait_seconds=30)
    assert job.status == "completed"
    assert not job.failed


async def trace(
    memory: MemoryService, name: str, direction: Direction = "all", depth: int = 1
) -> list[TraceStep]:
    return (await memory.code.trace(name, direction, depth))[1]


def users(steps: list[TraceStep]) -> list[tuple[int, str]]:
    return [(step.depth, step.symbol) for step in steps]


@pytest.mark.parametrize("project", PROJECTS)
async def test_a_function_is_traced_across_files(memory: MemoryService, tmp_path: Path, project: str) -> None:
    skip_without_grammar(next(iter(PROJECTS[project])))
    await load(memory, tmp_path / "code", PROJECTS[project])
    find = METHOD.get(project, "Store.find")

    code = memory.code
    [symbol], notices = await code.symbols("load")
    assert (symbol.name, symbol.kind, notices) == ("load", "function", [])
    path = tmp_path / "code" / f"disk.{symbol.uri.rpartition('.')[2]}"
    assert symbol.location == f"{path}:{symbol.start_line}"
    assert "load(name" in symbol.text

    assert users(await trace(memory, "load", "callers")) == [(1, find)]
    assert users(await trace(memory, "load", "callers", depth=2)) == [
        (1, find),
        (2, "main"),
        (2, find.replace("find", "both")),
    ]
    [callee] = await trace(memory, find, "callees")
    assert callee.targets == [symbol.location]
    [*_, deepest] = await trace(memory, "main", "callees", depth=3)
    assert (deepest.depth, deepest.symbol, deepest.of) == (2, find, "load")
    assert "load" not in [step.of for step in await trace(memory, find.replace("find", "both"), "callees")]
    if project != "go":
        [importer] = await trace(memory, "load", "importers")
        assert Path(importer.location.rpartition(":")[0]).stem == "store"


async def test_recursion_and_cycles_end(memory: MemoryService, tmp_path: Path) -> None:
    text = "def even(n):\n    return odd(n - 1)\n\ndef odd(n):\n    return even(n - 1) or odd(n)\n"
    await load(memory, tmp_path / "code", {"a.py": text})
    assert users(await trace(memory, "odd", "callers", depth=5)) == [(1, "even"), (1, "odd"), (2, "odd")]
    assert users(await trace(memory, "odd", "callees", depth=5)) == [(1, "odd"), (1, "odd"), (2, "even")]


async def test_code_whose_uri_names_no_file_is_placed_by_its_uri(memory: MemoryService) -> None:
    await memory.writer.inject("def fox():\n    return 1\n", {"uri": "file://[x/a.py"}, ORIGIN)
    [symbol], _ = await memory.code.symbols("fox")
    assert symbol.location == "file://[x/a.py:1"


async def test_an_unknown_name_has_no_symbol(memory: MemoryService, tmp_path: Path) -> None:
    await load(memory, tmp_path / "code", PROJECTS["python"])
    assert await memory.code.trace("nothing", "all", 3) == ([], [], [])
    with pytest.raises(BadArgument):
        await trace(memory, "::")


async def test_a_method_is_told_apart_by_its_class_where_the_code_says_so(
    memory: MemoryService, tmp_path: Path
) -> None:
    text = (
        "class A:\n    def run(self): pass\n    def go(self): self.run()\n\n"
        "class B:\n    def run(self): pass\n    def go(self): self.run()\n\n"
        "def run(): pass\n\ndef main(one):\n    run()\n    A.run(one)\n    one.run()\n"
    )
    await load(memory, tmp_path / "code", {"a.py": text})
    code = memory.code
    assert [one.name for one in (await code.symbols("run"))[0]] == ["A.run", "B.run", "run"]
    assert [one.name for one in (await code.symbols("a.run"))[0]] == ["run"]
    calls = {
        name: [(step.symbol, step.text) for step in await trace(memory, name, "callers")]
        for name in ("A.run", "B.run", "a.run")
    }
    assert calls["A.run"] == [
        ("A.go", "def go(self): self.run()"),
        ("main", "A.run(one)"),
        ("main", "one.run()"),
    ]
    assert calls["B.run"] == [("B.go", "def go(self): self.run()"), ("main", "one.run()")]
    assert calls["a.run"] == [("main", "run()"), ("main", "one.run()")]


async def test_a_name_is_told_apart_from_names_that_hold_it(memory: MemoryService, tmp_path: Path) -> None:
    files = {f"m{number}.py": f"def get_{number}():\n    return Get.one()\n" for number in range(3)}
    files["n.py"] = "def get():\n    return 1\n\n\ndef main():\n    return get()\n"
    await load(memory, tmp_path / "code", files)
    definitions, steps, _ = await memory.code.trace("get", "callers", 1)
    assert [one.name for one in definitions] == ["get"]
    assert users(steps) == [(1, "main")]


async def test_a_call_of_an_object_may_mean_a_few_definitions_alone(
    memory: MemoryService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "MAX_TARGETS", 2)
    files = {f"m{n}.py": f"class C{n}:\n    def run(self): pass\n" for n in range(4)}
    await load(
        memory, tmp_path / "code", {**files, "n.py": "def main(one):\n    one.run()\n    C3.run(one)\n"}
    )
    [uncertain, certain] = await trace(memory, "main", "callees")
    assert len(uncertain.targets) == 2
    assert [Path(target).name for target in certain.targets] == ["m3.py:2"]


async def test_a_call_means_definitions_in_languages_that_it_may_call(
    memory: MemoryService, tmp_path: Path
) -> None:
    for file in ("a.ts", "a.go"):
        skip_without_grammar(file)
    files = {
        "a.ts": "export function main(one: Rule) { return one.test(1); }\n",
        "b.js": "class Pattern { test(text) { return text; } }\n",
        "c.py": "class Case:\n    def test(self, text): pass\n",
        "d.go": "package d\n\nfunc (c Case) test(text string) {}\n",
    }
    await load(memory, tmp_path / "code", files)
    [step] = await trace(memory, "main", "callees")
    assert [Path(target).name for target in step.targets] == ["b.js:1"]


async def test_strings_comments_and_argument_names_are_not_references(
    memory: MemoryService, tmp_path: Path
) -> None:
    text = 'LIMIT = 1\n# LIMIT\nprint("LIMIT", LIMIT, f(LIMIT=2), MY_LIMIT)\n'
    await load(memory, tmp_path / "code", {"a.py": text})
    [step] = await trace(memory, "LIMIT", "references")
    assert step.text.startswith("print(")


async def test_an_answer_that_met_a_bound_says_so(
    memory: MemoryService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await load(memory, tmp_path / "code", {f"m{number}.py": "load(1)\n" for number in range(5)})
    monkeypatch.setattr(tracing, "MAX_WORK", 3 * MIN_WORK)
    _, steps, [notice] = await memory.code.trace("load", "callers", 1)
    assert len(steps) == 3
    assert "only 3 of the files" in notice
    monkeypatch.setattr(tracing, "MAX_SECONDS", 0.0)
    _, steps, notices = await memory.code.trace("load", "callers", 1)
    assert steps == []
    assert "ended after 0 seconds" in notices[0]


async def test_search_is_in_source_code_alone_and_finds_parts_of_identifiers(
    memory: MemoryService, tmp_path: Path
) -> None:
    files = {
        "a.py": "def parseRetryAfter(header):\n    return int(header)\n",
        "b.py": "def wait_for_disk(path):\n    return path\n",
        "notes.md": "The parse of the retry after header, and wait for disk.\n",
    }
    await load(memory, tmp_path / "code", files)
    for query, name in (
        ("retry after", "parseRetryAfter"),
        ("parse_retry_after", "parseRetryAfter"),
        ("waitForDisk", "wait_for_disk"),
    ):
        hits = (await memory.search.query(query, 1, only_code=True)).hits
        assert [hit.heading for hit in hits] == [name]
    assert await memory.code.languages() == {"Python": 2}


async def test_a_switch_of_branches_and_back_embeds_nothing_twice(tmp_path: Path) -> None:
    """Sync, switch the branch, sync, switch back, sync."""

    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=code, check=True)

    code = tmp_path / "code"
    files = {f"m{number}.py": f"def f{number}():\n    return {number}\n" for number in range(20)}
    write(code, {**files, ".gitignore": "*.log\n", "x.log": "left out\n"})
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "one")
    embedder = SwitchableEmbedder()
    embedder.is_costly = True  # Like one over the network; the local one is faster than the search.
    with anyio.fail_after(60):
        async with service_for(tmp_path / "home", embedder, roots=["*"]) as memory:
            await build(memory, code)
            git("checkout", "-qb", "other")
            (code / "m3.py").write_text("def g3():\n    return 4\n", encoding="utf-8")
            (code / "m4.py").unlink()
            git("commit", "-qam", "two")
            await build(memory, code)
            assert (await memory.maintenance.stats()).documents == 19
            calls = embedder.calls
            await build(memory, code)
            assert embedder.calls == calls
            calls = embedder.calls
            git("checkout", "-q", "main")
            await build(memory, code)
            assert (await memory.maintenance.stats()).documents == 20
            assert embedder.calls == calls  # The embeddings of both files are still known.
            assert [one.name for one in (await memory.code.symbols("f3"))[0]] == ["f3"]
            assert (await memory.code.symbols("g3"))[0] == []


async def test_code_that_no_worker_can_parse_is_tried_once(
    memory: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    async def fails(_: object, file: CodeFile, __: object) -> None:
        tried.append(file.uri)
        await anyio.lowlevel.checkpoint()

    monkeypatch.setattr("ragmemory.code.files.apart", fails)
    for number in range(2):
        text = f"use(alpha, {number})\n" * 300
        await memory.writer.inject(text, {"uri": f"file:///{number}.py"}, ORIGIN)
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(memory.code.trace, "alpha", "references", 1)
    assert sorted(tried) == ["file:///0.py", "file:///1.py"]


async def test_a_web_page_is_no_code_although_its_address_ends_so(memory: MemoryService) -> None:
    page = {"uri": "https://example.org/index.php", "media_type": "text/markdown"}
    await memory.writer.inject("# load\n\n<?php function load() {}\n", page, ORIGIN)
    assert await memory.code.languages() == {}
    assert await memory.code.symbols("load") == ([], [])
