"""The block that adds this memory to another MCP host."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

from ragchat.servers.memory.running import MCP_PATH, endpoint
from ragcommon.hosts import TOKEN_VARIABLE, Host, reached, server_command, started
from ragconfig.home import HOME_VARIABLE, user_path
from ragconfig.settings import Settings


def own(host: Host, settings: Settings, *, repository: bool = False) -> dict[str, Any]:
    """The block for this memory: the host starts its own server, or uses the one that the settings name.

    Raises SettingsError.
    """
    server = settings.tables["memory_server"]
    if server["url"] and not repository:
        token = bool(os.environ.get(TOKEN_VARIABLE))
        return running(host, endpoint(settings), server["token_file"], token=token)
    which = ["--repository"] if repository else ["--memory", settings.memory_place]
    command = [*server_command(), *which]
    if settings.config_file is not None:
        command += ["--config", str(settings.config_file)]
    # A host does not start its servers from the user's shell, so the block must set the variable.
    home = os.environ.get(HOME_VARIABLE)
    environ = {HOME_VARIABLE: str(user_path(home))} if home else {}
    return started(host, command, environ, in_open_folder=repository)


def running(host: Host, url: str, token_file: str, *, token: bool = False) -> dict[str, Any]:
    """The block for a server that runs; `url` may be its root. `token`: whether it needs one."""
    parts = urlsplit(url)
    address = url if parts.path not in ("", "/") else parts._replace(path=MCP_PATH).geturl()
    path = str(user_path(token_file)) if token_file else ""
    return reached(host, address, server_command(), token=token or bool(path), token_file=path)
