"""Reading SQLite files that cannot be opened in the usual way; the disks themselves stand in tests/faults."""

from __future__ import annotations

import errno
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ragcommon.sqlite.readonly import Readable, may_write, obstacle_in_words, obstacle_of, readable


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """In WAL mode, closed, with one row."""
    path = tmp_path / "a ?#%.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t(x)")
        connection.execute("INSERT INTO t VALUES(1)")
        connection.execute("PRAGMA user_version = 3")
    return path


@pytest.fixture
def no_shm(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite cannot make the -shm, as on a read-only disk."""
    forbid_shm(file, monkeypatch)


def forbid_shm(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(f"{file}-shm").symlink_to("nowhere/shm")
    monkeypatch.setattr("ragcommon.sqlite.readonly.may_write", lambda _: False)


def rows(way: Readable) -> list[tuple[int]]:
    with closing(sqlite3.connect(way.uri, uri=True)) as connection:
        return connection.execute("SELECT x FROM t ORDER BY x").fetchall()


def test_a_file_that_sqlite_can_open_is_read_where_it_is_and_seen_to_change(file: Path) -> None:
    with closing(readable(file, 3)) as way:
        assert (way.is_private, rows(way)) == (False, [(1,)])
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("INSERT INTO t VALUES(2)")
        assert (way.is_outdated(), rows(way)) == (False, [(1,), (2,)])


def test_a_file_that_is_not_there_is_an_empty_database_until_it_is(file: Path) -> None:
    shutil.copyfile(file, moved := file.with_name("moved.db"))
    file.unlink()
    with closing(readable(file, 3)) as way, closing(sqlite3.connect(way.uri, uri=True)) as connection:
        assert way.is_private
        assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchall() == [(0,)]
        assert not way.is_outdated()
        moved.rename(file)
        assert way.is_outdated()
    assert not list(file.parent.glob("file*"))


@pytest.mark.usefixtures("no_shm")
def test_without_a_shm_the_file_is_read_as_it_stands_and_is_outdated_by_a_write(file: Path) -> None:
    with closing(readable(file, 3)) as way:
        assert "immutable=1" in way.uri
        assert (way.is_private, way.is_outdated(), rows(way)) == (False, False, [(1,)])
        with file.open("ab") as other:
            other.write(bytes(4096))
        assert way.is_outdated()


def test_a_wal_that_cannot_be_read_where_it_is_is_read_from_a_copy(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(copies))
    killed = tmp_path / "killed.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("INSERT INTO t VALUES(2)")
        connection.commit()
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{file}{suffix}", f"{killed}{suffix}")
    forbid_shm(killed, monkeypatch)
    with closing(readable(killed, 3)) as way:
        assert (way.is_private, rows(way)) == (True, [(1,), (2,)])
        assert list(copies.iterdir()) != []
        assert not way.is_outdated()
        Path(f"{killed}-wal").unlink()
        assert way.is_outdated()
    assert list(copies.iterdir()) == []


def test_a_file_of_an_earlier_version_is_copied_to_be_brought_up_to_date(file: Path) -> None:
    before = file.read_bytes()
    with closing(readable(file, 4)) as way:
        assert way.is_private
        with closing(sqlite3.connect(way.uri, uri=True)) as connection, connection:
            connection.execute("ALTER TABLE t ADD COLUMN y")
        assert rows(way) == [(1,)]
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("error", "obstacle"),
    [
        (OSError(errno.ENOSPC, "No space"), "full"),
        (OSError(errno.EROFS, "Read-only"), "read-only"),
        (PermissionError(errno.EACCES, "Denied"), "read-only"),
        (NotADirectoryError(errno.ENOTDIR, "No folder"), None),
    ],
    ids=lambda value: str(value),
)
def test_an_error_of_the_disk_says_what_is_in_the_way(error: OSError, obstacle: str, tmp_path: Path) -> None:
    assert obstacle_of(error, tmp_path / "m.db") == obstacle


@pytest.mark.parametrize(
    ("code", "obstacle"),
    [
        (sqlite3.SQLITE_FULL, "full"),
        (sqlite3.SQLITE_IOERR_SHMSIZE, "full"),
        (sqlite3.SQLITE_READONLY_DIRECTORY, "read-only"),
        (sqlite3.SQLITE_CORRUPT, None),
        (sqlite3.SQLITE_IOERR_READ, None),
        (sqlite3.SQLITE_CANTOPEN, None),  # the folder can be written, so it is something else
    ],
)
def test_an_error_of_sqlite_says_what_is_in_the_way(code: int, obstacle: str, tmp_path: Path) -> None:
    error = sqlite3.OperationalError("it failed")
    error.sqlite_errorcode = code
    assert obstacle_of(error, tmp_path / "m.db") == obstacle


def test_an_obstacle_is_told_in_words(tmp_path: Path) -> None:
    assert obstacle_in_words("full", tmp_path / "m.db") == "the disk is full"
    assert obstacle_in_words("read-only", tmp_path / "none" / "m.db") == "your user may not write there"


@pytest.mark.skipif(sys.platform == "win32", reason="file modes")
def test_what_may_be_written_is_known_before_it_exists(tmp_path: Path) -> None:
    assert may_write(tmp_path / "new" / "folder" / "m.db")
