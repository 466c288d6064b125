"""Copy text to the clipboard, by a command if there is one, else by the terminal sequence OSC 52."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio

from ragchat.sanitize import sanitize

if TYPE_CHECKING:
    from rich.console import Console

_SECONDS = 2.0


async def copy(text: str, console: Console) -> str:
    """Returns what copied it: the name of a command, or "OSC 52".

    Control characters are copied as they are shown: one could end the paste in a shell, and run the rest.
    """
    text = sanitize(text)
    for command in _commands():
        if shutil.which(command[0]) and await _run(command, text):
            return command[0]
    payload = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    console.file.write(f"\x1b]52;c;{payload}\x07")
    console.file.flush()
    return "OSC 52"


def _commands() -> list[tuple[str, ...]]:
    """Commands that reach the clipboard of the user's screen. Over SSH, no command of this machine does."""
    if os.environ.get("TMUX"):
        # tmux passes OSC 52 on only if it is configured to, but can set the clipboard itself.
        return [("tmux", "load-buffer", "-w", "-")]
    if os.environ.get("SSH_CONNECTION"):
        return []
    if sys.platform == "darwin":
        return [("pbcopy",)]
    if sys.platform == "win32":
        return [("clip",)]
    commands: list[tuple[str, ...]] = []
    if os.environ.get("WAYLAND_DISPLAY"):
        commands.append(("wl-copy",))
    if os.environ.get("DISPLAY"):
        commands += [("xclip", "-selection", "clipboard"), ("xsel", "--clipboard", "--input")]
    return commands


async def _run(command: tuple[str, ...], text: str) -> bool:
    # clip.exe reads UTF-8 as the code page of the machine, but recognizes UTF-16 by its mark.
    encoding = "utf-16" if command[0] == "clip" else "utf-8"
    with suppress(OSError), anyio.move_on_after(_SECONDS):
        # xclip stays in the background and would hold a pipe of its output open.
        done = await anyio.run_process(
            command,
            input=text.encode(encoding, "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        return done.returncode == 0
    return False
