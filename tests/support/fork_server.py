"""A process that has imported our programs and forks them: to start one takes a tenth of the time.

    python -P fork_server.py SOCKET PYTHON

PYTHON is the executable that launcher.py is the source of; the programs get it for their `sys.executable`,
so that what they start is forked, too. What is forked is a process of its own with the arguments,
environment, folder and standard streams of its launcher, and ends with it. Ends with its stdin.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import threading
from contextlib import suppress
from typing import NoReturn

PACKAGES = ("ragchat", "ragmemory", "ragmcp", "ragcommon", "ragconfig")
# What they import when it is needed, and most runs need.
LATER = ("aiosqlite", "anyio._backends._asyncio", "openai", "uvicorn", "rich.markdown", "rich.table")


def import_all() -> None:
    for name in PACKAGES:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not module.name.endswith("__main__"):
                with suppress(ImportError):  # It needs a library of an extra.
                    importlib.import_module(module.name)
    for name in LATER:
        importlib.import_module(name)


def requests(address: str) -> list[str]:
    """Fork for each request until stdin ends. Returns in the forked process, with what was asked of it."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    os.write(1, b"\n")
    ready = selectors.DefaultSelector()
    ready.register(0, selectors.EVENT_READ)
    ready.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if key.fileobj == 0:
                sys.exit()
            elif key.fileobj is listener:
                launcher, _address = listener.accept()
                request, streams = received(launcher)
                if not request:
                    launcher.close()
                elif (pid := os.fork()) == 0:
                    for number, stream in enumerate(streams):
                        os.dup2(stream, number)
                        os.close(stream)
                    launcher.close()
                    close_all(ready)
                    return request
                else:
                    with suppress(OSError):  # It was killed meanwhile: its end is noticed below.
                        launcher.send(b"%d\n" % pid)
                    ready.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, launcher))
                    ready.register(launcher, selectors.EVENT_READ, pid)
                for stream in streams:
                    os.close(stream)
            elif isinstance(key.data, int):  # The launcher was killed.
                assert isinstance(key.fileobj, socket.socket)
                if key.fileobj.fileno() >= 0:  # Else its program ended at the same time, which was handled.
                    ready.unregister(key.fileobj)
                    os.kill(key.data, signal.SIGKILL)
            else:
                pid, launcher = key.data
                _, status = os.waitpid(pid, 0)
                ready.unregister(key.fileobj)
                os.close(key.fd)
                with suppress(KeyError):
                    ready.unregister(launcher)
                with suppress(OSError):
                    launcher.send(b"%d\n" % status)
                launcher.close()


def close_all(ready: selectors.BaseSelector) -> None:
    """Close what a forked process has inherited of the server, other launchers and processes among it."""
    for key in list(ready.get_map().values()):
        if isinstance(key.fileobj, socket.socket):
            key.fileobj.close()
        elif key.fd != 0:
            os.close(key.fd)
    ready.close()


def received(launcher: socket.socket) -> tuple[list[str], list[int]]:
    """The fields that a launcher sends (see launcher.py), and the standard streams for them.

    No fields if it was killed before it had sent them all.
    """
    data, streams, _flags, _address = socket.recv_fds(launcher, 65_536, 3)
    length = 4 + int.from_bytes(data[:4])
    while len(data) < length and (more := launcher.recv(length - len(data))):
        data += more
    fields = os.fsdecode(data[4:]).split("\0")[:-1] if len(data) == length else []
    return fields, streams


def become(folder: str, count: str, *fields: str) -> str:
    """Make this process what `python WORD…` would be. Returns the module to run."""
    words, variables = list(fields[: int(count)]), fields[int(count) :]
    # Those of the server have their position in other files.
    sys.stdin, sys.stdout = open(0, errors=sys.stdin.errors), open(1, "w", errors=sys.stdout.errors)  # noqa: SIM115
    sys.stderr = open(2, "w", errors="backslashreplace", buffering=1)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    for variable in variables:
        name, _, value = variable.partition("=")
        os.environ[name] = value
    module = words.index("-m") + 1
    sys.orig_argv = [sys.executable, *words]
    sys.argv = ["-m", *words[module + 1 :]]
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:0] = paths if "-P" in words else [folder, *paths]
    return words[module]


def run(module: str) -> NoReturn:
    """Run it and exit, without the cleanup of all that was imported."""
    code: object = None
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as stop:
        code = stop.code
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # Its reader no longer exists, or it is closed.
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    import_all()
    gc.collect()
    gc.freeze()
    address, sys.executable = sys.argv[1:]
    asked = requests(address)
    run(become(*asked))
