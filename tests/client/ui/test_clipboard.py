"""Which way a text takes to the clipboard of the user's screen."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import pytest

from ragchat.ui import clipboard
from tests.support.screens import pipe

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the commands are shell scripts")

VARIABLES = ("TMUX", "SSH_CONNECTION", "WAYLAND_DISPLAY", "DISPLAY")


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is searched first for commands, and no variable of a screen."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    folder = tmp_path / "commands"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    return folder


def make_command(folder: Path, name: str, *, code: int = 0) -> Path:
    """A command that writes its arguments and its input to the file that is returned."""
    output = folder / f"{name}.txt"
    script = folder / name
    script.write_text(f'#!/bin/sh\n{{ echo "$@"; cat; }} > {output}\nexit {code}\n')
    script.chmod(0o700)
    return output


async def test_inside_tmux_its_own_command_is_used(commands: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = make_command(commands, "tmux")
    monkeypatch.setenv("TMUX", "/tmp/tmux,1,0")
    console, file = pipe()
    assert await clipboard.copy("Zürich 日本", console) == "tmux"
    assert output.read_text("utf-8") == "load-buffer -w -\nZürich 日本"
    assert file.getvalue() == ""


@pytest.mark.usefixtures("commands")
async def test_control_characters_are_copied_as_they_are_shown() -> None:
    console, file = pipe()
    assert await clipboard.copy("end \x1b[201~\rrm -r x\n\tend", console) == "OSC 52"
    payload = file.getvalue().removeprefix("\x1b]52;c;").removesuffix("\x07")
    assert base64.b64decode(payload).decode() == "end ␛[201~rm -r x\n\tend"


async def test_a_command_that_fails_is_followed_by_the_next(
    commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_command(commands, "wl-copy", code=1)
    output = make_command(commands, "xclip")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    monkeypatch.setenv("DISPLAY", ":0")
    assert await clipboard.copy("text", pipe()[0]) == "xclip"
    assert output.read_text("utf-8") == "-selection clipboard\ntext"


async def test_over_ssh_the_terminal_is_asked(commands: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_command(commands, "xclip")
    monkeypatch.setenv("SSH_CONNECTION", "1.2.3.4 5 6.7.8.9 22")
    monkeypatch.setenv("DISPLAY", ":0")
    console, file = pipe()
    assert await clipboard.copy("Zürich", console) == "OSC 52"
    encoded = base64.b64encode("Zürich".encode()).decode()
    assert file.getvalue() == f"\x1b]52;c;{encoded}\x07"
