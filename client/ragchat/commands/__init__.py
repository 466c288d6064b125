"""The commands, one module for each group.

A command is a function or coroutine `(run: Run) -> exit code`. It prints through `run.console`.
"""

from __future__ import annotations

import argparse
import logging
import os
import select
import signal
import stat
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ragchat.console import Console

if TYPE_CHECKING:
    from io import BufferedReader

    from ragchat.conversation import Conversation
    from ragchat.memory.client import MemoryClient
    from ragchat.servers.manager import ServerManager
    from ragconfig.home import Home
    from ragconfig.settings import Settings


@dataclass
class Run:
    """One run of the program: its arguments, console and settings.

    `overrides` are settings of the command itself; the flags of the command line override them.
    """

    arguments: argparse.Namespace
    console: Console
    overrides: Mapping[str, Any] = field(default_factory=dict)
    log_file: Path | None = field(default=None, init=False)

    def start_log(self) -> None:
        """Open the log. Must be called first, so that tracebacks are logged."""
        from ragchat.log import start_log

        self.log_file = start_log(self.home.state, verbose=self.arguments.verbose)

    @cached_property
    def home(self) -> Home:
        from ragconfig.home import Home

        return Home.find()

    @cached_property
    def settings(self) -> Settings:
        """Every layer, the command line last. Raises SettingsError."""
        from ragconfig.settings import load_settings

        return load_settings(self.config_file, self._flags())

    @property
    def config_file(self) -> Path | None:
        """Raises UnknownHome."""
        from ragconfig.home import user_path

        return user_path(self.arguments.config) if self.arguments.config else None

    def _flags(self) -> dict[str, Any]:
        arguments = self.arguments
        given = {
            "memory.path": arguments.memory,
            "memory_server.url": "" if arguments.memory else arguments.server,
            "model.name": "offline" if arguments.offline else arguments.model,
            "retrieval.top_k": arguments.top_k,
            "tools.offered": [] if arguments.no_tools else None,
        }
        return {**self.overrides, **{key: value for key, value in given.items() if value is not None}}

    def log(self, error: BaseException) -> None:
        """Log the traceback of a failed run."""
        logging.getLogger("ragchat").error("the command failed", exc_info=error)

    def report(self, error: BaseException) -> None:
        """Log the traceback of a failed run and print its sentence."""
        self.log(error)
        self.console.error(error, self.log_file)

    def words(self, words: list[str]) -> str:
        """The words of the command line as one text; a single `-` means all of stdin.

        Raises EmptyQuestion, StdinUnusable.
        """
        from ragchat.errors import EmptyQuestion

        text = read_stdin() if words == ["-"] else " ".join(words)
        if not text.strip():
            raise EmptyQuestion
        return text

    def use_own_memory(self, paths: Sequence[str]) -> None:
        """Load a whole repository into its own memory, which is made if need be. Raises SettingsError."""
        from ragchat.memory.repository import with_own_memory

        self.settings, made = with_own_memory(self.settings, paths)
        if made:
            self.console.note(made)

    def memory(self) -> AbstractAsyncContextManager[MemoryClient]:
        from ragchat.memory.client import open_memory

        return open_memory(self.settings, self.config_file, verbose=self.arguments.verbose)

    @asynccontextmanager
    async def conversation(self) -> AsyncIterator[Conversation]:
        """The conversation, with memory, the other servers and a new session."""
        from ragchat.conversation import Conversation

        arguments, settings = self.arguments, self.settings
        async with self.servers(only_memory=arguments.no_tools) as servers:
            memory = await servers.open_memory(settings)
            async with Conversation(
                settings, memory, servers, trust_read_only_hints=arguments.yes_read_only
            ) as conversation:
                if arguments.scope:
                    await conversation.scope.narrow(arguments.scope)
                yield conversation

    def note_servers(self, servers: ServerManager) -> None:
        """Say on stderr which of the other servers a model could not use."""
        from ragchat.console import describe
        from ragchat.servers.managed import ServerState

        for server in servers.connections.values():
            if server.state in (ServerState.STARTING, ServerState.LOGIN, ServerState.FAILED):
                why = describe(server.failure).message if server.failure else "It is still starting."
                self.console.note(f"The server {server.name} cannot be used. {why}")

    def servers(self, *, only_memory: bool) -> ServerManager:
        from ragchat.servers.manager import ServerManager

        return ServerManager(
            self.settings, self.config_file, verbose=self.arguments.verbose, only_memory=only_memory
        )


_PART_BYTES = 2**16
# Some programs leave the stdin of what they start open and write nothing to it.
_FIRST_BYTE_SECONDS = 3.0


def read_stdin(*, may_be_empty: bool = False) -> str:
    """All of stdin as text, decoded like a file. Raises StdinUnusable."""
    from ragchat.errors import StdinUnusable
    from ragcommon.files.decoding import LARGEST_BYTES, EmptyText, NotText, decode

    data = _stdin(LARGEST_BYTES + 1)
    if len(data) > LARGEST_BYTES:
        raise StdinUnusable(f"is larger than {LARGEST_BYTES:,} bytes")
    try:
        return decode(data)[0]
    except NotText as error:
        if may_be_empty and isinstance(error, EmptyText):
            return ""
        raise StdinUnusable(str(error)) from None


def piped_text() -> str:
    """The text on stdin, "" if stdin is neither a pipe nor a file, or a pipe without anything in it.

    Of a file whose beginning was read by another program, such as the shell in `while read`, nothing is read.
    Raises StdinUnusable.
    """
    mode = os.fstat(sys.stdin.fileno()).st_mode
    is_pipe = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    if not (is_pipe or stat.S_ISREG(mode)):
        return ""
    if not is_pipe and os.lseek(sys.stdin.fileno(), 0, os.SEEK_CUR):
        return ""
    if is_pipe and os.name == "posix":  # elsewhere, only sockets can be waited for
        with _interruptible():
            ready, _, _ = select.select([sys.stdin], [], [], _FIRST_BYTE_SECONDS)
        if not ready:
            return ""
    return read_stdin(may_be_empty=True)


def ask_user(question: str) -> str:
    """What the user types in answer to a question on stderr."""
    sys.stderr.write(question)
    sys.stderr.flush()
    with _interruptible():
        return sys.stdin.readline().strip()


async def read_line(question: str) -> str | None:
    """As `ask_user`, while the event loop goes on, until cancelled; None at the end of stdin."""
    import threading

    import anyio
    from anyio import from_thread, lowlevel

    sys.stderr.write(question)
    sys.stderr.flush()
    token, arrived, line = lowlevel.current_token(), anyio.Event(), b""

    def read() -> None:
        nonlocal line
        # Not `readline`: it holds a lock without which the program could not end.
        line = os.read(sys.stdin.fileno(), _PART_BYTES)
        from_thread.run_sync(arrived.set, token=token)

    threading.Thread(target=read, daemon=True).start()
    await arrived.wait()
    return line.decode(errors="replace").strip() if line else None


def _stdin(most: int) -> bytes:
    """Up to `most` bytes."""
    data, stdin = bytearray(), cast("BufferedReader", sys.stdin.buffer)
    with _interruptible():
        # In parts: one `read` of all would run no handler for a signal that comes between two parts.
        while part := stdin.read1(min(_PART_BYTES, most - len(data))):
            data += part
    return bytes(data)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C interrupt a read of stdin, which blocks the event loop and its own handler."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
