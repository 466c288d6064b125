"""Approving tools in the chat, at a real terminal: every reply, what it is remembered for, and Ctrl-C."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ragchat.servers.permissions import Permissions, Rule
from tests.support.mcp_process import ENV, SERVER
from tests.support.mcp_server import make_whole_server
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.processes import LONGEST_SECONDS
from tests.support.program import Program, program_in

if sys.platform == "win32":
    pytest.skip("Windows has no pseudo-terminals of this kind", allow_module_level=True)

from tests.support.terminal import Terminal

CTRL_C, CTRL_D = "\x03", "\x04"
# The line after an answer.
STATUS = r"^test-model · \d"
ECHO = Reply(tool_calls=[("mine__Echo", {"text": "hello"})])
QUIET = Reply(tool_calls=[("mine__Quiet", {})])
SHOUT = Reply(tool_calls=[("mine__Shout", {})])
ENTRY = {"command": SERVER[0], "args": SERVER[1:], "env": {"PYTHONPATH": ENV["PYTHONPATH"]}}


class Chat:
    """Chats with a scripted model and a server of tools."""

    def __init__(self, program: Program, model: OpenAIServer, terminals: ExitStack) -> None:
        self.program = program
        self.model = model
        self._terminals = terminals
        self._asked = 0
        self.terminal: Terminal

    def start(self) -> None:
        variables = {**self.program.variables, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        command = [sys.executable, "-m", "ragchat"]
        self.terminal = self._terminals.enter_context(
            Terminal(command, variables, self.program.folder, 200, 40)
        )
        self.terminal.wait_for("Your memory is empty")

    def ask(self, reply: Reply, *typed: str) -> str:
        """Ask a question to which the model calls a tool, type what follows; the result the model got."""
        self._asked += 1
        self.model.replies[:] = [reply, Reply(f"Answer {self._asked} ends here.")]
        before = {pattern: self._seen(pattern) for pattern in (*typed, STATUS)}
        self.terminal.enter(f"Question {self._asked}")
        for text in typed:
            if text.startswith("^"):
                self._wait_for_another(text, before)
            else:
                self.terminal.enter(text)
        self.terminal.wait_for(rf"^Answer {self._asked} ends here\.")
        self._wait_for_another(STATUS, before)
        results = [m["content"] for m in self.model.requests[-1]["messages"] if m["role"] == "tool"]
        return str(results[-1])

    def _wait_for_another(self, pattern: str, before: dict[str, int]) -> None:
        self.terminal.wait_until(lambda: self._seen(pattern) > before[pattern], pattern)

    def _seen(self, pattern: str) -> int:
        return len(re.findall(pattern, self.terminal.text, re.MULTILINE)) if pattern.startswith("^") else 0

    def leave(self) -> None:
        self.terminal.press(CTRL_D)
        assert self.terminal.wait_for_end() == 0


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Chat]:
    with OpenAIServer() as model, ExitStack() as terminals:
        program = program_in(
            tmp_path, OPENAI_BASE_URL=model.base_url, OPENAI_API_KEY="k", RAGCHAT_MODEL_NAME="test-model"
        )
        write(program.home / "config" / "mcp.json", mine=ENTRY)
        yield Chat(program, model, terminals)


def write(file: Path, **servers: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"mcpServers": servers}))


ALLOW_ECHO = r"^Allow mine__Echo\(text='hello'\)\?"


def count(chat: Chat, text: str) -> int:
    return chat.terminal.text.count(text)


def test_yes_is_for_once_session_for_this_chat_and_always_and_consent_for_the_next_ones_too(
    chat: Chat,
) -> None:
    write(chat.program.folder / ".mcp.json", theirs=ENTRY)
    chat.start()
    chat.terminal.enter("/mcp")
    chat.terminal.wait_for("^theirs: waits for your consent")
    chat.terminal.enter("/mcp start theirs")
    chat.terminal.wait_for(r"^theirs: ready, \d+ tools")
    assert chat.ask(ECHO, ALLOW_ECHO, "y") == "hello"
    assert "not allow" in chat.ask(ECHO, ALLOW_ECHO, "n")
    assert chat.ask(ECHO, ALLOW_ECHO, "s") == "hello"
    # Its result is text that is not the user's: only in another conversation nothing is asked.
    chat.terminal.enter("/new")
    chat.terminal.wait_for("^A new conversation")
    asked = count(chat, "Allow mine__Echo")
    assert chat.ask(ECHO) == "hello"
    assert count(chat, "Allow mine__Echo") == asked
    assert chat.ask(QUIET, r"^Allow mine__Quiet\(\)\?", "a") == "quiet"
    chat.leave()
    chat.start()
    chat.terminal.enter("/mcp")
    chat.terminal.wait_for(r"^theirs: ready, \d+ tools")
    assert chat.ask(QUIET) == "quiet"
    assert count(chat, "Allow mine__Quiet") == 0
    assert "not allow" in chat.ask(ECHO, ALLOW_ECHO, "n")
    chat.leave()


def test_a_changed_tool_is_shown_arguments_are_edited_what_was_read_is_named_and_never_is_never(
    chat: Chat,
) -> None:
    tools = {name: tool.info for name, tool in make_whole_server().tools.items()}
    changed = replace(tools["Echo"], description="Gives the text.")
    Permissions(chat.program.home / "config").remember("mine", [tools["Shout"], changed], Rule.ALWAYS)
    chat.start()
    edited = chat.ask(
        ECHO,
        *(r"^.*has changed since you allowed it", r"^\+Gives the text back\."),
        *("e", "^Arguments as JSON", '\x15{"text": "edited"}', "^Allow.*edited", "y"),
    )
    assert edited == "edited"
    # A tool with side effects asks even under "always".
    assert "not allow" in chat.ask(SHOUT, r"^.*not yours: the result of mine__Echo\.", "n")
    assert "not allow" in chat.ask(ECHO, ALLOW_ECHO, "v")
    assert "forbidden" in chat.ask(ECHO)
    chat.leave()


def test_only_what_is_typed_after_the_question_answers_it_and_ctrl_c_ends_it_and_a_call(chat: Chat) -> None:
    Permissions(chat.program.home / "config").remember(
        "mine", [make_whole_server().tools["Wait"].info], Rule.ALWAYS
    )
    chat.start()
    held = Reply("Let me see what I can do.", tool_calls=ECHO.tool_calls, hold_after=3)
    chat.model.replies[:] = [held, Reply("As you wish.")]
    chat.terminal.enter("Say hello.")
    assert held.reached.wait(LONGEST_SECONDS)
    chat.terminal.type("and then always write to me\r")
    held.go.set()
    chat.terminal.wait_for(ALLOW_ECHO)
    chat.terminal.press("n\r")
    chat.terminal.wait_for(r"^As you wish\.")
    assert "not allow" in str(chat.model.requests[-1]["messages"][-1]["content"])
    chat.model.replies[:] = [Reply(tool_calls=[("mine__Wait", {})])]
    chat.terminal.enter("Wait for it")
    chat.terminal.wait_for("mine__Wait")
    chat.terminal.type(CTRL_C)
    chat.terminal.wait_for(r"^\(stopped\)")
    chat.model.replies[:] = [ECHO, Reply("Never asked for.")]
    chat.terminal.enter("Say it again.")
    chat.terminal.wait_for(rf"(?s){ALLOW_ECHO}.*{ALLOW_ECHO}")
    chat.terminal.press(CTRL_C)
    chat.terminal.wait_for(r"(?s)^\(stopped\).*^\(stopped\)")
    chat.leave()
    assert "Never asked for." not in chat.terminal.text
