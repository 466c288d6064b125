"""Type-ahead: keys that the user presses while an answer streams wait for the next prompt.

They never answer a question that the user has not seen. `ragchat ask` uses this without prompt_toolkit.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ragchat.ui.interrupt import handling_interrupts


def discard_type_ahead() -> None:
    """Forget the keys that were pressed before a question is shown."""
    from prompt_toolkit.application import get_app_session
    from prompt_toolkit.input.typeahead import clear_typeahead

    keyboard = get_app_session().input
    if sys.platform == "win32":
        import msvcrt

        while sys.stdin.isatty() and msvcrt.kbhit():
            msvcrt.getwch()
    elif os.isatty(keyboard.fileno()):
        import termios

        termios.tcflush(keyboard.fileno(), termios.TCIFLUSH)
        clear_typeahead(keyboard)


def mark_pastes(*, on: bool = True) -> None:
    """Have the terminal mark pasted text, so that the next prompt takes all its lines as one message.

    A prompt turns this on, and off when it ends.
    """
    from prompt_toolkit.application import get_app_session

    output = get_app_session().output
    if on:
        output.enable_bracketed_paste()
    else:
        output.disable_bracketed_paste()
    output.flush()


@contextmanager
def echo_disabled() -> Iterator[None]:
    """Do not echo keys while there is no prompt. The terminal keeps them, and the next prompt reads them."""
    if sys.platform == "win32" or not sys.stdin.isatty():
        yield
        return
    import termios

    def silence(*_: object) -> None:
        silent = termios.tcgetattr(sys.stdin)
        silent[3] &= ~(termios.ECHO | termios.ICANON)
        change(silent)

    def change(attributes: list[Any]) -> None:
        if not _is_in_background():  # a job in the background would be stopped
            termios.tcsetattr(sys.stdin, termios.TCSANOW, attributes)

    before = termios.tcgetattr(sys.stdin)
    silence()
    try:
        # A shell to which the chat was suspended by Ctrl-Z has turned echo on.
        with handling_interrupts(silence, signal.SIGCONT):
            yield
    finally:
        change(before)


def _is_in_background() -> bool:
    with suppress(OSError):  # not the terminal that controls this process
        return sys.platform != "win32" and os.tcgetpgrp(sys.stdin.fileno()) != os.getpgrp()
    return False
