"""Servers in the chat as a person meets them: the installed program in a real terminal, with real servers.

Covers `ragchat.ui.dialog`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import typescript
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.servers import GOOD

if sys.platform == "win32":
    pytest.skip("Windows has no pseudo-terminals of this kind", allow_module_level=True)

from tests.support.chats import CTRL_C, CTRL_D, ESCAPE, chatting, with_model
from tests.support.terminal import Terminal


@contextmanager
def chat_with(folder: Path, model: OpenAIServer, mine: dict[str, Any] = GOOD) -> Iterator[Terminal]:
    """A chat with the server `mine`, ready for the first question."""
    with chatting(with_model(folder, model, {"mine": mine}), "mine") as chat:
        yield chat


def tool_results(server: OpenAIServer) -> list[str]:
    """The results of tools that the model got last."""
    messages: list[dict[str, Any]] = server.requests[-1]["messages"]
    return [message["content"] for message in messages if message["role"] == "tool"]


def test_a_form_is_filled_in_in_the_middle_of_an_answer_or_cancelled(tmp_path: Path) -> None:
    replies = [Reply("Let me ask.", tool_calls=[("mine__Ask", {})]), Reply("Hello Ada.")]
    with OpenAIServer(replies) as server, chat_with(tmp_path, server) as chat:
        chat.enter("Who am I?")
        chat.wait_for(r"^Allow mine__Ask\(\)\?")
        chat.press("y\r")
        chat.wait_for(r"^mine asks: What is your name\?")
        chat.wait_for(r"^/decline declines, Ctrl-C or Esc cancels\.")
        chat.wait_for("^name:")
        chat.press("\r")
        chat.wait_for(r"^It must be filled in\.")
        chat.press("Ada\r")
        chat.wait_for(r"^Send this to mine\?")
        chat.press("\r")
        chat.wait_for(r"^Hello Ada\.")
        assert tool_results(server) == ["accept: Ada"]
        for name, key in {"Ctrl-C": CTRL_C, "Escape": ESCAPE}.items():
            server.replies[:] = [Reply(tool_calls=[("mine__Ask", {})]), Reply(f"As {name} wishes.")]
            chat.enter(f"And for {name}?")
            chat.wait_for(rf"(?s)And for {name}.*^Allow mine__Ask")
            chat.press("y\r")
            chat.wait_for(rf"(?s)And for {name}.*^name:")
            chat.press(key)
            chat.wait_for(rf"^As {name} wishes\.")
            assert tool_results(server) == ["cancel: None"]
        chat.press(CTRL_D)
        assert chat.wait_for_end() == 0


def test_a_page_that_a_call_needs_is_visited_before_the_call_is_repeated(tmp_path: Path) -> None:
    typescript.need()
    call = ("mine__trigger-url-elicitation", {"url": "https://example.com/pay", "errorPath": True})
    replies = [Reply(tool_calls=[call]), Reply("You have paid.")]
    command, *arguments = typescript.STDIO_SERVER
    everything = {"command": command, "args": arguments}
    with OpenAIServer(replies) as server, chat_with(tmp_path, server, everything) as chat:
        chat.enter("Pay, please.")
        chat.wait_for(
            r"^Allow mine__trigger-url-elicitation\(url='https://example\.com/pay', errorPath=True\)"
        )
        chat.press("y\r")
        chat.wait_for(r"^  Address: https://modelcontextprotocol\.io\s+Host:    modelcontextprotocol\.io")
        chat.wait_for(r"^Open it in your browser\?")
        chat.press("y\r")
        chat.wait_for(r"^Press Enter when you are done there\.")
        chat.press("\r")
        chat.wait_for(r"^  Address: https://example\.com/pay\s+Host:    example\.com")
        chat.press("y\r")
        chat.wait_for(r"^You have paid\.")
        chat.press(CTRL_D)
        assert chat.wait_for_end() == 0
        [result] = tool_results(server)
        assert "User completed the URL elicitation flow" in result


def test_a_server_uses_the_model_after_the_user_has_seen_what_it_asks(tmp_path: Path) -> None:
    replies = [Reply(tool_calls=[("mine__Think", {})]), Reply("It is four."), Reply("It thought of four.")]
    with OpenAIServer(replies) as server, chat_with(tmp_path, server) as chat:
        chat.enter("Let it think.")
        chat.wait_for(r"^Allow mine__Think")
        chat.press("y\r")
        chat.wait_for(r"^mine wants to ask test-model, for at most 100 tokens:")
        chat.wait_for(r"^  user: What is two and two\?")
        chat.wait_for(r"^Let it ask\?")
        chat.press("y\r")
        chat.wait_for(r"(?s)^test-model replied:.*^It is four\..*^Send this to mine\?")
        chat.press("\r")
        chat.wait_for(r"^It thought of four\.")
        chat.press(CTRL_D)
        assert chat.wait_for_end() == 0
        assert tool_results(server) == ["test-model: It is four."]
