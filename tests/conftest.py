"""What all tests have in common: no memory of whoever runs them, and a Ctrl-C that is heard."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from ragconfig.home import HOME_VARIABLE

# No deadlines: a machine that runs something else beside the tests would miss them.
settings.register_profile(
    "short",  # the same examples in every run: a change that breaks one is to blame for it
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "long",  # other examples in every run; those that fail are kept and come first in the next one
    max_examples=1_000,
    database=DirectoryBasedExampleDatabase(Path(__file__).parent.parent / ".hypothesis" / "examples"),
    print_blob=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# Taken out of the environment: the programs refuse a variable that looks like a setting and is none.
settings.load_profile(os.environ.pop("RAGCHAT_TEST_PROFILE", "short"))


@pytest.fixture(scope="session", autouse=True)
def _home_of_nobody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(HOME_VARIABLE, str(tmp_path_factory.mktemp("home")))
        patch.delenv("RAGCHAT_MEMORY", raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def _audible_interrupts() -> None:
    # A job that a shell runs in the background ignores SIGINT, and would bequeath that to every program here.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
