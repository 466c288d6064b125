"""How this program's own memory server is run: its command, its log, its life. What is asked of it stands in
`memory_client`.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ragchat import __version__
from ragchat.log import server_log
from ragmcp.settings import Settings

if TYPE_CHECKING:
    from ragmcp.supervisor import Supervised

CLIENT_NAME = "ragchat"
STDERR_FILE = "ragmemory.log"
TOOLSETS = "memory,documents"
# What may be sent again when the server died over it: reading changes nothing, and Inject is an upsert.
REPEATABLE = frozenset(
    {"Query", "Inject", "ListDocuments", "ShowDocument", "ListJournal", "MemoryStats", "VerifyMemory"}
)


def memory_path(settings: Settings) -> Path:
    """The memory's SQLite file, absolute."""
    named = settings.tables["memory"]["path"]
    return Path(named).expanduser().absolute() if named else settings.home.data / "memory.db"


def program(settings: Settings, config_file: Path | None, verbose: bool) -> list[str]:
    """`ragmemory` on this memory, with the settings of this run."""
    # -P: a file of the working folder must not stand in for a module of the server.
    words = [sys.executable, "-P", "-X", "utf8", "-m", "ragmemory", "--memory", str(memory_path(settings))]
    words += ["--config", str(config_file)] if config_file else []
    return [*words, "-v"] if verbose else words


def command(settings: Settings, config_file: Path | None, verbose: bool) -> list[str]:
    return [*program(settings, config_file, verbose), "--toolsets", TOOLSETS]


def supervised(settings: Settings, config_file: Path | None, *, verbose: bool) -> Supervised:
    """The server: entered, it starts in the background, and again when it dies."""
    from ragmcp.supervisor import Supervised
    from ragmcp.transports.stdio import open_stdio

    start = partial(
        open_stdio,
        command(settings, config_file, verbose),
        stderr=server_log(settings.home.state / STDERR_FILE),
        message_bytes=settings.tables["limits"]["message_bytes"],
        era="modern",
        client_name=CLIENT_NAME,
        client_version=__version__,
    )
    return Supervised(start, repeatable=REPEATABLE)
