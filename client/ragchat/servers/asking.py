"""Requests of servers to the user (elicitation, sampling) and to the program (roots, logging)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import msgspec
from msgspec import UNSET

from ragchat.log import prepare
from ragchat.servers.clock import Clock
from ragconfig.repository import is_repository
from ragmcp.client.handlers import Handlers
from ragmcp.protocol.schema.input import Elicit, ElicitResult, Root, Sample, SamplingResult
from ragmcp.protocol.schema.logging import LogMessage

log = logging.getLogger(__name__)

CANCELLED, DECLINED = ElicitResult(action="cancel"), ElicitResult(action="decline")

R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True)
class User:
    """Ways to ask the user; the first argument is the server. `elicit` and `sample` raise InputDeclined.

    `visit` shows a page, waits until the user or the server (by the event) reports that it is done, and
    returns whether the user visited it. `show_progress` shows a line about a running call.
    """

    elicit: Callable[[str, Elicit], Awaitable[ElicitResult]]
    visit: Callable[[str, Elicit, anyio.Event], Awaitable[bool]]
    sample: Callable[[str, Sample], Awaitable[SamplingResult]]
    show_progress: Callable[[str], None]


def make_handlers(
    server: str, user: User | None, clock: Clock, on_visited: Callable[[str], None], log_file: Path
) -> Handlers:
    """The handlers for requests of `server`: roots, and with a `user` also elicitation and sampling.

    `clock` pauses while the user is prompted.
    """

    async def asked(ask: Callable[[str, R], Awaitable[T]], request: R) -> T:
        with clock.stopped():
            return await ask(server, request)

    return Handlers(
        elicit=partial(asked, user.elicit) if user else None,
        sample=partial(asked, user.sample) if user else None,
        list_roots=list_roots,
        on_log=_MessageLog(log_file).add,
        on_visited=on_visited,
    )


async def list_roots() -> Sequence[Root]:
    """The root of the repository of the working folder, else that folder; none if it was deleted."""
    with suppress(OSError):
        folder = Path.cwd()
        root = next(filter(is_repository, (folder, *folder.parents)), folder)
        return [Root(uri=root.as_uri(), name=root.name or UNSET)]
    return []


class _MessageLog:
    """Appends log messages of a server to the file that also has its stderr."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lines: list[str] = []

    def add(self, message: LogMessage) -> None:
        """Add a message. Messages of one turn of the event loop are written together."""
        text = message.data if isinstance(message.data, str) else msgspec.json.encode(message.data).decode()
        logger = "" if message.logger is UNSET else f" {message.logger}"
        if not self._lines:
            asyncio.get_running_loop().call_soon(self._write)
        self._lines.append(f"{message.level}{logger}: {text}\n")

    def _write(self) -> None:
        lines, self._lines = self._lines, []
        try:
            prepare(self._file)
            with self._file.open("a", encoding="utf-8") as file:
                file.writelines(lines)
        except OSError as error:
            log.info("%d messages of a server are lost: %s", len(lines), error)
