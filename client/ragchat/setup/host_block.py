"""The block that adds this memory to another MCP host."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ragcommon.hosts import Host, server_command, started
from ragconfig.home import HOME_VARIABLE, user_path
from ragconfig.settings import Settings


def own(
    host: Host, settings: Settings, config_file: Path | None, *, repository: bool = False
) -> dict[str, Any]:
    """The block for a host that starts its own server on this memory."""
    which = ["--repository"] if repository else ["--memory", settings.memory_place]
    command = [*server_command(), *which]
    if config_file is not None:
        command += ["--config", str(config_file)]
    # A host does not start its servers from the user's shell, so the block must set the variable.
    home = os.environ.get(HOME_VARIABLE)
    environ = {HOME_VARIABLE: str(user_path(home))} if home else {}
    return started(host, command, environ, in_open_folder=repository)
