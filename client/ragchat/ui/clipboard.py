"""Text to the clipboard: by a command that reaches it where there is one, else by OSC 52."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from rich.console import Console

_SECONDS = 2.0


async def put(text: str, console: Console) -> str:
    """Returns the way it went: a command's name, or "OSC 52"."""
    for command in _commands():
        if shutil.which(command[0]) and await _run(command, text):
            return command[0]
    payload = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    console.file.write(f"\x1b]52;c;{payload}\x07")
    console.file.flush()
    return "OSC 52"


def _commands() -> list[tuple[str, ...]]:
    """Those that reach the clipboard of the screen the user sits at: over SSH the machine's own do not."""
    if os.environ.get("TMUX"):
        # tmux takes OSC 52 from programs only where it is set up to; it can hand a text on itself.
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
    # clip.exe takes UTF-8 for the code page of the machine; UTF-16 with its mark it knows.
    encoding = "utf-16" if command[0] == "clip" else "utf-8"
    with suppress(OSError), anyio.move_on_after(_SECONDS):
        # Their output goes nowhere: xclip stays in the background and would hold a pipe open.
        done = await anyio.run_process(
            command,
            input=text.encode(encoding, "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        return done.returncode == 0
    return False
