"""Keys that are pressed while there is no prompt."""

from __future__ import annotations

import io
import os
import sys

import pytest

from ragchat.ui.prompt.type_ahead import silent_keys

if sys.platform == "win32":
    pytest.skip("a terminal of POSIX", allow_module_level=True)

import pty
import termios


def test_keys_are_not_echoed_and_wait_for_the_next_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    leader, follower = pty.openpty()
    with os.fdopen(leader, "rb", buffering=0), os.fdopen(follower, "r") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        before = termios.tcgetattr(terminal)
        with silent_keys():
            assert not termios.tcgetattr(terminal)[3] & (termios.ECHO | termios.ICANON)
            os.write(leader, b"typed")
            assert os.read(follower, 5) == b"typed"
        assert termios.tcgetattr(terminal) == before


def test_a_pipe_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("question\n"))
    with silent_keys():
        assert sys.stdin.read() == "question\n"
