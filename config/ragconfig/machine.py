"""The name of this machine in a memory that several machines share."""

from __future__ import annotations

import logging
import os
import re
import secrets
import socket
from contextlib import suppress
from pathlib import Path

from ragcommon.files.folder import Folder
from ragcommon.files.writing import private_folder, write_temporary
from ragconfig.home import Home

logger = logging.getLogger(__name__)

FILE = "machine"
_MAX_CHARACTERS = 40


def machine_name(home: Home) -> str:
    """The host's name and random digits, such as "annes-laptop-3f9a12c4".

    It is made at the first use and kept in the state folder, so that it stays when the host is renamed. If it
    cannot be kept there, it is another one in each process, which then removes nothing that others loaded.
    """
    host = re.sub(r"[^a-z0-9]+", "-", socket.gethostname().partition(".")[0].lower()).strip("-")
    name = f"{host[:_MAX_CHARACTERS] or 'machine'}-{secrets.token_hex(4)}"
    path = home.state / FILE
    try:
        if not path.exists():
            with Folder(private_folder(home.state).resolve()) as folder:
                temporary = write_temporary(folder, FILE, name.encode())
                try:
                    # A link fails if another process was first: all of them read the same name.
                    with suppress(FileExistsError):
                        _link(folder.path / temporary, path)
                finally:
                    folder.remove(temporary)
        return path.read_text(encoding="utf-8").strip() or name
    except OSError as error:
        logger.warning("The name of this machine is not kept in %s: %s", path, error)
        return name


def _link(made: Path, path: Path) -> None:
    """Make `path` a hard link to the file `made`, or a copy of it. Raises FileExistsError, OSError."""
    try:
        os.link(made, path)
    except FileExistsError:
        raise
    except OSError:  # Some file systems have no hard links.
        with path.open("xb") as file:
            file.write(made.read_bytes())
