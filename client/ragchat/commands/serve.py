"""`ragchat serve`: run `ragmemory http` on this memory."""

from __future__ import annotations

import os
import subprocess
import sys

from ragchat.commands.invocation import Invocation
from ragchat.servers.memory.process import environment, program
from ragcommon.hosts import TOKEN_VARIABLE


def serve(run: Invocation) -> int:
    """Serve until a signal arrives. Returns the exit code of the server."""
    arguments = run.arguments
    words = [*program(run.settings), "http"]
    for option in ("host", "port", "token_file"):
        if (value := getattr(arguments, option)) is not None:
            words += [f"--{option.replace('_', '-')}", str(value)]
    words += ["--read-only"] if arguments.read_only else []
    words += ["--json"] if arguments.json else []
    environ = environment(run.settings)
    if token := os.environ.get(TOKEN_VARIABLE):
        environ[TOKEN_VARIABLE] = token
    return replace_process(words, environ)


def replace_process(command: list[str], environ: dict[str, str]) -> int:
    """Replace this process, so that the program gets the terminal and the signals."""
    if sys.platform != "win32":
        os.execve(command[0], command, environ)
    # On Windows, exec would return to the shell before the program has ended.
    process = subprocess.Popen(command, env=environ)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # the server gets it, too
            continue
