"""The log files. Tracebacks are logged, and never printed on the screen."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path

from ragconfig.home import private_folder
from ragconfig.redaction import RedactingFormatter

LOG_FILE = "ragchat.log"
LOG_BYTES = 1 << 20  # a larger log is rotated
LOG_TAIL_BYTES = 1 << 16  # how much of the end of a server's log is read


def start_log(folder: Path, *, verbose: bool) -> Path | None:
    """Log to a file in `folder`. None if it cannot be written: a full disk must not stop an answer."""
    # Else every line that cannot be logged would print a traceback on the screen.
    logging.raiseExceptions = False
    path = folder / LOG_FILE
    try:
        private_folder(folder)
        prepare(path)
        # Not logging.handlers.RotatingFileHandler: importing it delays the prompt by 10 ms.
        handler = logging.FileHandler(path, encoding="utf-8")
    except OSError:
        logging.getLogger().addHandler(logging.NullHandler())
        return None
    handler.setFormatter(RedactingFormatter("%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    # Only our loggers: at this level the openai package logs requests with their headers.
    for name in ("ragchat", "ragmcp"):
        logging.getLogger(name).setLevel(logging.DEBUG if verbose else logging.INFO)
    return path


def server_log(path: Path) -> Path:
    """The file for a server's log: `path`, or the null device if it cannot be written."""
    try:
        private_folder(path.parent)
        prepare(path)
    except OSError:
        return Path(os.devnull)
    return path


def prepare(log: Path) -> None:
    """Rotate a long log and create a missing one, readable by its owner only. Raises OSError."""
    # It does not exist yet, or another program on Windows holds it open.
    with suppress(OSError):
        if log.stat().st_size > LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
    log.touch(mode=0o600)
