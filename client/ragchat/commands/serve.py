"""`ragchat serve`: the memory over HTTP. The server is `ragmemory http`; nothing is served here."""

from __future__ import annotations

import os
import subprocess
import sys

from ragchat.commands import Run
from ragchat.memory.process import environment, program
from ragmcp.hosts import TOKEN_VARIABLE


def serve(run: Run) -> int:
    """Runs until a signal comes, and has the server's exit code."""
    arguments = run.arguments
    words = [*program(run.settings, run.config_file, arguments.verbose), "http"]
    for option in ("host", "port", "token_file"):
        if (value := getattr(arguments, option)) is not None:
            words += [f"--{option.replace('_', '-')}", str(value)]
    words += ["--read-only"] if arguments.read_only else []
    words += ["--json"] if arguments.json else []
    environ = environment(run.settings)
    if token := os.environ.get(TOKEN_VARIABLE):
        environ[TOKEN_VARIABLE] = token
    return _become(words, environ)


def _become(command: list[str], environ: dict[str, str]) -> int:
    """Be that program from here on, so that terminal, signals and exit code are its own."""
    if sys.platform != "win32":
        os.execve(command[0], command, environ)
    # There, to become a program is to leave before it has ended.
    process = subprocess.Popen(command, env=environ)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # the server heard it, too
            continue
