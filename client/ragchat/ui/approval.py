"""Ask the user whether the model may call a tool that changes things; remember the answer "always"."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ragchat.sanitize import one_line
from ragchat.ui.context import YES
from ragconfig.files.regular import read_regular
from ragconfig.home import private_folder

APPROVED_FILE = "approved-tools"
LARGEST_BYTES = 1 << 16
ALWAYS = frozenset({"a", "always"})
_SHOWN = 200


class Approvals:
    """`ask` shows a question and returns the user's reply. A turn calls `approve` before each such tool."""

    def __init__(self, state: Path, ask: Callable[[str], Awaitable[str]]) -> None:
        self._path = state / APPROVED_FILE
        self._ask = ask

    async def approve(self, name: str, arguments: dict[str, Any]) -> bool:
        if name in self._always():
            return True
        shown = one_line(", ".join(f"{key}={value!r}" for key, value in arguments.items()), _SHOWN)
        answer = (
            (await self._ask(f"Allow the model to call {one_line(name)}({shown})? [y/N/a] ")).strip().lower()
        )
        if answer in ALWAYS:
            self._remember(name)
        return answer in YES | ALWAYS

    def _always(self) -> frozenset[str]:
        try:
            return frozenset(read_regular(self._path, LARGEST_BYTES).decode("utf-8", "replace").splitlines())
        except OSError:
            return frozenset()

    def _remember(self, name: str) -> None:
        with suppress(OSError):
            private_folder(self._path.parent)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{name}\n")
