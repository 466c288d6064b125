"""The terminal of the tests answers as one does that a person uses: `terminal`."""

from __future__ import annotations

import os
import sys

import pytest

if sys.platform == "win32":
    pytest.skip("there are no pseudo-terminals", allow_module_level=True)

from tests.support.terminal import Terminal

# Asks where the cursor is: twice at once, then in two parts. The answers are printed with their escapes.
ASKING = r"""
import os, sys, termios, tty
tty.setraw(0)

def answer():
    answer = b""
    while not answer.endswith(b"R"):
        answer += os.read(0, 1)
    return ascii(answer)

os.write(1, b"ab\x1b[6n\x1b[6n")
told = [answer(), answer()]
os.write(1, b"c\x1b[")
sys.stdin.readline()
os.write(1, b"6n")
print(*told, answer(), "told", end="\r\n", flush=True)
sys.stdin.readline()
"""


def test_each_question_for_the_cursor_is_answered_also_one_in_two_parts() -> None:
    with Terminal([sys.executable, "-c", ASKING], os.environ) as terminal:
        terminal.wait_until(lambda: terminal.raw.endswith(b"c\x1b["), "half of a question")
        terminal.type("\n")
        terminal.wait_for("told")
        assert terminal.text.count("[1;3R") == 2
        assert terminal.text.count("[1;4R") == 1
        terminal.type("\n")
        assert terminal.wait_for_end() == 0
