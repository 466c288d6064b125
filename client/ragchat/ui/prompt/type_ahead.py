"""Type-ahead: keys that the user presses while an answer streams wait for the next prompt.

They never answer a question that the user has not seen.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

from prompt_toolkit.application import get_app_session
from prompt_toolkit.input.typeahead import clear_typeahead

from ragchat.ui.interrupt import handling_signal


def discard_type_ahead() -> None:
    """Forget the keys that were pressed before a question is shown."""
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

    before = termios.tcgetattr(sys.stdin)
    _disable_echo()
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal was closed
            termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


def echo_disabled_again() -> AbstractContextManager[None]:
    """Disable echo again when the chat continues: the shell to which Ctrl-Z suspended it enabled it."""
    if sys.platform == "win32" or not sys.stdin.isatty():
        return nullcontext()
    return handling_signal(_disable_echo, signal.SIGCONT)


def _disable_echo(*_: object) -> None:
    if sys.platform == "win32":
        return
    import termios

    with suppress(termios.error):  # SIGCONT also comes when the terminal is closed
        silent = termios.tcgetattr(sys.stdin)
        silent[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(sys.stdin, termios.TCSANOW, silent)
