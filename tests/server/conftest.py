"""A memory for the tests of its parts; modules that need another one replace the fixture."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from ragconfig.settings import is_database
from ragmemory.service import MemoryService
from tests.support.memories import SwitchableEmbedder, place_of, service_for


@pytest.fixture
def embedder() -> SwitchableEmbedder:
    return SwitchableEmbedder()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.full)])
def _engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs in each engine: see `memories.place_of`."""
    if request.param == "postgres":
        monkeypatch.setattr("tests.support.memories.database", request.getfixturevalue("database"))


@pytest.fixture
def memory_url(_engine: None, tmp_path: Path) -> str:
    """The URL of the test's memory; "" for a file."""
    place = place_of(tmp_path / "memory.db")
    return place if is_database(place) else ""


@pytest.fixture
async def memory(tmp_path: Path, embedder: SwitchableEmbedder, _engine: None) -> AsyncIterator[MemoryService]:
    with anyio.fail_after(60):
        async with service_for(tmp_path, embedder) as memory:
            yield memory
