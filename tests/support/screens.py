"""Screens for tests: rich consoles that write to memory, as a terminal or as a pipe would take it."""

from __future__ import annotations

import asyncio
import io

import pyte
from rich.console import Console

from ragchat.ui.render.screen import Screen, make_console


class PyteFile(io.StringIO):
    """A file that says it is a terminal, and shows what is written on a screen of its own."""

    encoding = "utf-8"

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__()
        self.screen = pyte.HistoryScreen(columns, rows, history=1000)
        self._stream = pyte.Stream(self.screen)
        self._written: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._stream.feed(text.replace("\n", "\r\n"))
        if self._written is not None:  # a spinner writes from a thread of its own
            self._loop.call_soon_threadsafe(self._written.set)
        return super().write(text)

    async def until(self, text: str) -> None:
        """Wait for it on the screen. A loop that looks again and again would take Python from all threads."""
        self._loop = asyncio.get_running_loop()
        self._written = asyncio.Event()
        while text not in self.shown:
            await self._written.wait()
            self._written.clear()
        self._written = None

    @property
    def shown(self) -> str:
        """The screen with what has scrolled away, without blanks at line ends."""
        gone = ["".join(line[column].data for column in sorted(line)) for line in self.screen.history.top]
        return "\n".join(line.rstrip() for line in [*gone, *self.screen.display]).rstrip("\n")


def terminal(columns: int = 60, rows: int = 20) -> tuple[Console, PyteFile]:
    file = PyteFile(columns, rows)
    console = make_console(file)
    console.width, console.height = columns, rows
    return console, file


def pipe() -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return make_console(file), file


def piped_screen() -> tuple[Screen, io.StringIO, io.StringIO]:
    out, out_file = pipe()
    err, err_file = pipe()
    return Screen(out, err, animated=False), out_file, err_file
