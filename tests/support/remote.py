"""Remote indexes for the tests: a real pgvector, and a Qdrant.

RAGCHAT_TEST_QDRANT names a Qdrant that runs already; without it, its engine runs here.
"""

from __future__ import annotations

import os
from contextlib import AsyncExitStack

from ragmemory.search.remote.remote_index import RemoteIndex
from ragmemory.service import MemoryService
from tests.support.qdrant_server import serve_qdrant

VARIABLE = "RAGCHAT_TEST_QDRANT"


async def qdrant_url(stack: AsyncExitStack) -> str:
    """The address of a Qdrant, until the stack closes."""
    return os.environ.get(VARIABLE) or await serve_qdrant(stack)


def remote_index(memory: MemoryService) -> RemoteIndex:
    index = memory.indexing
    assert isinstance(index, RemoteIndex)
    return index


async def catch_up(memory: MemoryService) -> None:
    """Send to the index what was committed until now."""
    while await remote_index(memory)._updater.step():
        pass
