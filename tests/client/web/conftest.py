"""A program with a home of its own, and a browser for the tests of a module."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.program import Program, program_in

if TYPE_CHECKING:
    from tests.support.browser import Browser


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return program_in(tmp_path)


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    from tests.support.browser import chromium_running

    async with chromium_running() as running:
        yield running
