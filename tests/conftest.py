"""What all tests have in common: a home of their own, temporary folders in memory, a working Ctrl-C."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from ragconfig.home import HOME_VARIABLE
from tests.support.postgres import postgres

# The sources, the tests and the peers are compiled once, not at each of a thousand starts.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Git sets these for its hooks: the repositories of tests would otherwise be that of the sources.
for _name in [name for name in os.environ if name.startswith("GIT_")]:
    del os.environ[_name]

# No deadlines: a busy machine would miss them.
# The same examples in every run: a failure comes from the change under test.
for _name, _examples in (("short", 25), ("full", 100)):
    settings.register_profile(
        _name,
        max_examples=_examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.register_profile(
    "long",  # new examples in every run; failing ones are saved and tried first in the next
    max_examples=1_000,
    database=DirectoryBasedExampleDatabase(Path(__file__).parent.parent / ".hypothesis" / "examples"),
    print_blob=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("TEST_PROFILE", "short"))

# Tests of whole programs with each other and with other libraries, campaigns, hostile input: all are `full`.
_FULL = [Path(__file__).parent / name for name in ("together", "faults", "fuzz")]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """The garbage collector passes over the modules and the thousands of tests: they stay until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent in _FULL:
            item.add_marker("full")
    # First, so that the end, which workers steal from each other, has no module whose fixtures take seconds.
    items.sort(key=lambda item: item.path.parent not in _FULL)


# A file system in memory, for the temporary folders of the tests: SQLite's syncs are half the time on a disk.
_IN_MEMORY = Path("/dev/shm")
_FREE_BYTES = 2 * 2**30  # a container often has 64 MB there: too few
if _IN_MEMORY.is_dir() and shutil.disk_usage(_IN_MEMORY).free >= _FREE_BYTES:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_IN_MEMORY))


@pytest.fixture(scope="session", autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(HOME_VARIABLE, str(tmp_path_factory.mktemp("home")))
        # The programs reject a variable that looks like a setting but is none.
        # pytest-xdist sets a width for its workers, which programs would believe before their own terminal's.
        for variable in ("RAGCHAT_MEMORY", "COLUMNS", "LINES"):
            patch.delenv(variable, raising=False)
        yield


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    """The URL of a database in PostgreSQL; skips the test where there can be none."""
    with postgres() as url:
        yield url


@pytest.fixture(autouse=True)
def _ctrl_c() -> None:
    # A command that ran in this process has left the signal to the system, which would end the process.
    signal.signal(signal.SIGINT, signal.default_int_handler)
