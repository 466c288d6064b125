"""The name of a machine: made once, and the same for all processes of a home."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ragconfig.home import Home
from ragconfig.machine import machine_name


def home_in(folder: Path) -> Home:
    return Home.find({"RAGCHAT_HOME": str(folder)})


def test_a_name_has_the_host_and_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "Annes Läptop.local")
    name = machine_name(home_in(tmp_path))
    assert re.fullmatch(r"annes-l-ptop-[0-9a-f]{8}", name)
    monkeypatch.setattr("socket.gethostname", lambda: "renamed")
    assert machine_name(home_in(tmp_path)) == name
    assert machine_name(home_in(tmp_path / "another")) != name
    assert [file.name for file in (tmp_path / "state").iterdir()] == ["machine"]


def test_a_host_without_a_usable_name_has_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "—")
    assert re.fullmatch(r"machine-[0-9a-f]{8}", machine_name(home_in(tmp_path)))


def test_all_that_ask_at_once_get_the_same_name(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as threads:
        assert len(set(threads.map(lambda _: machine_name(home_in(tmp_path)), range(64)))) == 1


def test_a_name_that_cannot_be_kept_is_used_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "state").write_text("a file in the place of the folder", encoding="utf-8")
    names = {machine_name(home_in(tmp_path)) for _ in range(2)}
    assert len(names) == 2
    assert "is not kept in" in caplog.text


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_others_may_not_read_it(tmp_path: Path) -> None:
    machine_name(home_in(tmp_path))
    assert (tmp_path / "state" / "machine").stat().st_mode & 0o077 == 0
