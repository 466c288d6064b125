"""The installed programs as a user runs them: real processes, a home of their own, what they print."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.support import fork_server, launcher
from tests.support.processes import LONGEST_SECONDS, Held

# What decides how Python starts: it is not forked then.
_OF_PYTHON = ("PYTHON", "LANG", "LC_")


@cache
def forking_python() -> str:
    """A Python that starts our programs in a tenth of the time, see fork_server.py. Linux only.

    A process that it has started is killed soon after its launcher, not with it.
    """
    if sys.platform != "linux":
        return sys.executable
    folder = Path(tempfile.mkdtemp())
    socket, python = folder / "socket", folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{launcher.__file__}" "{socket}" "$@"\n')
    python.chmod(0o700)
    server = subprocess.Popen(
        [sys.executable, "-P", fork_server.__file__, socket, python],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    assert server.stdout.readline() == b"\n"

    def end() -> None:
        server.communicate()
        shutil.rmtree(folder)

    atexit.register(end)
    return str(python)


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Program:
    """`ragchat` with everything of its own under `home`, offline unless `environ` says otherwise."""

    home: Path
    folder: Path
    environ: dict[str, str]

    def __call__(self, *words: str, stdin: str | bytes = "") -> Done:
        real = any(name.startswith(_OF_PYTHON) for name in self.environ)
        done = subprocess.run(
            [sys.executable if real else forking_python(), "-m", "ragchat", *words],
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            cwd=self.folder,
            env=self.variables,
            timeout=LONGEST_SECONDS,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def started(self, *words: str, python: str = sys.executable) -> Held:
        """It runs until its `with` ends, its three streams pipes."""
        return Held(
            [python, "-m", "ragchat", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env=self.variables,
        )

    @property
    def variables(self) -> dict[str, str]:
        ours = ("RAGCHAT_", "OPENAI_", "NO_COLOR", "PYTHONIOENCODING")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        chosen = {
            "RAGCHAT_HOME": str(self.home),
            "RAGCHAT_MODEL_NAME": "offline",
            # A memory that a busy machine starts slowly is waited for, too.
            "RAGCHAT_RETRIEVAL_DEADLINE_SECONDS": str(LONGEST_SECONDS),
        }
        return inherited | chosen | self.environ


def program_in(tmp_path: Path, **environ: str) -> Program:
    folder = tmp_path / "folder"
    folder.mkdir(exist_ok=True)
    return Program(tmp_path / "home", folder, environ)
