"""Read what the user pipes or types.

These reads block the event loop and what its handlers of signals begin there, so that Python's own handler of
Ctrl-C interrupts them, for each of the signals.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader
from typing import cast

from ragchat.commands.stopping import SIGNALS
from ragchat.errors import StdinUnusable
from ragchat.ui.context import YES
from ragchat.ui.interrupt import handling_signal

_PART_BYTES = 2**16
# Some programs leave the stdin of what they start open and write nothing to it.
_FIRST_BYTE_SECONDS = 3.0


def read_stdin(
    note: Callable[[str], object] = lambda _: None, *, most: int | None = None, may_be_empty: bool = False
) -> str:
    """All of stdin as text, decoded like a file; `note` gets what is uncertain. Raises StdinUnusable.

    `most`: the limit in bytes, that of a file if None.
    """
    from ragcommon.files.decoding import MAX_FILE_BYTES, EmptyText, NotText, decode
    from ragcommon.files.safe_open import readable_size

    most = MAX_FILE_BYTES if most is None else most
    data = _stdin(most + 1)
    if len(data) > most:
        raise StdinUnusable(f"is larger than {readable_size(most)}")
    try:
        text = decode(data)
        if text.note:
            note(f"The input from stdin {text.note}.")
        return text.text
    except NotText as error:
        if may_be_empty and isinstance(error, EmptyText):
            return ""
        raise StdinUnusable(str(error)) from None


def piped_text(note: Callable[[str], object]) -> str:
    """The text on stdin, "" if stdin is neither a pipe nor a file, or a pipe without anything in it.

    Of a file whose beginning was read by another program, such as the shell in `while read`, nothing is read.
    Raises StdinUnusable.
    """
    mode = os.fstat(sys.stdin.fileno()).st_mode
    is_pipe = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    if not (is_pipe or stat.S_ISREG(mode)):
        return ""
    if not is_pipe and os.lseek(sys.stdin.fileno(), 0, os.SEEK_CUR):
        return ""
    if is_pipe and os.name == "posix":  # elsewhere, only sockets can be waited for
        with _interruptible():
            ready, _, _ = select.select([sys.stdin], [], [], _FIRST_BYTE_SECONDS)
        if not ready:
            return ""
    return read_stdin(note, may_be_empty=True)


def confirm(question: str) -> bool:
    """Ask the user on stderr; only a yes confirms."""
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    with _interruptible():
        return sys.stdin.readline().strip().lower() in YES


async def read_line(question: str) -> str | None:
    """A line that the user types, or None at the end of stdin. The event loop runs on; may be cancelled."""
    from ragcommon.concurrency import in_daemon_thread

    sys.stderr.write(question)
    sys.stderr.flush()
    with suppress(OSError):  # The terminal is gone.
        # Not `readline`: it holds a lock without which the program could not end.
        if line := await in_daemon_thread(lambda: os.read(sys.stdin.fileno(), _PART_BYTES)):
            return line.decode(errors="replace").strip()
    return None


@contextmanager
def _interruptible() -> Iterator[None]:
    with ExitStack() as stack:
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as with nohup
                stack.enter_context(handling_signal(signal.default_int_handler, number))
        yield


def _stdin(most: int) -> bytes:
    """Up to `most` bytes."""
    data, stdin = bytearray(), cast("BufferedReader", sys.stdin.buffer)
    with _interruptible():
        # In parts: one `read` of all would run no handler for a signal that comes between two parts.
        while part := stdin.read1(min(_PART_BYTES, most - len(data))):
            data += part
    return bytes(data)
