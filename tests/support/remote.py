"""Remote indexes for the tests: a real pgvector, and a Qdrant, which may be a double.

RAGCHAT_TEST_QDRANT names a real Qdrant; without it, its client's local mode stands in for the server.
"""

from __future__ import annotations

import os
import warnings
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from ragmemory.search.remote.remote_index import RemoteIndex
from ragmemory.service import MemoryService

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient

VARIABLE = "RAGCHAT_TEST_QDRANT"


def use_qdrant(stack: AsyncExitStack) -> AsyncQdrantClient:
    """One Qdrant for all memories that are made until the stack closes."""
    from qdrant_client import AsyncQdrantClient

    if address := os.environ.get(VARIABLE):
        client = AsyncQdrantClient(address)
    else:
        client = AsyncQdrantClient(":memory:")
    stack.enter_context(warnings.catch_warnings())
    for message in ("Payload indexes have no effect in the local", "Local mode performs exact"):
        warnings.filterwarnings("ignore", message)
    closed = client.close
    stack.push_async_callback(closed)
    patch = stack.enter_context(pytest.MonkeyPatch.context())
    patch.setattr(client, "close", _nothing)  # A memory that closes must not close it for others.
    patch.setattr("ragmemory.search.remote.qdrant.connect", lambda *_: client)
    return client


async def _nothing() -> None:
    """For `close`."""


def remote_index(memory: MemoryService) -> RemoteIndex:
    index = memory.indexing
    assert isinstance(index, RemoteIndex)
    return index


async def catch_up(memory: MemoryService) -> None:
    """Send to the index what was committed until now."""
    while await remote_index(memory)._updater.step():
        pass
