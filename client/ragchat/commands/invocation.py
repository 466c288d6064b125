"""One invocation of the program: what its commands get."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from ragchat.console import Console, describe
from ragchat.errors import EmptyQuestion
from ragchat.servers.managed import ServerState

if TYPE_CHECKING:
    from ragchat.conversation import Conversation, SaveMode
    from ragchat.memory.client import MemoryClient
    from ragchat.servers.manager import ServerManager
    from ragchat.sessions.store import SessionStore
    from ragchat.turn.events import Event
    from ragconfig.home import Home
    from ragconfig.settings import Settings
    from ragmcp.client.features import OnProgress


@dataclass
class Invocation:
    """Arguments, console and settings of one run of the program.

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

        return load_settings(self.config_file, self._flags(), verbose=self.arguments.verbose)

    @property
    def config_file(self) -> Path | None:
        """Raises UnknownHome."""
        from ragconfig.home import user_path

        return user_path(self.arguments.config) if self.arguments.config else None

    @property
    def names_memory(self) -> bool:
        """Whether an option names the memory."""
        return bool(self.arguments.memory or self.arguments.server)

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
        from ragchat.commands.stdin import read_stdin

        text = read_stdin() if words == ["-"] else " ".join(words)
        if not text.strip():
            raise EmptyQuestion
        return text

    def use_own_memory(self, paths: Sequence[str]) -> None:
        """Load a whole repository into its own memory, which is made if need be. Raises SettingsError."""
        from ragchat.servers.memory.repository import with_own_memory

        before = self.settings.memory_path
        self.settings, made = with_own_memory(self.settings, paths)
        if made:
            self.console.note(made)
        own = self.settings.memory_path
        root = own.parent.parent
        if own != before and not Path.cwd().is_relative_to(root):
            self.console.note(
                f"Only questions in {root} use this repository's memory; "
                f"elsewhere `ragchat --memory {quote(str(own))}` does."
            )

    @property
    def can_ask(self) -> bool:
        """Whether the user can be asked something. With --json the caller is a program."""
        return not self.console.json and sys.stdin.isatty() and self.console.stderr.isatty()

    @asynccontextmanager
    async def memory(self, *, pages: bool = False) -> AsyncIterator[MemoryClient]:
        """The memory; `pages`: also to load web pages, with --allow-private those of private networks."""
        from ragchat.servers.memory.server import open_memory

        reach = "private" if getattr(self.arguments, "allow_private", False) else "public"
        with self.noting_a_missing_memory():
            async with open_memory(self.settings, pages=reach if pages else "") as memory:
                yield memory

    @contextmanager
    def noting_a_missing_memory(self) -> Iterator[None]:
        """Say at the end that the memory that the user named does not exist: its name may be mistyped."""
        try:
            yield
        finally:
            settings = self.settings
            if settings.names_memory and settings.has_memory_file:
                from ragcommon.sqlite.readonly import may_read
                from ragcommon.sqlite.wal import identity

                if identity(settings.memory_path) is None and may_read(settings.memory_path):
                    self.console.note(f"There is no memory at {settings.memory_path} yet.")

    def sessions(self) -> SessionStore:
        from ragchat.sessions.store import SessionStore, sessions_path

        return SessionStore(sessions_path(self.settings))

    @asynccontextmanager
    async def conversation(self, save_mode: SaveMode | None = None) -> AsyncIterator[Conversation]:
        """The conversation, with memory and the other servers, in a new session or the one to continue.

        Raises RagChatError.
        """
        from ragchat.conversation import Conversation
        from ragchat.errors import NotInNotebook
        from ragchat.notebooks.definitions import folder_of, load

        arguments, settings = self.arguments, self.settings
        notebook = load(folder_of(settings), arguments.notebook) if arguments.notebook else None
        with self.noting_a_missing_memory():
            async with self.servers(only_memory=arguments.no_tools) as servers:
                memory = await servers.open_memory(settings)
                async with Conversation(
                    settings,
                    memory,
                    servers,
                    notebook=notebook,
                    trust_read_only_hints=arguments.yes_read_only,
                ) as conversation:
                    if save_mode is not None:
                        conversation.save_mode = save_mode
                    if arguments.role:
                        conversation.use_role(arguments.role)
                    if arguments.session or arguments.resume:
                        session = await conversation.resume(arguments.session)
                        if notebook is not None and session.notebook != notebook.name:
                            raise NotInNotebook(session.session_id, notebook.name)
                    if arguments.scope:
                        await conversation.scope.narrow(arguments.scope)
                    yield conversation

    def progress(self, label: str, *, shown: bool = True) -> AbstractContextManager[OnProgress | None]:
        """A bar for a call of the memory server, not with --json. None if it cannot be drawn."""
        from ragchat.ui.render.progress import counting_bar

        return counting_bar(self.console.stderr, label, shown=shown and not self.console.json)

    def note_event(self, event: Event) -> None:
        """Print a notice of a turn on stderr; other events are not shown."""
        from ragchat.turn.events import Notice

        if isinstance(event, Notice):
            self.console.note(event.text)

    def note_servers(self, servers: ServerManager) -> None:
        """Say on stderr which of the other servers a model could not use."""

        for server in servers.connections.values():
            if server.state in (ServerState.STARTING, ServerState.LOGIN, ServerState.FAILED):
                why = describe(server.failure).message if server.failure else "It is still starting."
                self.console.note(f"The server {server.name} cannot be used. {why}")

    def servers(self, *, only_memory: bool) -> ServerManager:
        from ragchat.servers.manager import ServerManager

        return ServerManager(self.settings, only_memory=only_memory)
