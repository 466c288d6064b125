"""`ragchat ask --offline` for what is not one fact: small talk, lists, outlines, comparisons."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.program import Program, program_in


@pytest.fixture
def ragchat(tmp_path: Path) -> Program:
    return program_in(tmp_path)


def test_small_talk_has_a_reply_in_ask_and_in_a_pipe(ragchat: Program) -> None:
    answered = ragchat("ask", "--offline", "--json", "Thanks!").json
    assert answered["answer"].startswith("You're welcome.")
    assert (answered["grounded"], answered["citations"], answered["nearest"]) == (False, [], [])
    assert ragchat(stdin="Thanks!\n").out.startswith("You're welcome.")
