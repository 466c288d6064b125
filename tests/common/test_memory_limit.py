"""A process that takes too much memory ends."""

from __future__ import annotations

import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from ragcommon import memory_limit


@pytest.mark.skipif(sys.platform == "win32", reason="the test has no limit of its own there")
def test_where_addresses_cannot_be_limited_a_process_that_takes_too_much_is_ended() -> None:
    watched = (
        "import threading; from ragcommon.memory_limit import watch_memory, peak_memory;"
        "most = peak_memory() + (32 << 20);"
        "threading.Thread(target=watch_memory, args=(most, threading.Event()), daemon=True).start();"
        "held = b'x' * (most + (32 << 20)); threading.Event().wait(20)"
    )
    # Linux counts the peak of the process that starts one as its own; earlier tests may have taken gigabytes.
    small = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', sys.argv[1]]).returncode)"
    assert subprocess.run([sys.executable, "-c", small, watched], check=False, timeout=30).returncode == 1


@pytest.mark.skipif(sys.platform != "linux", reason="addresses are limited on Linux alone")
def test_what_a_process_already_holds_does_not_count(capfd: pytest.CaptureFixture[str]) -> None:
    limited = (
        "from ragcommon.memory_limit import limited_memory\n"
        "held = bytearray(256 << 20)\n"
        "with limited_memory(128 << 20):\n"
        "    bytearray(64 << 20)\n"
        "    bytearray(256 << 20)\n"
    )
    assert subprocess.run([sys.executable, "-c", limited], check=False, timeout=30).returncode == 1
    assert "line 5" in capfd.readouterr().err


def test_where_addresses_cannot_be_limited_nothing_is_watched_after_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watches: list[threading.Event] = []
    monkeypatch.setattr(memory_limit, "sys", SimpleNamespace(platform="other"))
    monkeypatch.setattr(memory_limit, "peak_memory", lambda: 0)
    monkeypatch.setattr(memory_limit, "watch_memory", lambda _, ended: watches.append(ended))
    with pytest.raises(KeyError), memory_limit.limited_memory(1):
        raise KeyError
    assert [ended.wait(20) for ended in watches] == [True]
