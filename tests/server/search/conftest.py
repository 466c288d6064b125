"""The memory of the tests of the search: in each engine, and with each index."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from ragmemory.search.remote.remote_index import RemoteIndex
from ragmemory.service import MemoryService
from tests.support.memories import SwitchableEmbedder, service_for
from tests.support.remote import qdrant_url

KINDS = ("postgres", "pgvector", "qdrant")


@pytest.fixture(params=["sqlite", *(pytest.param(kind, marks=pytest.mark.full) for kind in KINDS)])
def kind(request: pytest.FixtureRequest) -> str:
    """Which engine or remote index a memory has."""
    return str(request.param)


@pytest.fixture
def memory_url(request: pytest.FixtureRequest, kind: str) -> str:
    """The URL of a new memory in PostgreSQL; "" for one in an SQLite file."""
    if kind not in ("postgres", "pgvector"):
        return ""
    return f"{request.getfixturevalue('database')}&schema=test_{secrets.token_hex(6)}"


@pytest.fixture
async def index_url(kind: str) -> AsyncIterator[str]:
    """The setting index.url."""
    async with AsyncExitStack() as stack:
        yield await qdrant_url(stack) if kind == "qdrant" else "pgvector" if kind == "pgvector" else ""


@pytest.fixture
async def memory(
    tmp_path: Path,
    embedder: SwitchableEmbedder,
    memory_url: str,
    index_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[MemoryService]:
    """A remote index has everything at each query. The tests in `remote` are about one that has not."""
    bring_up_to_date = RemoteIndex.bring_up_to_date

    async def caught_up(index: RemoteIndex) -> bool:
        while await index._updater.step():
            pass
        return await bring_up_to_date(index)

    monkeypatch.setattr(RemoteIndex, "bring_up_to_date", caught_up)
    with anyio.fail_after(60):
        async with service_for(tmp_path, embedder, url=memory_url, index=index_url) as memory:
            yield memory
