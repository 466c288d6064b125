"""The line editor: its keys (`keys`), its history, its prompt."""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from prompt_toolkit import PromptSession
from prompt_toolkit.application import create_app_session
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from ragchat.ui.prompt.keys import LEAVING_HINT
from ragchat.ui.prompt.session import make_prompt, prompt_mark
from ragchat.ui.prompt.toolbar import Status
from ragchat.ui.slash.completer import SlashCompleter
from tests.support.screens import PyteFile

PASTE = "\x1b[200~{}\x1b[201~"


@contextmanager
def prompting(folder: Path) -> Iterator[tuple[PipeInput, PromptSession[str], Status]]:
    status = Status()
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        completer = SlashCompleter(lambda: None)
        yield keys, make_prompt(folder, status, completer, PyteFile(80, 24)), status


async def typed(folder: Path, text: str) -> str:
    """The message that comes of these keys."""
    with prompting(folder) as (keys, prompt, _):
        keys.send_text(text)
        with anyio.fail_after(60):
            return await prompt.prompt_async()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("hello\r", "hello"),
        ("one\x1b\rtwo\r", "one\ntwo"),
        (PASTE.format("one\r\ntwo\r\n") + "three\r", "one\ntwo\nthree"),
        (PASTE.format("a\tb \x1b]0;x\x07 \u202ec") + "\r", "a\tb \x1b]0;x\x07 \u202ec"),
        ("wrong\x03right\r", "right"),
        ("   \r\x03ok\r", "ok"),
        ("\r\rok\r", "ok"),
        ("日本語 ä\r", "日本語 ä"),
        ("see \x1b[31man \x1b[1;31merror\x1b[0m here\r", "see an error here"),
    ],
)
async def test_keys_make_messages(tmp_path: Path, keys: str, message: str) -> None:
    assert await typed(tmp_path, keys) == message


async def test_ctrl_c_clears_the_line_on_a_dumb_terminal_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert await typed(tmp_path, "wrong\x03right\r") == "right"


async def test_ctrl_d_on_an_empty_line_leaves(tmp_path: Path) -> None:
    with pytest.raises(EOFError):
        await typed(tmp_path, "\x04")


async def test_ctrl_c_on_an_empty_line_tells_how_to_leave_until_something_is_typed(tmp_path: Path) -> None:
    with prompting(tmp_path) as (keys, prompt, status):
        keys.send_text("\x03\x04")
        with pytest.raises(EOFError), anyio.fail_after(60):
            await prompt.prompt_async()
        assert status.hint == LEAVING_HINT
        keys.send_text("x\r")
        with anyio.fail_after(60):
            await prompt.prompt_async()
        assert status.hint == ""


async def test_earlier_messages_are_there_in_the_next_run(tmp_path: Path) -> None:
    await typed(tmp_path / "state", "the first\x1b\rwith two lines\r")
    assert await typed(tmp_path / "state", "\x1b[A\x1b[A\x1b[A\r") == "the first\nwith two lines"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no file modes")
async def test_the_history_is_its_owners_only(tmp_path: Path) -> None:
    await typed(tmp_path / "state", "a secret\r")
    [file] = (tmp_path / "state").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_a_state_folder_that_cannot_be_made_costs_only_the_history(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with prompting(tmp_path / "file" / "state") as (_, prompt, _status):
        assert isinstance(prompt.history, InMemoryHistory)
    assert await typed(tmp_path / "file" / "state", "hello\r") == "hello"


def test_the_prompt_is_an_arrow_where_the_terminal_can_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    assert prompt_mark(PyteFile(80, 24)) == "❯ "
    latin = PyteFile(80, 24)
    latin.encoding = "latin-1"
    assert prompt_mark(latin) == "> "
    monkeypatch.setenv("TERM", "linux")
    assert prompt_mark(PyteFile(80, 24)) == "> "


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("\x12needle\r\r", "a needle in the past"),
        ("\x12needle\x03new\r", "new"),
        ("\x12needle\x07new\r", "new"),
    ],
)
async def test_a_search_in_the_history_has_its_own_enter_and_ctrl_c(
    tmp_path: Path, keys: str, message: str
) -> None:
    await typed(tmp_path / "state", "a needle in the past\r")
    assert await typed(tmp_path / "state", keys) == message
