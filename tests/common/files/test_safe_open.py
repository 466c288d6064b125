"""Only regular files of a bounded size are read, whatever a path leads to."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ragcommon.files.safe_open import FileTooLarge, KeptOpen, NotARegularFile, ReadableByOthers, read_regular

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX file kinds and modes")


def test_a_file_of_exactly_the_limit_is_read_and_one_byte_more_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1000)
    assert read_regular(path, 1000) == b"x" * 1000
    path.write_bytes(b"x" * 1001)
    with pytest.raises(FileTooLarge) as caught:
        read_regular(path, 1000)
    assert caught.value.strerror == "it is larger than 1,000 bytes (1,001 bytes)"
    assert caught.value.filename == str(path)


def test_an_empty_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert read_regular(tmp_path / "file", 10) == b""


@posix
def test_a_fifo_without_a_writer_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(NotARegularFile) as caught:
        read_regular(tmp_path / "fifo", 10)
    assert caught.value.strerror == "it is not a regular file"


@posix
def test_a_link_to_a_device_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/zero")
    with pytest.raises(NotARegularFile):
        read_regular(tmp_path / "link", 10)


@posix
def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotARegularFile):
        read_regular(tmp_path, 10)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has files without a size in /proc")
def test_a_file_without_a_size_is_read_up_to_the_limit() -> None:
    assert b"Name:" in read_regular(Path("/proc/self/status"), 100_000)
    with pytest.raises(FileTooLarge) as caught:
        read_regular(Path("/proc/self/status"), 100)
    assert caught.value.strerror == "it is larger than 100 bytes"


@posix
@pytest.mark.parametrize("mode", [0o604, 0o640, 0o644, 0o602])
def test_a_private_file_that_others_have_access_to_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    path.write_bytes(b"secret")
    path.chmod(mode)
    assert read_regular(path, 100) == b"secret"
    with pytest.raises(ReadableByOthers) as caught:
        read_regular(path, 100, private=True)
    assert caught.value.strerror == f"other users have access to it (mode {mode:03o})"
    path.chmod(0o600)
    assert read_regular(path, 100, private=True) == b"secret"


@posix
def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 11)
    before = os.dup(0)
    os.close(before)
    for refused in (path, tmp_path, Path("/dev/null")):
        with pytest.raises(OSError):  # noqa: PT011
            read_regular(refused, 10)
    after = os.dup(0)
    os.close(after)
    assert after == before


@posix
def test_a_file_that_must_not_be_closed_is_recognised_when_it_is_open_and_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"x")
    link.symlink_to(path)
    status = path.stat()
    opened: list[int] = []
    open_file = os.open

    def note(*given: object) -> int:
        opened.append(open_file(*given))  # type: ignore[arg-type]
        return opened[-1]

    monkeypatch.setattr(os, "open", note)
    with pytest.raises(KeptOpen):
        read_regular(link, 10, kept_open=[None, (status.st_dev, status.st_ino)])
    [descriptor] = opened
    assert os.fstat(descriptor).st_ino == status.st_ino
    os.close(descriptor)
