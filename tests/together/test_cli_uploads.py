"""`ragchat` on one machine and the memory on another, when one of them is killed.

The server's address is one of this machine that `ragchat` does not take for its own.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.embeddings_server import EmbeddingsServer, embeddings_server
from tests.support.http_memory import HttpMemory, http_memory
from tests.support.ports import free_port
from tests.support.processes import LONGEST_SECONDS
from tests.support.program import Program, program_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the address 127.0.0.2")

FILES = 1_000
TOKEN = "correct-horse"


@pytest.fixture
def embedder() -> Iterator[EmbeddingsServer]:
    with embeddings_server() as embedder:
        yield embedder


@contextmanager
def serving(tmp_path: Path, embedder: EmbeddingsServer, port: int) -> Iterator[HttpMemory]:
    """The server, for which every text is embedded by the `embedder`; a client's mirror has its own."""
    (tmp_path / "server").mkdir(exist_ok=True)
    words = ["--host", "0.0.0.0", "--toolsets", "memory,documents,maintenance", "--port", str(port)]
    variables = {"RAGCHAT_EMBEDDER_KIND": "openai", "RAGCHAT_EMBEDDER_BASE_URL": embedder.url}
    with http_memory(tmp_path / "server", *words, RAGMEMORY_TOKEN=TOKEN, **variables) as server:
        yield server


def client_of(server: HttpMemory, tmp_path: Path) -> Program:
    url = f"http://127.0.0.2:{server.told['port']}"
    return program_in(tmp_path, RAGCHAT_MEMORY_SERVER_URL=url, RAGMEMORY_TOKEN=TOKEN)


def write_notes(ragchat: Program) -> None:
    for number in range(FILES):
        (ragchat.folder / f"{number}.md").write_text(f"Note {number}", encoding="utf-8")


def total(ragchat: Program) -> Any:
    return ragchat("memory", "ls", "--json").json["total"]


def test_a_killed_upload_is_completed_by_the_same_command(tmp_path: Path, embedder: EmbeddingsServer) -> None:
    with serving(tmp_path, embedder, free_port()) as server:
        ragchat = client_of(server, tmp_path)
        write_notes(ragchat)
        embedder.hold_after = FILES // 2
        with ragchat.started("inject", ".") as loading:
            assert embedder.reached.wait(LONGEST_SECONDS)
            loading.send_signal(signal.SIGKILL)
            loading.wait(LONGEST_SECONDS)
        embedder.go.set()

        again = ragchat("inject", ".", "--json").json
        assert again["unchanged"] > 0
        assert (again["added"] + again["unchanged"], again["failed"]) == (FILES, 0)
        assert total(ragchat) == FILES
        assert ragchat("inject", ".").out == f"{FILES:,} unchanged ({FILES:,} chunks).\n"


def test_a_server_that_is_lost_meanwhile_is_named_and_completed_when_it_is_back(
    tmp_path: Path, embedder: EmbeddingsServer
) -> None:
    with serving(tmp_path, embedder, port := free_port()) as server:
        ragchat = client_of(server, tmp_path)
        write_notes(ragchat)
        embedder.hold_after = FILES // 2
        with ragchat.started("inject", ".") as loading:
            assert embedder.reached.wait(LONGEST_SECONDS)
            server.process.kill()
            server.process.wait(LONGEST_SECONDS)
            embedder.go.set()
            out, err = loading.communicate(timeout=LONGEST_SECONDS)
        assert loading.returncode == 1
        assert b"Not finished: Memory is not available" in err
        assert b"Run the same command again to continue." in err
        said = int(out.split(b" added")[0].replace(b",", b""))
        assert 0 < said <= FILES // 2
    with serving(tmp_path, embedder, port):
        assert said <= total(ragchat) < FILES
        assert ragchat("inject", ".", "--json").json["failed"] == 0
        assert total(ragchat) == FILES


def test_watching_loads_what_changed_while_the_server_was_away(
    tmp_path: Path, embedder: EmbeddingsServer
) -> None:
    pytest.importorskip("watchfiles", reason="the environment was set up before watchfiles was needed")
    with serving(tmp_path, embedder, port := free_port()) as server:
        ragchat = client_of(server, tmp_path)
        (ragchat.folder / "tea.md").write_text("Tea.", encoding="utf-8")
        assert ragchat("inject", ".").code == 0
        with ragchat.started("watch", ".", "--json") as watch:
            assert json.loads(watch.line())["status"] == "watching"
            server.process.kill()
            server.process.wait(LONGEST_SECONDS)
            (ragchat.folder / "tea.md").write_text("Tea with milk.", encoding="utf-8")
            assert json.loads(watch.line())["status"] == "failed"
            with serving(tmp_path, embedder, port):
                event = json.loads(watch.line())
    assert (event["status"], Path(event["uri"]).name) == ("updated", "tea.md")


def test_sources_and_changes_of_this_machine_reach_the_server(
    tmp_path: Path, embedder: EmbeddingsServer
) -> None:
    pytest.importorskip("watchfiles", reason="the environment was set up before watchfiles was needed")
    with serving(tmp_path, embedder, free_port()) as server:
        ragchat = client_of(server, tmp_path)
        notes = ragchat.folder / "notes"
        notes.mkdir()
        (notes / "tea.md").write_text("Tea.", encoding="utf-8")
        assert ragchat("source", "add", "notes").out == "Added notes.\n1 added (1 chunk).\n"
        [source] = ragchat("source", "ls", "--json").json["sources"]
        assert (source["documents"], source["machine"]) == (1, "")
        with ragchat.started("watch", "--json") as watch:
            assert json.loads(watch.line())["status"] == "watching"
            (notes / "milk.md").write_text("Milk.", encoding="utf-8")
            assert json.loads(watch.line())["status"] == "added"
            assert total(ragchat) == 2
            (notes / "tea.md").unlink()
            assert json.loads(watch.line())["status"] == "removed"
            assert total(ragchat) == 1
        chat = ragchat(stdin="/inject ../folder/notes\n/sync\n")
        assert "1 unchanged (1 chunk)." in chat.out + chat.err
        removed = ragchat("source", "rm", "notes", "--forget")
        assert removed.out == "notes is no longer a source; its 1 document was removed from memory.\n"
        assert total(ragchat) == 0
