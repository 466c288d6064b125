"""Real processes of two machines, each with a home and a folder of its own, and one memory in PostgreSQL.

Both machines have their folder at the same path: it holds the files of the one that works.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.embeddings_server import EmbeddingsServer, embeddings_server
from tests.support.processes import LONGEST_SECONDS
from tests.support.program import Program
from tests.support.raw_memory import RawMemory, raw_memory

FILES = 1_500


@dataclass(frozen=True)
class Machine:
    """`ragchat` runs on it with everything of its own."""

    ragchat: Program
    notes: Path

    @contextmanager
    def disk(self) -> Iterator[Path]:
        """The folder with this machine's files, at the path that all machines use."""
        own = self.ragchat.home / "notes"
        own.mkdir(parents=True, exist_ok=True)
        own.rename(self.notes)
        yield self.notes
        self.notes.rename(own)


@pytest.fixture
def url(database: str) -> str:
    return f"{database}&schema=test_{secrets.token_hex(6)}"


@pytest.fixture
def machines(tmp_path: Path, url: str) -> tuple[Machine, Machine]:
    def machine(name: str) -> Machine:
        program = Program(tmp_path / name, tmp_path, {"RAGCHAT_MEMORY": url})
        return Machine(program, tmp_path / "notes")

    return machine("one"), machine("two")


def stored(ragchat: Program) -> set[str]:
    return {Path(one["uri"]).name for one in ragchat("memory", "ls", "--json").json["documents"]}


def test_each_machine_keeps_its_own_files_in_step(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    for machine, names in ((one, ("tea.md", "milk.md")), (two, ("coffee.md",))):
        with machine.disk() as notes:
            for name in names:
                (notes / name).write_text(f"How {name} is made.", encoding="utf-8")
            added = machine.ragchat("source", "add", "notes", "--json").json
            assert (added["added"], added["pruned"]) == (len(names), [])
            synced = machine.ragchat("sync", "--json").json
            assert (synced["unchanged"], synced["pruned"], synced["gone"]) == (len(names), [], [])
    assert stored(one.ragchat) == {"tea.md", "milk.md", "coffee.md"}
    with one.disk() as notes:
        (notes / "milk.md").unlink()
        assert len(one.ragchat("inject", "notes", "--prune", "--json").json["pruned"]) == 1
    assert stored(two.ragchat) == {"tea.md", "coffee.md"}
    with two.disk():
        [here, there] = sorted(
            two.ragchat("source", "ls", "--json").json["sources"], key=lambda source: bool(source["machine"])
        )
        assert (here["machine"], here["documents"]) == ("", 1)
        name = (one.ragchat.home / "state" / "machine").read_text("utf-8")
        assert (there["machine"], there["documents"], there["problem"]) == (name, 1, "")
        table = two.ragchat("source", "ls").out
        assert "machine" in table
        assert "this one" in table
    removed = two.ragchat("source", "rm", "notes", "--machine", name, "--forget")
    assert removed.out == "notes is no longer a source; its 1 document was removed from memory.\n"
    assert stored(two.ragchat) == {"coffee.md"}


def test_watching_removes_nothing_of_another_machine(machines: tuple[Machine, Machine]) -> None:
    pytest.importorskip("watchfiles", reason="the environment was set up before watchfiles was needed")
    one, two = machines
    with one.disk() as notes:
        (notes / "tea.md").write_text("How tea is made.", encoding="utf-8")
        one.ragchat("source", "add", "notes")
    with two.disk() as notes:
        for name in ("coffee.md", "milk.md"):
            (notes / name).write_text(f"How {name} is made.", encoding="utf-8")
        two.ragchat("source", "add", "notes")
        with two.ragchat.started("watch", "--json") as watch:
            assert json.loads(watch.line())["status"] == "watching"
            (notes / "coffee.md").unlink()
            event = json.loads(watch.line())
            assert (event["status"], Path(event["uri"]).name) == ("removed", "coffee.md")
    assert stored(one.ragchat) == {"tea.md", "milk.md"}


@pytest.fixture
def embedder() -> Iterator[EmbeddingsServer]:
    with embeddings_server() as embedder:
        yield embedder


def test_a_killed_load_is_resumed_by_a_process_of_its_machine(
    tmp_path: Path, url: str, embedder: EmbeddingsServer
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number}.txt").write_text(f"Note {number}.", encoding="utf-8")
    homes = [tmp_path / name for name in ("one", "two")]
    for home in homes:
        home.mkdir()
    variables = {"RAGCHAT_EMBEDDER_KIND": "openai", "RAGCHAT_EMBEDDER_BASE_URL": embedder.url}
    one, two = (partial(raw_memory, home, "--memory", url, **variables) for home in homes)
    # More than are on their way at once: some are stored, and the load does not end before it is killed.
    embedder.hold_after = FILES // 3
    with two() as other:
        with one() as killed:
            job = killed.call("start_ingestion", paths=[str(folder)])
            assert embedder.reached.wait(LONGEST_SECONDS)
            while not (done := status(killed, job["job_id"])["job"])["done"]:
                assert done["status"] == "running"
            killed.kill()
        embedder.go.set()
        with two() as late, one() as same:
            # Each opens the memory, and looks for jobs of killed processes.
            for memory in (other, late, same):
                assert status(memory, job["job_id"])["job"]["job_id"] == job["job_id"]
            found = status(same, job["job_id"], LONGEST_SECONDS)
            assert (found["job"]["status"], found["job"]["files"]) == ("completed", FILES)
            assert found["job"]["run_id"] != job["run_id"]
            assert len(found["outcomes"]) == 1000  # of files: this process has loaded them
            for memory in (other, late):
                assert status(memory, job["job_id"])["outcomes"] == []
            assert other.call("get_memory_stats")["documents"] == FILES


def status(memory: RawMemory, job_id: str, wait_seconds: float = 0.0) -> dict[str, Any]:
    found = memory.call("get_ingestion_status", job_id=job_id, wait_seconds=wait_seconds)
    assert isinstance(found, dict)
    return found
