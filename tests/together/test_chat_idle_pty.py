"""A server of 2025 that asks the user while the chat waits at its prompt, in a real terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.openai_server import OpenAIServer, Reply

if sys.platform == "win32":
    pytest.skip("Windows has no pseudo-terminals of this kind", allow_module_level=True)

from tests.support import asking_server
from tests.support.chats import CTRL_C, CTRL_D, chatting, with_model

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
FORM = {
    "id": "form",
    "method": "elicitation/create",
    "params": {"message": "What is your name?", "requestedSchema": SCHEMA},
}
QUESTION = {
    "id": "question",
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "What is two and two?"}}],
        "maxTokens": 100,
    },
}


class Asking:
    """The server, through its pipe."""

    def __init__(self, folder: Path) -> None:
        self._pipe, self._results = folder / "pipe", folder / "results"
        os.mkfifo(self._pipe)
        self.config = {
            "command": sys.executable,
            "args": [asking_server.__file__, str(self._pipe), str(self._results)],
        }

    def ask(self, *requests: dict[str, Any]) -> None:
        self._pipe.write_text("".join(json.dumps(request) + "\n" for request in requests), "utf-8")

    def end(self) -> None:
        self._pipe.write_text("end\n", "utf-8")

    @property
    def results(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._results.read_text("utf-8").splitlines()]


@pytest.fixture
def asking(tmp_path: Path) -> Asking:
    return Asking(tmp_path)


@pytest.fixture
def model() -> Iterator[OpenAIServer]:
    with OpenAIServer([Reply("It is four.")]) as model:
        yield model


LINE = "^❯ How hot is$"


def test_what_a_server_asks_at_the_prompt_leaves_the_typed_line_as_it_is(
    tmp_path: Path, model: OpenAIServer, asking: Asking
) -> None:
    program = with_model(tmp_path, model, {"mine": asking.config})
    with chatting(program, "mine") as chat:
        chat.type("How hot is")
        chat.wait_for(LINE)
        # Two questions at once are asked one after the other.
        asking.ask(FORM, QUESTION)
        chat.wait_for(r"^mine asks: What is your name\?")
        chat.wait_for("^name:")
        chat.press("Ada\r")
        chat.wait_for(r"^Send this to mine\?")
        chat.press("\r")
        chat.wait_for(r"^Let it ask\?")
        chat.press("y\r")
        chat.wait_for(r"(?s)It is four\..*^Send this to mine\?")
        chat.press("\r")
        chat.wait_for(LINE)
        # A form that is cancelled, and one whose server ends.
        asking.ask(FORM)
        chat.wait_for(r"(?s)(^name:.*){2}")
        chat.press(CTRL_C)
        chat.wait_for(rf"(?s)(^name:.*){{2}}{LINE}")
        asking.ask(FORM)
        chat.wait_for(r"(?s)(^name:.*){3}")
        chat.press("Ad")
        chat.wait_for(r"(?s)(^name:.*){2}^name: Ad$")  # What is typed later is for the line below.
        asking.end()
        chat.wait_for(rf"(?s)(^name:.*){{3}}{LINE}")
        chat.type(" tea?\r")
        chat.wait_for(r"^❯ How hot is tea\?")
        chat.wait_for(r"^test-model · \d+ \+")
        chat.press(CTRL_D)
        assert chat.wait_for_end() == 0
    form, question, cancelled = asking.results
    assert form == {"action": "accept", "content": {"name": "Ada"}}
    assert question["content"] == {"type": "text", "text": "It is four."}
    assert cancelled == {"action": "cancel"}
    assert "How hot is tea?" in json.dumps(model.requests[-1]["messages"])
