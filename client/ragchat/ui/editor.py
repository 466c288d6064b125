"""Open a file in the user's editor at a line."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path, PurePath

import anyio.to_thread

from ragchat.errors import CommandNotPossible
from ragchat.ui.interrupt import ignored_interrupts

# How editors take a line; others open the file at its beginning.
_PLUS_LINE = frozenset(["vi", "vim", "nvim", "view", "nano", "emacs", "emacsclient", "micro", "kak"])
_COLON_LINE = frozenset(["hx", "helix", "subl", "zed"])
_GO_TO_LINE = frozenset(["code", "codium", "cursor"])  # -g FILE:LINE


async def open_at(path: Path, line: int) -> None:
    """Raises CommandNotPossible if there is no editor, and OSError if it cannot be started."""
    command = editor_command(path, line, os.environ)
    with ignored_interrupts():
        await anyio.to_thread.run_sync(subprocess.call, command)


def editor_command(path: Path, line: int, environ: Mapping[str, str]) -> list[str]:
    """The command without a shell: `path` comes from memory and is data. Raises CommandNotPossible."""
    editor = shlex.split(environ.get("VISUAL") or environ.get("EDITOR") or "", posix=os.name != "nt")
    if not editor:
        raise CommandNotPossible("open", "neither $VISUAL nor $EDITOR names an editor")
    name = PurePath(editor[0]).stem.lower()
    if name in _PLUS_LINE:
        return [*editor, f"+{line}", str(path)]
    if name in _COLON_LINE | _GO_TO_LINE:
        return [*editor, *(["-g"] if name in _GO_TO_LINE else []), f"{path}:{line}"]
    return [*editor, str(path)]
