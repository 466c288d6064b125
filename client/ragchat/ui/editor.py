"""The user's editor and pager: their commands for a text at a line, and running them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

import anyio.to_thread

from ragchat.errors import CommandNotPossible
from ragchat.ui.interrupt import ignore_interrupts
from ragcommon.errors import os_reason

# How editors take a line, by the leading letters of their names: `idea64.exe` is `idea`.
_FORMS = {
    "+{line} {path}": "vi vim nvim gvim mvim view nano pico emacs emacsclient micro kak kakoune joe jed ne"
    " mcedit gedit pluma bbedit",
    "{path}:{line}": "hx helix subl sublime zed zeditor",
    "-g {path}:{line}": "code codium vscodium cursor windsurf",
    "--line {line} {path}": "idea pycharm webstorm goland clion phpstorm rubymine rider mate textmate kate"
    " geany",
    "-n{line} {path}": "notepad++",
}
_FORM_OF = {name: form for form, names in _FORMS.items() for name in names.split()}
_NAME = re.compile(r"[a-z+]*")
_PLACEHOLDER = re.compile(r"\{(path|line)\}")
# Pagers that take the line as `+7`.
_PAGERS = ("less", "more", "most", "lv", "moar", "moor")
# Characters that cmd.exe interprets within an argument.
_SYNTAX_OF_CMD = re.compile(r'[&|<>^%!"]')


class Command(NamedTuple):
    """A command without a shell: the path comes from memory and is data."""

    words: list[str]
    has_line: bool  # else the program shows the beginning


def editor_command(path: Path, line: int, setting: str, environ: Mapping[str, str]) -> Command | None:
    """The editor of the setting `open.editor`, $VISUAL or $EDITOR at a line; None if none is named.

    Its words may hold `{path}` and `{line}`. Raises CommandNotPossible.
    """
    words = _split(setting or environ.get("VISUAL") or environ.get("EDITOR") or "")
    if not words:
        return None
    values = {"path": str(path), "line": str(line)}
    form = " ".join(words)
    if "{path}" not in form:
        words += [] if "{line}" in form else _FORM_OF.get(_name(words[0]), "{path}").split()
        words += [] if any("{path}" in word for word in words) else ["{path}"]
    has_line = any("{line}" in word for word in words)
    return Command([_PLACEHOLDER.sub(lambda found: values[found[1]], word) for word in words], has_line)


def pager_command(path: Path, line: int, environ: Mapping[str, str]) -> Command:
    """$PAGER at a line, if it takes one, else `less` or `more`. Raises CommandNotPossible."""
    words = _split(environ.get("PAGER") or "")
    if not words or _name(words[0]) not in _PAGERS:
        words = [name for name in ("less", "more") if shutil.which(name)][:1]
    if not words:
        raise CommandNotPossible("open", "$VISUAL and $EDITOR name no editor, and there is no pager")
    return Command([*words, f"+{line}", str(path)], has_line=True)


def _split(words: str) -> list[str]:
    """The words of a command, which may also be a bare path with spaces. Raises CommandNotPossible."""
    if PurePath(words).is_absolute() and Path(words).is_file():
        return [words]
    try:
        # On Windows a backslash separates folders.
        return [
            word.strip('"') if os.name == "nt" else word for word in shlex.split(words, posix=os.name != "nt")
        ]
    except ValueError:
        raise CommandNotPossible("open", f"a quotation mark is missing in the command {words}") from None


def _name(program: str) -> str:
    found = _NAME.match(PurePath(program).name.lower())
    return found[0] if found else ""


async def run(command: Sequence[str]) -> None:
    """Run a program in the terminal until it ends. Raises CommandNotPossible."""
    program = command[0]
    # On Windows the commands of many editors are scripts, which only `which` finds.
    found = shutil.which(program) or program
    if found.lower().endswith((".cmd", ".bat")) and any(map(_SYNTAX_OF_CMD.search, command[1:])):
        raise CommandNotPossible(
            "open", f"{program} is a script, and cannot be given this name: {command[-1]}"
        )
    # A preprocessor of `less` would run on text that is not the user's own.
    environ = {name: value for name, value in os.environ.items() if name not in ("LESSOPEN", "LESSCLOSE")}
    try:
        with ignore_interrupts():
            code = await anyio.to_thread.run_sync(lambda: subprocess.call([found, *command[1:]], env=environ))
    except OSError as error:
        raise CommandNotPossible("open", f"{program} cannot be started: {os_reason(error)}") from None
    if code:
        raise CommandNotPossible("open", f"{program} ended with the exit code {code}")
