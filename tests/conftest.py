"""What all tests have in common: no memory of whoever runs them, and a Ctrl-C that is heard."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from ragmcp.home import HOME_VARIABLE


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
