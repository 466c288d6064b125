"""The log file: where tracebacks go, so that none is ever on the screen."""

from __future__ import annotations

import logging
from logging.handlers import RotatingFileHandler
from pathlib import Path

from ragmcp.settings import private_folder

LOG_FILE = "ragchat.log"
LOG_BYTES = 1 << 20


def start_log(folder: Path, *, verbose: bool) -> Path | None:
    """Log to `folder`; None where it cannot be written, for a full disk must not stop an answer."""
    path = folder / LOG_FILE
    try:
        private_folder(folder)
        handler = RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8")
    except OSError:
        logging.getLogger().addHandler(logging.NullHandler())
        return None
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    # Ours alone: at this level, packages that talk to a model log what is sent, and with which headers.
    for name in ("ragchat", "ragmcp"):
        logging.getLogger(name).setLevel(logging.DEBUG if verbose else logging.INFO)
    return path
