"""Ctrl-C at every point of a chat with servers: the chat goes on, or ends with its servers.

Covers `ragchat.commands.stopping`.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragchat.ui.prompt.keys import LEAVING_HINT
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.processes import LONGEST_SECONDS, processes_in, wait_until_ended
from tests.support.program import Program
from tests.support.servers import GOOD, SILENT, STUBBORN

if sys.platform != "linux":
    pytest.skip("the processes of a folder are found on Linux", allow_module_level=True)

from tests.support.chats import CTRL_C, CTRL_D, chatting, started, with_model
from tests.support.terminal import Terminal

Call = tuple[str, dict[str, Any]]
WAIT: Call = ("mine__Wait", {})
ASK: Call = ("mine__Ask", {})
QUIET: Call = ("mine__Quiet", {})


@pytest.fixture
def model() -> Iterator[OpenAIServer]:
    with OpenAIServer() as model:
        yield model


def leave(chat: Terminal, program: Program) -> None:
    """Ctrl-D ends the chat and every process of it."""
    chat.press(CTRL_D)
    assert chat.wait_for_end() == 0
    assert processes_in(program.folder) == {}
    assert "Traceback" not in chat.text


def saved_turns(program: Program) -> int:
    """How many turns the one session has that is saved."""
    [session] = program("session", "ls", "--json").json["sessions"]
    turns: int = session["turns"]
    return turns


def stop(chat: Terminal, times: int) -> None:
    """Press Ctrl-C where the chat works; `times` is how often it will have been stopped then."""
    chat.type(CTRL_C)
    chat.wait_for(rf"(?s)(^(\(stopped\)|The answer was stopped\.).*){{{times}}}")


def test_ctrl_c_before_the_prompt_ends_the_program(tmp_path: Path, model: OpenAIServer) -> None:
    program = with_model(tmp_path, model, {"mine": GOOD})
    log = program.home / "state" / "ragchat.log"
    with started(program) as chat:
        while not log.exists():  # Then Python's own start is over.
            assert chat.is_running
        chat.type(CTRL_C)
        # A prompt that is drawn first gets it as a key, and the chat goes on.
        end = time.monotonic() + LONGEST_SECONDS
        while not (at_prompt := LEAVING_HINT in chat.text) and chat.read(end - time.monotonic()):
            assert time.monotonic() < end, f"still running:\n{chat.text}"
        if at_prompt:
            chat.press(CTRL_D)
        assert chat.wait_for_end() in ((0,) if at_prompt else (1, -signal.SIGINT))
        assert "Traceback" not in chat.text
        assert chat.echoes
        for pid in processes_in(program.folder):
            wait_until_ended(pid)  # A chat that a signal has ended does not wait for what it has killed.
        assert processes_in(program.folder) == {}


def test_ctrl_c_while_servers_start_stops_the_question_and_not_the_servers(
    tmp_path: Path, model: OpenAIServer
) -> None:
    program = with_model(tmp_path, model, {"mine": GOOD, "silent": SILENT})
    program.environ["RAGCHAT_SERVERS_WAIT_SECONDS"] = "1000"
    with chatting(program) as chat:
        chat.press(CTRL_C)  # at the prompt
        chat.wait_for("Ctrl-D leaves the chat")
        chat.enter("Who waits?")
        chat.wait_for(r"^Memory is empty")
        stop(chat, 1)
        assert model.requests == []
        assert any("import sys; sys.stdin.read()" in line for line in processes_in(program.folder).values())
        leave(chat, program)


def test_ctrl_c_stops_calls_questions_and_forms_and_what_was_answered_is_saved(
    tmp_path: Path, model: OpenAIServer
) -> None:
    program = with_model(tmp_path, model, {"mine": {**GOOD, "trusted": True}})
    with chatting(program, "mine") as chat:
        # Three calls at once; each is cancelled in the server, as is shown below.
        model.replies[:] = [Reply(tool_calls=[WAIT, WAIT, WAIT])]
        chat.enter("Wait")
        for number in range(1, 4):
            chat.wait_for(rf"(?s)(^Allow mine__Wait.*){{{number}}}")
            chat.press("y\r")
        log = program.home / "state" / "servers" / "mine.log"
        chat.wait_until(lambda: log.read_text("utf-8").count("Wait began") == 3, "three calls")
        stop(chat, 1)
        # A question for approval: the turn is stopped, and the second call is not asked for.
        model.replies[:] = [Reply(tool_calls=[WAIT, WAIT]), Reply("One two three.", hold_after=2)]
        chat.enter("Wait again")
        chat.wait_for(r"(?s)(^Allow mine__Wait.*){4}")
        stop(chat, 2)
        model.replies[:] = [Reply("One two three.", hold_after=2)]
        chat.enter("Count")
        chat.wait_for("^One")
        stop(chat, 3)
        # A form is cancelled, and the turn stopped.
        model.replies[:] = [Reply(tool_calls=[ASK]), Reply("Four five six.", hold_after=2)]
        chat.enter("Ask me")
        chat.wait_for("^Allow mine__Ask")
        chat.press("y\r")
        chat.wait_for("^name:")
        chat.press(CTRL_C)
        chat.wait_for("^Four")
        stop(chat, 4)
        # The same server answers, once no call is left in it.
        model.replies[:] = [Reply(tool_calls=[QUIET]), Reply("It is quiet.")]
        chat.enter("Is it quiet?")
        chat.wait_for(r"^It is quiet\.")
        chat.wait_for(r"^test-model · \d+ \+")
        assert results(model) == ["quiet"]
        leave(chat, program)
    assert saved_turns(program) == 3


def test_a_second_ctrl_c_while_the_chat_ends_kills_a_server_that_does_not_end(
    tmp_path: Path, model: OpenAIServer
) -> None:
    program = with_model(tmp_path, model, {"stubborn": STUBBORN})
    program.environ["RAGCHAT_SERVERS_WAIT_SECONDS"] = "0"
    model.replies[:] = [Reply("Here I am.")]
    with chatting(program) as chat:
        chat.enter("Who is there?")
        chat.wait_for(r"^test-model · \d+ \+")
        [stubborn] = [pid for pid, line in processes_in(program.folder).items() if "signal.pause" in line]
        chat.press(CTRL_D)
        while not chat.echoes:  # The prompt has ended, and so Ctrl-C is a signal.
            assert chat.is_running
        while chat.is_running:  # Two that come together may be one signal.
            chat.type(CTRL_C)
            chat.read(LONGEST_SECONDS)
        assert chat.wait_for_end() == -signal.SIGINT
        wait_until_ended(stubborn)
        assert chat.echoes
        assert "Traceback" not in chat.text
    assert saved_turns(program) == 1


def results(model: OpenAIServer) -> list[str]:
    """The results of tools that the model got last."""
    messages: list[dict[str, Any]] = model.requests[-1]["messages"]
    return [message["content"] for message in messages if message["role"] == "tool"]
