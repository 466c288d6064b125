"""A memory for scripts: `async with Memory("notes.db") as memory`. Programs may have the file open too."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self

import anyio

from ragcommon.contract.documents import Injected
from ragcommon.contract.history import Origin
from ragcommon.contract.search import QueryResult
from ragcommon.errors import leaf
from ragconfig.settings import load_settings
from ragmcp.concurrency import require_asyncio
from ragmemory.app import make_service
from ragmemory.errors import BadArgument, MemoryUnusable
from ragmemory.stores.values import check_unicode

_NOT_OPEN = "it is only open in `async with Memory(…)`"
_OTHER_LOOP = "it is open in another event loop; call it there with `asyncio.run_coroutine_threadsafe`"


class Memory:
    """A memory in one file: an async context manager. Its methods raise RagMemoryErrors.

    It runs on asyncio; opening it under trio raises AsyncioRequired of `ragmcp`. A cancelled `inject` may
    have stored its document.
    """

    def __init__(
        self, path: str | Path, *, read_only: bool = False, config: str | Path | None = None
    ) -> None:
        """`path` is the SQLite file, created at the first write if it is missing, or a `postgresql://` URL.

        Raises BadArgument, SettingsError.

        Everything else comes from the settings of `ragmemory`; `config` replaces the user's file.
        """
        _check("path", path, (str, Path), "str or Path")
        _check("config", config, (str, Path), "str or Path", optional=True)
        if not str(path):  # It would stand for the user's own memory.
            raise BadArgument("path", "is empty")
        if str(path) == ":memory:":  # In SQLite this is a database without a file.
            raise BadArgument("path", "is ':memory:', but a memory is a file; take one in a temporary folder")
        flags = {"memory.path": str(path), "memory.read_only": read_only or None}
        self.service = make_service(load_settings(None if config is None else Path(config), flags))
        """The full service, for everything beyond the methods here."""
        # A worker process would import the script, and so run it again if it does not test `__name__`.
        self.service.writer.preparation.worker = None
        self._serving: asyncio.Task[None] | None = None
        self._opened, self._closing = asyncio.Event(), asyncio.Event()

    async def __aenter__(self) -> Self:
        require_asyncio()
        if self._serving is not None:
            raise self._unusable("it can be opened only once: make another Memory")
        # The service lives in a task of its own: it can be opened in one cell of a notebook, which is a task,
        # and closed in another.
        self._serving = asyncio.create_task(self._serve())
        try:
            await self._opened.wait()
        except BaseException:
            await self.__aexit__()
            raise
        if self._serving.done():
            self._serving.result()
        return self

    async def _serve(self) -> None:
        try:
            async with self.service:
                self._opened.set()
                await self._closing.wait()
        finally:
            self._opened.set()

    async def __aexit__(self, *_: object) -> None:
        if self._serving is None:
            raise self._unusable(_NOT_OPEN)
        self._check_loop(self._serving)
        self._closing.set()
        # `await self._serving` would cancel the closing, too, when this task is cancelled.
        if not self._serving.done():  # It is done if its event loop has ended.
            with anyio.CancelScope(shield=True):
                await asyncio.wait([self._serving])
        if not self._serving.cancelled():
            self._serving.result()

    async def inject(self, text: str, metadata: Mapping[str, Any] | None = None) -> Injected:
        """Store a document, Markdown or plain text; returns when it is on the disk.

        `metadata` may have `uri`, which makes it an upsert of that document, `title`, `tags` (a list),
        `created_at` (ISO 8601), and any other keys with JSON values, which `filter` can name.
        """
        self._check_opened()
        _check("text", text, str, "str")
        _check("metadata", metadata, Mapping, "dict", optional=True)
        return await self.service.writer.inject(text, dict(metadata or {}), Origin())

    async def query(
        self, text: str, top_k: int = 8, filter: Mapping[str, Any] | None = None, min_score: float = 0.0
    ) -> QueryResult:
        """The best `top_k` passages, best first; scores are in [0, 1].

        At most the candidates that words and vectors yield are ranked (`ranking.candidates` each).
        `filter` has `uri` (a glob), `tags`, `created_after`, `created_before`, or other keys of the metadata.
        """
        self._check_opened()
        _check("text", text, str, "str")
        check_unicode("text", text)
        _check("top_k", top_k, Integral, "int")
        _check("filter", filter, Mapping, "dict", optional=True)
        _check("min_score", min_score, Real, "float")
        if top_k < 1:
            raise BadArgument("top_k", f"is {top_k}, which is less than 1")
        if not 0 <= min_score <= 1:
            raise BadArgument("min_score", f"is {min_score}, which is not from 0 to 1")
        return await self.service.search.query(text, top_k, dict(filter or {}), min_score)

    def _check_opened(self) -> None:
        if self._serving is None or not self._opened.is_set():
            raise self._unusable(_NOT_OPEN)
        if self._serving.done() and not self._serving.cancelled() and (error := self._serving.exception()):
            cause = leaf(error)
            raise self._unusable(f"it was closed by an error, {cause!r}") from cause
        self._check_loop(self._serving)

    def _check_loop(self, serving: asyncio.Task[None]) -> None:
        """A lock that two event loops share would leave one of them waiting for ever."""
        if not serving.done() and serving.get_loop() is not asyncio.get_running_loop():
            raise self._unusable(_OTHER_LOOP)

    def _unusable(self, reason: str) -> MemoryUnusable:
        return MemoryUnusable(self.service.engine.place, reason, hint="")


def _check(
    name: str, value: object, kind: type | tuple[type, ...], called: str, *, optional: bool = False
) -> None:
    """Scripts have no type checker to tell them. `called` names the kind. Raises BadArgument."""
    if not isinstance(value, kind) and not (optional and value is None):
        expected = called + (" or None" if optional else "")
        raise BadArgument(name, f"must be of type {expected}, not {type(value).__name__}")
