"""Questions to the user."""

from __future__ import annotations

import io
from contextlib import nullcontext

import anyio
import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output.plain_text import PlainTextOutput

from ragchat.ui.dialog import Dialog


async def test_a_name_in_a_question_brings_no_control_characters_to_a_dumb_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    written = io.StringIO()
    with create_pipe_input() as keys, create_app_session(input=keys, output=PlainTextOutput(written)):
        keys.send_text("yes\r")
        with anyio.fail_after(60):
            assert await Dialog(nullcontext).read("name\x1b]0;x\x07\u202e: ") == "yes"
    assert written.getvalue().startswith("name␛]0;x␇\ufffd: yes")
