"""A memory for the tests of its parts; modules that need another one replace the fixture."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from ragmemory.service import MemoryService
from tests.support.memories import SwitchableEmbedder, service_for


@pytest.fixture
def embedder() -> SwitchableEmbedder:
    return SwitchableEmbedder()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.full)])
def memory_url(request: pytest.FixtureRequest) -> str:
    """The URL of a new memory in PostgreSQL; "" for one in an SQLite file."""
    if request.param == "sqlite":
        return ""
    return f"{request.getfixturevalue('database')}&schema=test_{secrets.token_hex(6)}"


@pytest.fixture
async def memory(
    tmp_path: Path, embedder: SwitchableEmbedder, memory_url: str
) -> AsyncIterator[MemoryService]:
    with anyio.fail_after(60):
        async with service_for(tmp_path, embedder, url=memory_url) as memory:
            yield memory
