"""Source code is parsed in a worker process, within limits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from ragcommon.memory_limit import peak_memory
from ragmemory.code import apart as module
from ragmemory.code.apart import HARMLESS, MEMORY, apart, is_harmless
from ragmemory.code.syntax import MAX_CHARACTERS
from tests.support.memories import put, service_for, uris
from tests.support.parsers import crash, hang

# tree-sitter takes 2 GB for it.
HOSTILE = "/a=" * 2_700
FINE = "def fine():\n    return 1\n\n\n" * 200


async def test_a_function_that_hangs_or_crashes_is_ended_and_the_next_one_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with anyio.fail_after(60):
        assert await apart(abs, -5) == 5
        monkeypatch.setattr(module, "DEADLINE_SECONDS", 0.2)
        assert await apart(hang, Path(), b"") is None
        monkeypatch.undo()
        assert await apart(crash, Path(), b"") is None
        assert await apart(abs, -6) == 6


@pytest.mark.parametrize("python", ["no-such-python", "false"])
async def test_where_no_worker_starts_functions_are_called_in_this_process_with_one_warning(
    python: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    module._warn.cache_clear()
    with anyio.fail_after(60):
        monkeypatch.setattr(sys, "executable", python)
        assert [await apart(abs, -5), await apart(os.getpid)] == [5, os.getpid()]
        [warned] = [one.message for one in caplog.records if one.name == module.__name__]
        assert warned.startswith("Source code is parsed without limits, as no worker process can be started")
        monkeypatch.undo()
        assert await apart(os.getpid) != os.getpid()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
async def test_a_worker_that_ended_while_it_was_idle_is_replaced() -> None:
    with anyio.fail_after(60):
        for _ in range(3):
            pid = await apart(os.getpid)
            assert pid not in (None, os.getpid())
            os.kill(pid or 0, signal.SIGKILL)


def test_a_process_ends_in_time_also_if_a_library_holds_the_interpreter() -> None:
    held = "import re; from ragmemory.code import apart as module; module.SECONDS = 0.2;"
    held += "module.limited(re.match, '(a*)*b', 'a' * 99)"
    ended = subprocess.run([sys.executable, "-c", held], check=False, timeout=30, capture_output=True)
    assert (ended.returncode, b"Timeout" in ended.stderr) == (1, True)


def test_short_texts_and_those_that_are_never_parsed_need_no_worker() -> None:
    lengths = (HARMLESS, HARMLESS + 1, MAX_CHARACTERS, MAX_CHARACTERS + 1)
    assert [is_harmless("x" * length) for length in lengths] == [True, False, False, True]


@pytest.mark.full
async def test_code_that_takes_gigabytes_is_kept_as_plain_text_and_is_not_traced(tmp_path: Path) -> None:
    before = peak_memory()
    async with service_for(tmp_path) as memory:
        for uri, text in (("file:///a.java", HOSTILE), ("file:///a.py", FINE)):
            assert (await put(memory, text, uri=uri)).status == "added"
        assert {one.uri for one in (await memory.code.symbols("fine"))[0]} == {"file:///a.py"}
        assert (await memory.code.trace("a", "all", 1))[0] == []
        assert (await uris(memory, "a"))[0] == "file:///a.java"
    assert peak_memory() - before < MEMORY
