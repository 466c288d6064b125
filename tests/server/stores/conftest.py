"""A store for the tests of its parts, in each engine; modules that need another one replace the fixture."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ragmemory.stores.store import Store
from tests.support.stores import opened


@pytest.fixture
async def store(tmp_path: Path, _engine: None) -> AsyncIterator[Store]:
    async with opened(tmp_path / "memory.db") as store:
        yield store
