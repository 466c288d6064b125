"""Some commands run within the process of the tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.commands.conftest import _log_of_its_own

__all__ = ["_log_of_its_own"]


@pytest.fixture
def empty_stdin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A stdin with nothing in it: pytest's own is no file."""
    with Path(os.devnull).open(encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield
