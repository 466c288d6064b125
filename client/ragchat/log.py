"""The log files: where tracebacks go, so that none is ever on the screen."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path

from ragconfig.home import private_folder
from ragconfig.redaction import DiscreetFormatter

LOG_FILE = "ragchat.log"
LOG_BYTES = 1 << 20  # a log above this is begun anew


def start_log(folder: Path, *, verbose: bool) -> Path | None:
    """Log to `folder`; None where it cannot be written, for a full disk must not stop an answer."""
    # What cannot be logged is lost; else every failed line would be a traceback on the screen.
    logging.raiseExceptions = False
    path = folder / LOG_FILE
    try:
        private_folder(folder)
        prepare(path)
        # logging.handlers could do this by itself, but takes 10 ms to import on the way to the prompt.
        handler = logging.FileHandler(path, encoding="utf-8")
    except OSError:
        logging.getLogger().addHandler(logging.NullHandler())
        return None
    handler.setFormatter(DiscreetFormatter("%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    # Ours alone: at this level, packages that talk to a model log what is sent, and with which headers.
    for name in ("ragchat", "ragmcp"):
        logging.getLogger(name).setLevel(logging.DEBUG if verbose else logging.INFO)
    return path


def server_log(path: Path) -> Path:
    """Where a server's log is written: `path`, or nowhere if that cannot be written."""
    try:
        private_folder(path.parent)
        prepare(path)
    except OSError:
        return Path(os.devnull)
    return path


def prepare(log: Path) -> None:
    """Put a long log aside, in place of the one before; a new one is its owner's alone. Raises OSError."""
    # Not there yet, or held open by another program on Windows.
    with suppress(OSError):
        if log.stat().st_size > LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
    log.touch(mode=0o600)
