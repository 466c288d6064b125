"""What all tests of servers that are processes have in common."""

from __future__ import annotations

import pytest

from ragmcp.stdio import process
from tests.support.processes import LONGEST_SECONDS


@pytest.fixture(autouse=True)
def _exit_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    """How a server has ended is known later than its last output: on a busy machine, much later."""
    monkeypatch.setattr(process, "EXIT_CODE_SECONDS", LONGEST_SECONDS)
