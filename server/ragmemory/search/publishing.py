"""Share a saved index with other machines: one process publishes it in the database, others start from it.

A file of an index never changes, so only new ones are copied. What the index lacks is read from the store.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from anyio import to_thread

from ragmemory.search.index.folder import FORMAT, MANIFEST, IndexFolder, decoded, encoded
from ragmemory.stores.leases import LeaseStore
from ragmemory.stores.published import LEASE, PART_BYTES, Published, PublishedStore

if TYPE_CHECKING:
    from pathlib import Path

    from ragmemory.stores.store import Store

logger = logging.getLogger(__name__)

# Chunks by which an index must be ahead of another one to be copied: to index as many takes about a second.
WORTHWHILE = 20_000


class SharedIndex:
    """The index of one memory in `folder` on this machine, and the published one.

    One is copied if it is `worthwhile` chunks ahead. Methods raise what a store raises, and OSError.
    """

    def __init__(self, store: Store, folder: IndexFolder, worthwhile: int = WORTHWHILE) -> None:
        self._published = PublishedStore(store.engine)
        self._leases = LeaseStore(store.engine)
        self._folder = folder
        self._worthwhile = worthwhile
        self._holder = os.urandom(8).hex()

    async def fetch(self, fingerprint: str) -> None:
        """Put the published index with this fingerprint into the folder, if it is far ahead."""
        found = await self._published.find(FORMAT)
        if found is None or found.fingerprint != fingerprint:
            return
        here = await to_thread.run_sync(self._folder.read)
        behind = here.checkpoint.chunk_id if here and here.fingerprint == fingerprint else 0
        manifest = decoded(found.manifest, self._folder.path / MANIFEST)
        if manifest is None or found.chunk_id - behind < self._worthwhile:
            return
        with self._folder.locked() as is_ours:
            if not is_ours:  # Another process of this machine fetches it, or writes its own.
                return
            for file in manifest.files:
                if not await self._fetch_file(self._folder.path / file, found.sizes[file]):
                    return
            await to_thread.run_sync(self._folder.replace, manifest)

    async def _fetch_file(self, path: Path, size: int) -> bool:
        """Whether the file is there, whole: it is not if another index was published meanwhile."""
        if await to_thread.run_sync(_size_of, path) == size:
            return True
        # Until the manifest lists it, nothing reads it, and a later sweep removes it.
        with path.open("wb") as copy:
            async for data in self._published.read(FORMAT, path.name):
                await to_thread.run_sync(copy.write, data)
            copy.flush()
            await to_thread.run_sync(os.fsync, copy.fileno())
            return copy.tell() == size

    async def publish(self) -> None:
        """Publish the saved index, if it is far ahead of the published one and no other process does so."""
        manifest = await to_thread.run_sync(self._folder.read)
        if manifest is None:
            return
        chunk_id = manifest.checkpoint.chunk_id
        there = await self._published.find(FORMAT)
        if there is not None and there.fingerprint != manifest.fingerprint:
            there = None
        if chunk_id - (there.chunk_id if there else 0) < self._worthwhile:
            return
        if not await self._leases.acquire(LEASE, self._holder):
            return
        try:
            known = there.sizes if there else {}
            sizes = {file: known.get(file) or await self._send(file) for file in manifest.files}
            if not all(sizes.values()):
                return
            index = Published(manifest.fingerprint, chunk_id, encoded(manifest), sizes)
            if await self._published.publish(FORMAT, index, self._holder):
                logger.info("Published the index up to chunk %s.", chunk_id)
        except FileNotFoundError:  # A merge has replaced it. The next index has other files.
            pass
        finally:
            await self._leases.release(LEASE, self._holder)

    async def _send(self, file: str) -> int:
        """Copy a file into the database; return its size, 0 if another process publishes by now."""
        part = 0
        with (self._folder.path / file).open("rb") as content:
            while data := await to_thread.run_sync(content.read, PART_BYTES):
                if not await self._published.add(FORMAT, file, part, data, self._holder):
                    return 0
                part += 1
            return content.tell()


def _size_of(path: Path) -> int:
    """The bytes of a file; 0 if there is none."""
    return path.stat().st_size if path.exists() else 0
