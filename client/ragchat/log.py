"""The log files. Tracebacks are logged, and never printed on the screen."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

from ragchat.formatting import local, utc_now
from ragcommon.files.safe_open import NotARegularFile
from ragcommon.files.writing import private_folder
from ragconfig.redaction import RedactingFormatter

LOG_FILE = "ragchat.log"
LOG_BYTES = 1 << 20  # a larger log is rotated
STARTED = "--- started"  # the beginning of a line between two starts of a server
LOG_TAIL_BYTES = 1 << 16  # how much of the end of a server's log is read
LAST_LINE_BYTES = 1 << 12  # the same for its last line


def start_log(folder: Path, *, verbose: bool) -> Path | None:
    """Log to a file in `folder`. None if it cannot be written: a full disk must not stop an answer."""
    # Otherwise every line that cannot be logged would print a traceback on the screen.
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


class ServerLog:
    """The file that a server's process writes to: `path`, or the null device if it cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            private_folder(path.parent)
            prepare(path)
        except OSError:
            self.path = Path(os.devnull)

    def writer(self) -> int:
        """A descriptor for the server."""
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def begin(self) -> None:
        """Mark where the output of this start of the server begins."""
        with suppress(OSError), self.path.open("a", encoding="utf-8") as file:
            file.write(f"\n{STARTED} {local(utc_now())} ---\n")

    async def last_line(self) -> str:
        """The last line with a letter or digit since the last start of the server, or ""."""
        with suppress(OSError), self.path.open("rb") as log:
            log.seek(max(0, self.path.stat().st_size - LAST_LINE_BYTES))
            lines = log.read().decode(errors="replace").split("\n")
            own = takewhile(lambda line: not line.startswith(STARTED), reversed(lines))
            # Docker prints how to get help after the error itself.
            said = (line for line in own if "--help" not in line)
            # Python draws a frame of `|`, `+` and `-` around the exceptions of a group.
            return next((line.strip(" |\t\r") for line in said if any(map(str.isalnum, line))), "")
        return ""


def prepare(log: Path) -> None:
    """Rotate a long log and create a missing one, readable by its owner only. Raises OSError."""
    # It does not exist yet, or another program on Windows holds it open.
    with suppress(OSError):
        if log.stat().st_size > LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
    log.touch(mode=0o600)
    if not log.is_file():  # Opening a FIFO would wait for a reader.
        raise NotARegularFile(log)
