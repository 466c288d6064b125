"""Keys that are pressed while there is no prompt."""

from __future__ import annotations

import io
import os
import signal
import sys

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding.key_processor import KeyPress

from ragchat.ui.prompt.type_ahead import discard_type_ahead, echo_disabled, echo_disabled_again

if sys.platform == "win32":
    pytest.skip("a terminal of POSIX", allow_module_level=True)

import pty
import termios

from prompt_toolkit.input.vt100 import Vt100Input


def test_keys_are_not_echoed_and_wait_for_the_next_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    leader, follower = pty.openpty()
    with os.fdopen(leader, "rb", buffering=0), os.fdopen(follower, "r") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        before = termios.tcgetattr(terminal)
        with echo_disabled():
            assert not termios.tcgetattr(terminal)[3] & (termios.ECHO | termios.ICANON)
            os.write(leader, b"typed")
            assert os.read(follower, 5) == b"typed"
        assert termios.tcgetattr(terminal) == before


def test_keys_are_not_echoed_after_the_chat_was_suspended_to_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    leader, follower = pty.openpty()
    with os.fdopen(leader, "rb", buffering=0), os.fdopen(follower, "r") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        of_a_shell = termios.tcgetattr(terminal)
        with echo_disabled(), echo_disabled_again():
            termios.tcsetattr(terminal, termios.TCSANOW, of_a_shell)
            signal.raise_signal(signal.SIGCONT)
            assert not termios.tcgetattr(terminal)[3] & (termios.ECHO | termios.ICANON)


def test_a_terminal_that_is_closed_ends_the_chat_without_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    leader, follower = pty.openpty()
    with os.fdopen(follower, "r") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        with echo_disabled(), echo_disabled_again():
            os.close(leader)
            signal.raise_signal(signal.SIGCONT)


def test_keys_from_before_a_question_are_dropped() -> None:
    leader, follower = pty.openpty()
    with os.fdopen(leader, "rb", buffering=0), os.fdopen(follower, "r") as terminal:
        keyboard = Vt100Input(terminal)
        with create_app_session(input=keyboard), keyboard.raw_mode():
            os.write(leader, b"always\r")
            store_typeahead(keyboard, [KeyPress("y")])
            discard_type_ahead()
            os.write(leader, b"n")
            assert os.read(follower, 10) == b"n"
            assert get_typeahead(keyboard) == []


def test_a_pipe_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("question\n"))
    with echo_disabled():
        assert sys.stdin.read() == "question\n"
