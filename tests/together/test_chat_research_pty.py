"""/research as a person meets it: the installed program in a real terminal, with a scripted model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.mcp_process import ENV, SERVER
from tests.support.openai_server import OpenAIServer, Reply
from tests.together.test_cli_research import QUESTION, REPORT, TEA, program, script

if sys.platform == "win32":
    pytest.skip("Windows has no pseudo-terminals of this kind", allow_module_level=True)

from tests.support.processes import LONGEST_SECONDS
from tests.support.terminal import Terminal

WEB = "Espresso takes 25 seconds."
RAGCHAT = str(Path(sys.executable).with_name("ragchat"))
CTRL_C, CTRL_D = "\x03", "\x04"


def test_a_research_is_stopped_goes_on_and_is_stored_if_the_user_says_so(tmp_path: Path) -> None:
    held = Reply(REPORT, hold_after=1)
    rules = {pattern: held if reply.text == REPORT else reply for pattern, reply in script().items()}
    with OpenAIServer(rules=rules) as server:
        ragchat = program(tmp_path, server)
        variables = {**ragchat.variables, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        with Terminal([RAGCHAT], variables, ragchat.folder) as chat:
            chat.wait_for("2 documents")
            chat.enter(f"/research {QUESTION}")
            chat.wait_for(f"1. {TEA}"[:20])
            chat.wait_for("Writing the report from 2 passages.")
            assert held.reached.wait(LONGEST_SECONDS)
            chat.type(CTRL_C)
            chat.wait_for("2 findings kept")
            chat.wait_for(r"\(stopped\)")
            held.go.set()
            chat.enter(f"/research {QUESTION}")
            chat.wait_for("Going on with the research that was stopped: 2 findings kept.")
            chat.wait_for("2 claims not supported")
            chat.wait_for(r"Store the report in memory\? \[y/N\]")
            chat.press("y\r")
            chat.wait_for("Stored as ragchat:report/")
            chat.enter("/why")
            chat.wait_for("coffee.md")
            chat.enter("/sources 1")
            chat.wait_for("for two minutes")
            chat.press(CTRL_D)
            chat.wait_for_end()


def test_retry_after_a_stopped_research_goes_on_with_it_and_leaves_the_answer_before(tmp_path: Path) -> None:
    held = Reply(REPORT, hold_after=1)
    rules = {pattern: held if reply.text == REPORT else reply for pattern, reply in script().items()}
    with OpenAIServer(rules={"What is tea": Reply("Leaves."), **rules}) as server:
        ragchat = program(tmp_path, server)
        variables = {**ragchat.variables, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        with Terminal([RAGCHAT], variables, ragchat.folder) as chat:
            chat.wait_for("2 documents")
            chat.enter("What is tea?")
            chat.wait_for("Leaves")
            chat.enter(f"/research {QUESTION}")
            assert held.reached.wait(LONGEST_SECONDS)
            chat.type(CTRL_C)
            chat.wait_for(r"\(stopped\)")
            held.go.set()
            chat.enter("/retry")
            chat.wait_for("Going on with the research that was stopped: 2 findings kept.")
            chat.wait_for(r"Store the report in memory\? \[y/N\]")
            chat.press("n\r")
            chat.enter("/export talk.md")
            chat.wait_for("Wrote talk.md")
            chat.press(CTRL_D)
            chat.wait_for_end()
        assert "Leaves." in (ragchat.folder / "talk.md").read_text(encoding="utf-8")


def test_a_tool_that_a_research_wants_to_call_is_allowed_by_the_user(tmp_path: Path) -> None:
    replies = [
        Reply('{"questions": []}'),
        Reply(tool_calls=[("web__Echo", {"text": WEB})]),
        Reply('{"findings": [{"passage": 2, "quote": "Espresso takes 25 seconds."}]}'),
        Reply("Espresso takes 25 seconds [1]."),
        Reply('{"unsupported": []}'),
    ]
    with OpenAIServer([Reply("{}")]) as server:
        ragchat = program(tmp_path, server)
        added = ragchat("mcp", "add", "web", "--env", f"PYTHONPATH={ENV['PYTHONPATH']}", "--", *SERVER)
        assert added.code == 0
        server.replies = replies
        variables = {**ragchat.variables, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        with Terminal([RAGCHAT], variables, ragchat.folder) as chat:
            chat.wait_for("2 documents")
            chat.enter("/mcp")
            chat.wait_for("^web: ready")
            chat.enter("/research How is espresso pressed?")
            chat.wait_for(rf"^Allow web__Echo\(text='{WEB}'\)\?")
            chat.press("y\r")
            chat.wait_for("^1 finding in 1 source: ")
            chat.wait_for(r"^Espresso takes 25 seconds \[1\]\.")
            chat.wait_for(r"mcp:web__Echo")
            chat.wait_for(r"Store the report in memory\? \[y/N\]")
            chat.press("\r")
            chat.press(CTRL_D)
            assert chat.wait_for_end() == 0
