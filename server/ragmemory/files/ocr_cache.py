"""The text of scanned pages that were read, in an SQLite file: a load that was killed continues where it was.

It is a cache: if the file is missing, damaged or not writable, the pages are read again.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from ragcommon.files.writing import PRIVATE, private_folder
from ragmemory.files.formats.scans import Recognised

T = TypeVar("T")

# About 15,000 pages.
MAX_BYTES = 64 << 20
BUSY_SECONDS = 2.0
TABLE = """CREATE TABLE IF NOT EXISTS pages (
    key TEXT PRIMARY KEY, text TEXT NOT NULL, confidence REAL NOT NULL, covered REAL NOT NULL) STRICT"""
SIZE = """SELECT (page_count - freelist_count) * page_size
    FROM pragma_page_count, pragma_freelist_count, pragma_page_size"""
# A quarter at a time.
DROP_OLDEST = """DELETE FROM pages WHERE rowid < (
    SELECT rowid FROM pages ORDER BY rowid LIMIT 1 OFFSET (SELECT count(*) / 4 FROM pages))"""
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

logger = logging.getLogger(__name__)


class OcrCache:
    """Several processes may use the file at once. No method raises an error."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def find(self, reader: str, keys: Iterable[str]) -> dict[str, Recognised]:
        """The pages, by key, that are known from `reader`: a program, its version and its languages."""

        def found(db: sqlite3.Connection) -> dict[str, Recognised]:
            select = "SELECT text, confidence, '', covered FROM pages WHERE key = ?"
            rows = {key: db.execute(select, (f"{reader} {key}",)).fetchone() for key in keys}
            return {key: Recognised(*row) for key, row in rows.items() if row}

        return self._do(found) or {}

    def add(self, reader: str, key: str, page: Recognised) -> None:
        def added(db: sqlite3.Connection) -> None:
            row = f"{reader} {key}", page.text, page.confidence, page.covered
            db.execute("INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?)", row)
            if db.execute(SIZE).fetchone()[0] > MAX_BYTES:
                db.execute(DROP_OLDEST)

        self._do(added)

    def _do(self, action: Callable[[sqlite3.Connection], T]) -> T | None:
        """What `action` returns; None if the file cannot be used."""
        try:
            private_folder(self._path.parent)
            self._path.touch(PRIVATE)
            with closing(sqlite3.connect(self._path, timeout=BUSY_SECONDS)) as db, db:
                db.execute(TABLE)
                return action(db)
        except (sqlite3.Error, OSError) as error:
            logger.info("%s is not used: %s", self._path, error)
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGED:
                with suppress(OSError):
                    self._path.unlink()
            return None
