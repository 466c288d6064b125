"""Start our programs in a tenth of the time: forked by a process that has imported them, see fork_server.py.

What is started is a launcher, which passes signals on to the forked process and ends as it ends. The two have
different process ids, and SIGSTOP stops the launcher alone: what needs more is started with sys.executable.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.support import fork_server, launcher

NAME = "forking-python"
# What decides how Python starts.
_OF_PYTHON = ("PYTHON", "LANG", "LC_")


@cache
def _forking_python() -> str:
    folder = Path(tempfile.mkdtemp())
    socket, python = folder / "socket", folder / NAME
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


def python_for(environ: Mapping[str, str]) -> str:
    """The Python for our programs: on Linux it forks them, unless `environ` changes how Python starts."""
    names = {name for name in (*environ, *os.environ) if name.startswith(_OF_PYTHON)}
    is_ours = all(environ.get(name) == os.environ.get(name) for name in names)
    return _forking_python() if is_ours and sys.platform == "linux" else sys.executable


def is_launcher(command: object) -> bool:
    """Whether a process with this command line is a launcher: SIGKILL would end it before its program."""
    return isinstance(command, list) and Path(command[0]).name == NAME
