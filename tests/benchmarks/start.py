"""From spawning `ragchat` in a terminal to the first prompt on its screen."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.memory import environment
from tests.benchmarks.report import median, table

PROMPT = "❯".encode()


def to_prompt(home: Path) -> float:
    """Milliseconds; the terminal answers nothing, as a slow one would."""
    controller, terminal = pty.openpty()
    env = {**environment(home), "TERM": "xterm-256color", "LANG": "C.UTF-8", "PROMPT_TOOLKIT_NO_CPR": "1"}
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "ragchat"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=env,
        start_new_session=True,
    )
    os.close(terminal)
    seen = b""
    while PROMPT not in seen:
        seen += os.read(controller, 65536)
    span = (time.perf_counter() - began) * 1e3
    os.killpg(process.pid, signal.SIGTERM)
    os.close(controller)
    process.wait(timeout=10)
    return span


def run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        to_prompt(Path(folder))
        span = median(lambda: to_prompt(Path(folder)), 7)
    python = median(_bare_python, 7)
    table(
        "Start of `ragchat` to the prompt (median of 7; goal 250 ms)",
        ["program", "ms"],
        [["ragchat", f"{span:.0f}"], ["python -c pass, for scale", f"{python:.0f}"]],
    )


def _bare_python() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return (time.perf_counter() - began) * 1e3
