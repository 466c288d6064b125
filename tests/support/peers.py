"""Other libraries, each in an environment of its own, and servers over HTTP as processes."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest

from tests.support.mcp_process import ENV, ROOT
from tests.support.processes import LONGEST_SECONDS, Held

PeerName = Literal["mcp1", "mcp2", "fastmcp", "litellm", "servers"]

# The SDK 2.x is among our own test dependencies.
_PYTHONS = {name: ROOT / ".peers" / name for name in ("mcp1", "fastmcp", "litellm", "servers")}


def need(peer: PeerName) -> None:
    """Skip the test where that library is not installed."""
    if not Path(python(peer)).exists():
        pytest.skip(f"{peer} is not here; `make .peers/{peer}/.done` installs it")


def with_smoke(cases: Sequence[object], smoke: Collection[object]) -> list[pytest.ParameterSet]:
    """The cases as parameters; those of `smoke` are run by `make test` too."""
    return [pytest.param(case, marks=[pytest.mark.smoke] if case in smoke else []) for case in cases]


def python(peer: PeerName) -> str:
    """The interpreter that has the library."""
    if peer == "mcp2":
        return sys.executable
    return str(_PYTHONS[peer] / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))


def server_command(peer: PeerName, *arguments: str) -> list[str]:
    """A server written with it: `stdio`, or `http PORT`."""
    return [python(peer), "-m", f"tests.peers.{peer}_server", *arguments]


@contextmanager
def running(
    command: Sequence[str], log: Path, port: int = 0, end: signal.Signals = signal.SIGTERM
) -> Iterator[str]:
    """A server over HTTP that says its port on stdout; its URL without a path. The signal `end` ends it."""
    with (
        log.open("ab") as stderr,
        Held([*command, str(port)], stdout=subprocess.PIPE, stderr=stderr, env=ENV) as process,
    ):
        try:
            line = process.line()
            assert line, log.read_text(encoding="utf-8")
            yield f"http://127.0.0.1:{int(line)}"
        finally:
            process.send_signal(end)
            process.wait(LONGEST_SECONDS)
