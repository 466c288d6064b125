"""Follows the journal: notices what any process writes to the memory, this one included.

Writes of this process are looked for at once, those of others when the database hints at them, and in any
case once a second. Nothing is read while no client subscribes to changes; one of an older revision always
does, as it is sent changes of lists without asking for them.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from math import inf
from time import monotonic

import anyio

from ragcommon.contract.history import Action
from ragmemory.errors import RagMemoryError
from ragmemory.search.indexing import Indexing
from ragmemory.stores.store import Store

logger = logging.getLogger(__name__)

_POLL_SECONDS = 1.0
# Seconds between two hints to other processes: PostgreSQL sends them one after the other, under one lock.
_HINT_SECONDS = 0.25
# Seconds before a lost connection for hints is opened again; they double up to the second number.
_RECONNECT_SECONDS = (1.0, 60.0)
_PAGE = 1_000


class Follower:
    """`on_change` is called with the id of each document, what was done, and whether this process did it."""

    def __init__(
        self, store: Store, indexing: Indexing, on_change: Callable[[str, Action, bool], None]
    ) -> None:
        self.is_wanted: Callable[[], bool] = lambda: False
        """Whether changes are to be noticed: a client subscribes, or the program asks for it."""
        self._store = store
        self._indexing = indexing
        self._on_change = on_change
        self._seen: int | None = None  # The last entry of the journal; None: not following.
        self._version = (0, 0)
        self._own: set[str] = set()
        self._looked_at = monotonic()
        self._woken = anyio.Event()
        self._begun = anyio.Event()
        self._committed = anyio.Event()

    @property
    def lag_seconds(self) -> float:
        """Seconds since every change was known; 0 if nothing is followed."""
        return 0.0 if self._seen is None else monotonic() - self._looked_at

    def note_commit(self) -> None:
        """Let other processes know of a commit of this one."""
        self._committed.set()

    def note_written(self, document_ids: Iterable[str]) -> None:
        """Look for the entries of this process's own writes."""
        self._own.update(document_ids)
        self._woken.set()

    async def begin(self) -> None:
        """Follow from now on, if it is wanted and the memory is open."""
        if self._seen is None and self.is_wanted() and self._store.engine.is_open:
            await self._log_errors(self._begin)

    async def _begin(self) -> None:
        self._seen = await self._store.journal.last_number()
        self._looked_at = monotonic()
        self._begun.set()
        self._woken.set()

    async def run(self) -> None:
        """Work until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._send_hints)
            tasks.start_soon(self._listen)
            while True:
                with anyio.move_on_after(_POLL_SECONDS if self.is_wanted() else inf):
                    await self._woken.wait()
                self._woken = anyio.Event()
                if not self.is_wanted():
                    self._seen = None
                elif self._store.engine.is_open:
                    await self._log_errors(self._look)
                if not self._woken.is_set():
                    self._own.clear()

    async def _look(self) -> None:
        await self.begin()
        version = await self._store.engine.version()
        if version != self._version and self._seen is not None:
            self._indexing.note_change()
            await self._read_on(self._seen)
            self._version = version
        self._looked_at = monotonic()

    async def _read_on(self, seen: int) -> None:
        while entries := await self._store.journal.after(seen, _PAGE):
            for _, document_id, action in entries:
                self._on_change(document_id, action, document_id in self._own)
            seen = self._seen = entries[-1][0]
        # After a restore, entries with lower numbers follow.
        self._seen = min(seen, await self._store.journal.last_number())

    async def _send_hints(self) -> None:
        while True:
            await self._committed.wait()
            self._committed = anyio.Event()
            await self._log_errors(self._store.engine.send_hint)
            await anyio.sleep(_HINT_SECONDS)

    async def _listen(self) -> None:
        await self._begun.wait()
        delay, longest = _RECONNECT_SECONDS

        async def listen() -> None:
            await self._store.engine.listen(on_hint)

        def on_hint() -> None:
            nonlocal delay
            delay = _RECONNECT_SECONDS[0]
            self._woken.set()

        while True:
            await self._log_errors(listen)
            await anyio.sleep(delay)
            delay = min(2 * delay, longest)

    async def _log_errors(self, work: Callable[[], Awaitable[object]]) -> None:
        try:
            await work()
        except Exception as error:  # The next look, or the next query, finds it again.
            ours = isinstance(error, RagMemoryError)
            level = logging.INFO if ours else logging.ERROR
            logger.log(level, "Changes of other processes are noticed later: %s", error, exc_info=not ours)
