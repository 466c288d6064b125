"""A text in the user's own editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio

from ragchat.ui.interrupt import not_ours


async def edit(text: str) -> str:
    """What the user made of `text`; unchanged if the editor fails. Raises OSError if it cannot be started."""
    with not_ours():
        return await anyio.to_thread.run_sync(_edit, text)


def _edit(text: str) -> str:
    fallback = "notepad" if sys.platform == "win32" else "vi"
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or fallback
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "system.md"
        path.write_text(text, encoding="utf-8")
        # The name of a Windows program may hold spaces and backslashes; elsewhere it comes with arguments.
        words = [command] if sys.platform == "win32" else shlex.split(command)
        finished = subprocess.run([*words, str(path)], check=False)
        return path.read_text(encoding="utf-8") if finished.returncode == 0 else text
