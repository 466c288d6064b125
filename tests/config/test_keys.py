"""Keys and bearer tokens in files and environment variables."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO, Any

import pytest

from ragconfig.errors import SettingsError
from ragconfig.keys import find_token, read_key, stored_token


def test_a_key_comes_from_its_file_else_from_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(" secret\n", encoding="utf-8")
    path.chmod(0o600)
    environ = {"OPENAI_API_KEY": "other"}
    assert read_key(str(path), environ=environ) == "secret"
    assert read_key("", environ=environ) == "other"
    assert read_key("", environ={}) == ""
    with pytest.raises(SettingsError, match=r"cannot be read: no such file or directory\.$"):
        read_key(str(tmp_path / "gone"))
    path.write_bytes(b"\xff")
    with pytest.raises(SettingsError, match=r"cannot be read: it is not text in UTF-8\.$"):
        read_key(str(path))
    for name in ("a\0b", "~nobody-has-this-name/key"):
        with pytest.raises(SettingsError, match=r"^The key file .* cannot be read: "):
            read_key(name)


def test_an_own_token_is_made_once_in_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "data" / "token"
    token, made = stored_token(path)
    assert made
    assert len(token) >= 32
    assert stored_token(path) == (token, False)
    if sys.platform != "win32":
        assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_leaves_no_file_without_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, fdopen = tmp_path / "token", os.fdopen

    def on_a_full_disk(file: int, mode: str, encoding: str) -> IO[Any]:
        os.dup2(full, file)
        return fdopen(file, mode, encoding=encoding)

    full = os.open("/dev/full", os.O_WRONLY)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fdopen", on_a_full_disk)
        with pytest.raises(OSError, match="No space left") as caught:
            stored_token(path)
        assert caught.value.filename == str(path)
    os.close(full)
    assert stored_token(path)[1]


@pytest.mark.skipif(sys.platform == "win32", reason="file modes")
def test_a_key_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("secret", encoding="utf-8")
    path.chmod(0o644)
    with pytest.raises(SettingsError) as caught:
        read_key(str(path))
    reason = "other users have access to it (mode 644)"
    assert str(caught.value) == f"The key file {path} cannot be read: {reason}."
    assert caught.value.hint == f"Make it yours alone: chmod 600 {path}"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX file kinds")
def test_a_key_file_is_a_small_regular_file(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"cannot be read: it is not a regular file\.$"):
        read_key("/dev/zero")
    os.mkfifo(tmp_path / "fifo", 0o600)
    with pytest.raises(SettingsError, match=r"cannot be read: it is not a regular file\.$"):
        read_key(str(tmp_path / "fifo"))


def test_a_token_comes_from_its_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAGMEMORY_TOKEN", raising=False)
    assert find_token("") is None
    monkeypatch.setenv("RAGMEMORY_TOKEN", "secret")
    assert find_token("") == "secret"
    file = tmp_path / "token"
    file.write_text("two words\n", "utf-8")
    file.chmod(0o600)
    with pytest.raises(SettingsError, match="There is no bearer token in the file"):
        find_token(str(file))
