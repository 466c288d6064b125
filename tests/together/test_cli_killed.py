"""`ragchat inject` killed in the middle: what is stored stays whole, the same command completes it."""

from __future__ import annotations

import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.embeddings_server import EmbeddingsServer, embeddings_server
from tests.support.processes import LONGEST_SECONDS
from tests.support.program import Program, program_in

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")

FILES = 1_000


@pytest.fixture
def embedder() -> Iterator[EmbeddingsServer]:
    with embeddings_server() as embedder:
        yield embedder


@pytest.fixture
def ragchat(tmp_path: Path, embedder: EmbeddingsServer) -> Program:
    ragchat = program_in(tmp_path, RAGCHAT_EMBEDDER_KIND="openai", RAGCHAT_EMBEDDER_BASE_URL=embedder.url)
    for number in range(FILES):
        (ragchat.folder / f"{number}.md").write_text(f"Note {number}", encoding="utf-8")
    return ragchat


def test_a_killed_loading_is_completed_by_the_same_command(
    ragchat: Program, embedder: EmbeddingsServer
) -> None:
    # More than are on their way at once: some are stored.
    embedder.hold_after = FILES // 2
    with ragchat.started("inject", ".") as loading:
        assert embedder.reached.wait(LONGEST_SECONDS)
        loading.send_signal(signal.SIGKILL)
        loading.wait(LONGEST_SECONDS)
    embedder.go.set()

    again = ragchat("inject", ".", "--json").json
    assert again["unchanged"] > 0
    assert (again["added"] + again["unchanged"], again["failed"]) == (FILES, 0)
    with closing(sqlite3.connect(ragchat.home / "data" / "memory.db")) as db:
        assert db.execute("SELECT count(*) FROM documents").fetchall() == [(FILES,)]
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
