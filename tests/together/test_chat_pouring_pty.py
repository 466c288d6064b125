"""A model's server that pours: the chat stays small, and Ctrl-C stops it.

Covers `ragchat.llm.bounded`.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path

import pytest

from tests.support.openai_server import OpenAIServer, Reply, poured

if sys.platform != "linux":
    pytest.skip("the memory of a process is read from /proc", allow_module_level=True)

from tests.benchmarks.raw import peak_mebibytes, resident_mebibytes
from tests.support.chats import CTRL_C, chatting, with_model

MIB = 1 << 20
# For an event of `model.message_bytes`, as bytes and as text, and some to spare.
MOST_MIB = 100
# Half a second on a machine that does nothing else.
STOP_SECONDS = 3.0
BEGUN = poured(content="Begun.\n\n")
PARAGRAPHS = poured(content="some words in a line of text\n\n" * 4)
EVENT = (b'data: {"choices": "', b"x" * MIB)


def has_poured(model: OpenAIServer, count: int) -> bool:
    return model.poured > count


def test_ctrl_c_stops_a_stream_that_pours(tmp_path: Path) -> None:
    words, keep_alives, event = (PARAGRAPHS,), (b": alive\n\n" * 1000,), EVENT
    with OpenAIServer() as model:
        program = with_model(tmp_path, model, {})
        program.environ["RAGCHAT_MODEL_ANSWER_CHARACTERS"] = "100000000"
        program.environ["RAGCHAT_MODEL_MESSAGE_BYTES"] = str(1 << 32)
        with chatting(program) as chat:
            for name, data in {"words": words, "keep-alives": keep_alives, "one event": event}.items():
                pouring = Reply(pours=(BEGUN, *data), content_type="text/event-stream")
                model.replies[:] = [pouring, Reply(f"After {name}.")]
                enough = partial(has_poured, model, model.poured + MIB)
                chat.enter(f"What are {name}?")
                chat.wait_for(rf"(?s)What are {name}.*Begun")
                chat.wait_until(enough, "much of the stream")
                began = time.monotonic()
                chat.type(CTRL_C)
                chat.wait_for(rf"(?s)What are {name}.*^The answer was stopped\.")
                assert time.monotonic() - began < STOP_SECONDS
                chat.enter("And now?")
                chat.wait_for(rf"After {name}\.")


def test_an_event_of_a_gigabyte_ends_the_answer_and_what_came_before_is_saved(tmp_path: Path) -> None:
    pouring = Reply(pours=(BEGUN, *EVENT), content_type="text/event-stream")
    with OpenAIServer([pouring]) as model:
        program = with_model(tmp_path, model, {})
        with chatting(program) as chat:
            before = resident_mebibytes(chat.pid) or 0
            chat.enter("What is it?")
            chat.wait_for("The answer was cut off at the limit model.message_bytes = 8388608")
            chat.wait_for("test-model · ")
            assert (peak_mebibytes(chat.pid) or 0) - before < MOST_MIB
            assert model.poured < 64 * MIB
        [session] = program("session", "ls", "--json").json["sessions"]
        assert session["turns"] == 1
