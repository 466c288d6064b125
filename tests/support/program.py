"""The installed programs as a user runs them: real processes, a home of their own, what they print."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.forking import python_for
from tests.support.processes import LONGEST_SECONDS, Held


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
        done = subprocess.run(
            [python_for(self.variables), "-m", "ragchat", *words],
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            cwd=self.folder,
            env=self.variables,
            timeout=LONGEST_SECONDS,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def started(self, *words: str, python: str = "") -> Held:
        """It runs until its `with` ends, its three streams pipes; forked, unless `python` is given."""
        return Held(
            [python or python_for(self.variables), "-m", "ragchat", *words],
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
