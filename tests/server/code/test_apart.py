"""Source code is parsed in a worker process, within limits."""

from __future__ import annotations

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
