"""`ragchat inject` killed in the middle: what is stored stays whole, the same command completes it."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.processes import LONGEST_SECONDS
from tests.support.program import Program, program_in

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")

FILES = 1_500


@pytest.fixture
def ragchat(tmp_path: Path) -> Program:
    ragchat = program_in(tmp_path)
    for number in range(FILES):
        text = f"# Note {number}\n\n" + f"Sentence {number} of a note that takes its time. " * 40
        (ragchat.folder / f"{number}.md").write_text(text, encoding="utf-8")
    return ragchat


def documents(memory: Path) -> int:
    """How many another process sees; 0 while there is no table yet."""
    try:
        with closing(sqlite3.connect(memory)) as db:
            [(count,)] = db.execute("SELECT count(*) FROM documents").fetchall()
    except sqlite3.OperationalError:
        return 0
    return int(count)


def test_a_killed_loading_is_completed_by_the_same_command(ragchat: Program) -> None:
    memory = ragchat.home / "data" / "memory.db"
    with ragchat.started("inject", ".") as loading:
        deadline = time.monotonic() + LONGEST_SECONDS
        while not memory.exists() or not documents(memory):
            assert loading.poll() is None, "it ended by itself"
            assert time.monotonic() < deadline
            os.sched_yield()
        loading.send_signal(signal.SIGKILL)
        loading.wait(LONGEST_SECONDS)

    again = ragchat("inject", ".", "--json").json
    # The killed one's server may have stored what was on its way to it after the count above.
    assert again["unchanged"] > 0
    assert (again["added"] + again["unchanged"], again["failed"]) == (FILES, 0)
    assert documents(memory) == FILES
    with closing(sqlite3.connect(memory)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
