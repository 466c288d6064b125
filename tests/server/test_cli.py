"""The command line of the server.

Covers `settings`.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import ragmemory
from tests.support.processes import LONGEST_SECONDS, Held, memory_command, memory_environment, run_memory

ROOT = Path(__file__).resolve().parents[2]


def test_the_version_is_that_of_the_distribution(tmp_path: Path) -> None:
    done = run_memory(tmp_path, "--version")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert done.stdout == f"ragmemory {project['version']}\n"
    assert ragmemory.__version__ == project["version"]


def test_the_end_of_stdin_is_the_end_and_nothing_was_made(tmp_path: Path) -> None:
    done = subprocess.run(
        memory_command(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        env=memory_environment(tmp_path),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_wrong_usage_is_exit_code_two(tmp_path: Path) -> None:
    done = run_memory(tmp_path, "--memroy", "x")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "--memroy" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "variables", "sentence"),
    [
        (["--toolsets", "memory,sql"], {}, "There is no toolset 'sql'."),
        (
            ["--config", "nowhere.toml"],
            {},
            "nowhere.toml cannot be read: it does not exist.",
        ),
        ([], {"RAGCHAT_MEMORY_BUSY_SECONDS": "soon"}, "memory.busy_seconds is not usable: it takes a number"),
        ([], {"RAGCHAT_CHUNKING_MAX_TOKEN": "9"}, "Did you mean RAGCHAT_CHUNKING_MAX_TOKENS?"),
        ([], {"RAGCHAT_EMBEDDER_KIND": "magic"}, "embedder.kind is not usable"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_used_are_one_sentence_on_stderr(
    tmp_path: Path, arguments: list[str], variables: dict[str, str], sentence: str
) -> None:
    done = run_memory(tmp_path, *arguments, **variables)
    assert (done.returncode, done.stdout) == (1, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="the shell is a POSIX one")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-", "<&- >&- 2>&-"])
@pytest.mark.full
def test_closed_standard_streams_are_empty_ones(tmp_path: Path, closed: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *memory_command(tmp_path)],
        input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
        capture_output=True,
        timeout=60,
        env=memory_environment(tmp_path),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals that can be received")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(tmp_path: Path, number: signal.Signals) -> None:
    process = Held(
        memory_command(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=memory_environment(tmp_path),
    )
    with process:
        assert process.stdin is not None
        process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"nonsense"}\n')
        process.stdin.flush()
        assert process.line()
        process.send_signal(number)
        _, errors = process.communicate(timeout=LONGEST_SECONDS)
    assert (process.returncode, errors) == (0, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals that can be received")
def test_ctrl_c_before_anything_runs_ends_it_without_a_word() -> None:
    code = """
import os, signal
import ragconfig.settings
from ragmemory.cli import main

ragconfig.settings.load_settings = lambda *_: os.kill(os.getpid(), signal.SIGINT)
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")
