"""A terminal for a program under test: a real pseudo-terminal, and pyte as the screen a person would see."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte

from tests.support.processes import LONGEST_SECONDS

CURSOR_QUESTION = b"\x1b[6n"
# In the child, which leads a session of its own: makes the terminal its controlling one, so that Ctrl-C is a
# signal, then becomes the program.
TAKE_TERMINAL = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # what nohup ignores, a new terminal's programs do not
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """Runs `command` and keeps its screen. Every wait is for something to be seen, never for time to pass."""

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        cwd: Path | None = None,
        columns: int = 100,
        rows: int = 40,
    ) -> None:
        self.screen = pyte.HistoryScreen(columns, rows, history=2000)
        self.raw = b""  # everything the program has written
        self._stream = pyte.ByteStream(self.screen)
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-c", TAKE_TERMINAL, *command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environ,
            cwd=cwd,
            start_new_session=True,
        )
        os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    @property
    def text(self) -> str:
        """The screen, after what has scrolled away, without blanks at line ends."""
        gone = ["".join(line[column].data for column in sorted(line)) for line in self.screen.history.top]
        return "\n".join(line.rstrip() for line in [*gone, *self.screen.display])

    @property
    def echoes(self) -> bool:
        """Whether the terminal shows what is typed by itself, and hands it on by lines, as for a shell."""
        wanted = termios.ECHO | termios.ICANON
        return bool(termios.tcgetattr(self._master)[3] & wanted == wanted)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def press(self, keys: str) -> None:
        """Keys for a prompt, once one reads them: until then the terminal itself knows what Ctrl-D means."""
        self.wait_until(lambda: not termios.tcgetattr(self._master)[3] & termios.ISIG, "prompt")
        self.type(keys)

    def enter(self, text: str = "") -> None:
        self.type(text + "\r")

    def wait_for(self, pattern: str, seconds: float = LONGEST_SECONDS) -> re.Match[str]:
        """Until `text` has `pattern` in it."""
        self.wait_until(
            lambda: re.search(pattern, self.text, re.MULTILINE) is not None, repr(pattern), seconds
        )
        found = re.search(pattern, self.text, re.MULTILINE)
        assert found is not None
        return found

    def wait_until(self, condition: Callable[[], bool], what: str, seconds: float = LONGEST_SECONDS) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"no {what}, but:\n{self.text}"
            assert self.read(end - time.monotonic()), f"ended without {what}:\n{self.text}"

    def wait_for_end(self, seconds: float = LONGEST_SECONDS) -> int:
        """Until the program has ended; its exit code."""
        end = time.monotonic() + seconds
        while self.read(end - time.monotonic()):
            assert time.monotonic() < end, f"still running:\n{self.text}"
        return self._process.wait(seconds)

    def read(self, seconds: float) -> bool:
        """Take in what the program writes next; False when it has ended."""
        if not select.select([self._master], [], [], max(0.0, seconds))[0]:
            return True
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:  # Linux says so when the last writer has gone
            return False
        # One that came in two parts is counted with its second.
        questions = (self.raw[1 - len(CURSOR_QUESTION) :] + data).count(CURSOR_QUESTION)
        self.raw += data
        self._stream.feed(data)
        if questions:
            cursor = self.screen.cursor
            self.type(f"\x1b[{cursor.y + 1};{cursor.x + 1}R" * questions)
        return bool(data)
