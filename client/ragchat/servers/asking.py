"""What servers ask of the user, and of the program in the user's place."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import TypeVar

import anyio
import msgspec
from msgspec import UNSET

from ragchat.log import prepare
from ragconfig.repository import is_repository
from ragmcp.client.handlers import Handlers
from ragmcp.protocol.schema.input import Elicit, ElicitResult, Root, Sample, SamplingResult
from ragmcp.protocol.schema.logging import LogMessage

log = logging.getLogger(__name__)

R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True)
class User:
    """Asks the user for a server, which is named first; both raise InputDeclined.

    `show_progress` gets a line about a call that takes long.
    """

    elicit: Callable[[str, Elicit], Awaitable[ElicitResult]]
    sample: Callable[[str, Sample], Awaitable[SamplingResult]]
    show_progress: Callable[[str], None]


class CallTimes:
    """The deadlines of one server's calls, which do not run while the server waits for the user."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._scopes: set[anyio.CancelScope] = set()
        self._questions = 0

    @contextmanager
    def limited(self) -> Iterator[anyio.CancelScope]:
        """Cancel the body after the time for one call."""
        with anyio.CancelScope(deadline=self._deadline()) as scope:
            self._scopes.add(scope)
            try:
                yield scope
            finally:
                self._scopes.discard(scope)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """While the body runs no call ends; afterwards each has its whole time again."""
        self._questions += 1
        self._set_deadlines()
        try:
            yield
        finally:
            self._questions -= 1
            self._set_deadlines()

    def _deadline(self) -> float:
        return inf if self._questions else anyio.current_time() + self._seconds

    def _set_deadlines(self) -> None:
        for scope in self._scopes:
            scope.deadline = self._deadline()


def make_handlers(
    server: str, user: User | None, stopped: Callable[[], AbstractContextManager[None]], log_file: Path
) -> Handlers:
    """What `server` may ask for: folders, and where there is a `user` to ask, answers and the model."""

    async def asked(ask: Callable[[str, R], Awaitable[T]], request: R) -> T:
        with stopped():
            return await ask(server, request)

    return Handlers(
        elicit=partial(asked, user.elicit) if user else None,
        sample=partial(asked, user.sample) if user else None,
        list_roots=list_roots,
        on_log=partial(_append, log_file),
    )


async def list_roots() -> Sequence[Root]:
    """The root of the repository that the working folder is in, else that folder; none if it was deleted."""
    with suppress(OSError):
        folder = Path.cwd()
        root = next(filter(is_repository, (folder, *folder.parents)), folder)
        return [Root(uri=root.as_uri(), name=root.name or UNSET)]
    return []


def _append(file: Path, message: LogMessage) -> None:
    """Add a message to the server's log, next to what its process writes to stderr."""
    text = message.data if isinstance(message.data, str) else msgspec.json.encode(message.data).decode()
    logger = "" if message.logger is UNSET else f" {message.logger}"
    try:
        prepare(file)
        with file.open("a", encoding="utf-8") as log_file:
            log_file.write(f"{message.level}{logger}: {text}\n")
    except OSError as error:
        log.info("A message of a server is lost: %s", error)
