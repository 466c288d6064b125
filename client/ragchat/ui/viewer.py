"""The system's viewer for a file, which shows a PDF at its page if it takes one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ragchat.errors import CommandNotPossible
from ragcommon.errors import os_reason

# How PDF viewers take a page. A viewer is recognized by its name within the desktop entry.
_FORMS = {
    "--page-index={page} {path}": "evince atril xreader",
    "-p {page} {path}": "okular",
    "-P {page} {path}": "zathura",
    "{path}#{page}": "qpdfview",
    "{uri}#page={page}": "firefox google-chrome chromium brave-browser microsoft-edge",
}
# A viewer that still runs after this many seconds has opened its file.
_STARTED_SECONDS = 2.0
_ASKED_SECONDS = 5.0


def show(path: Path, page: int | None) -> None:
    """Open a file with the system's viewer, at a page from 1, if it is a PDF. Raises CommandNotPossible.

    Blocks until the viewer has opened it.
    """
    if sys.platform == "win32" and not (page and shutil.which("SumatraPDF")):
        try:
            os.startfile(path)
        except OSError as error:
            raise CommandNotPossible("open", f"no program opens {path.name}: {os_reason(error)}") from None
        return
    command = viewer_command(path, page, os.environ)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in the chat does not end it.
        )
    except OSError as error:
        raise CommandNotPossible("open", f"{command[0]} cannot be started: {os_reason(error)}") from None
    try:
        code = process.wait(_STARTED_SECONDS)
    except subprocess.TimeoutExpired:
        threading.Thread(target=process.wait, daemon=True).start()
        return
    if code:
        raise CommandNotPossible(
            "open", f"{command[0]} did not open {path.name}: it ended with the exit code {code}"
        )


def viewer_command(path: Path, page: int | None, environ: Mapping[str, str]) -> list[str]:
    """The command that opens a file. Raises CommandNotPossible."""
    if sys.platform == "win32":
        return ["SumatraPDF", "-page", str(page), str(path)]
    if sys.platform == "darwin":
        return ["open", str(path)]  # Preview takes no page.
    if not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        raise CommandNotPossible("open", "there is no display here on which a viewer could open the file")
    if page is not None and (form := _form(_default_viewer())):
        return [
            word.replace("{page}", str(page)).replace("{uri}", path.as_uri()).replace("{path}", str(path))
            for word in form
        ]
    if shutil.which("xdg-open") is None:
        raise CommandNotPossible("open", "xdg-open, which opens files with their programs, is not installed")
    return ["xdg-open", str(path)]


def _form(entry: str) -> list[str]:
    """The command of the viewer with this desktop entry; empty if it is unknown or not installed."""
    for form, names in _FORMS.items():
        for name in names.split():
            if name in entry and shutil.which(name):
                return [name, *form.split()]
    return []


def _default_viewer() -> str:
    """The desktop entry of the program that opens PDF; "" if that is not known."""
    with suppress(OSError, subprocess.SubprocessError):
        asked = ["xdg-mime", "query", "default", "application/pdf"]
        found = subprocess.run(asked, capture_output=True, text=True, timeout=_ASKED_SECONDS, check=False)
        return found.stdout.strip().lower()
    return ""
