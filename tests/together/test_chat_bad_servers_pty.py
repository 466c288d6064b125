"""A chat beside servers that misbehave, in a real terminal: what a user types is drawn at once."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from tests.support.openai_server import OpenAIServer, Reply
from tests.support.processes import processes_in
from tests.support.servers import DEAD, GOOD, LOGGING, NOISY, RUBBISH, SILENT, STUBBORN

if sys.platform != "linux":
    pytest.skip("the processes of a folder are found on Linux", allow_module_level=True)

from tests.support.chats import CTRL_C, CTRL_D, chatting, with_model
from tests.support.terminal import Terminal

TEXT = "The quick brown fox types on while six servers start."
ECHO = ("good__Echo", {"text": "hello"})


def seconds_of_keys(chat: Terminal) -> list[float]:
    """How long each key of TEXT takes until it is on the screen, from the shortest to the longest.

    Without the time in which the chat, or this process, was ready and others ran: on a busy machine,
    that is most of it.
    """

    def clock() -> float:
        return time.perf_counter() - waited(chat.pid) - waited(os.getpid())

    seconds = []
    for count in range(1, len(TEXT) + 1):
        typed = TEXT[:count].rstrip()
        began = clock()
        chat.type(TEXT[count - 1])
        chat.wait_for(f"^❯ {typed}")
        seconds.append(clock() - began)
    return sorted(seconds)


def waited(pid: int) -> float:
    """The seconds in which the main thread of a process was ready, and waited for a processor.

    0 where the kernel does not count them.
    """
    counted = Path(f"/proc/{pid}/schedstat")
    return int(counted.read_text().split()[1]) / 1e9 if counted.exists() else 0.0


def test_keys_are_drawn_at_once_beside_servers_that_misbehave(tmp_path: Path) -> None:
    bad = {"dead": DEAD, "silent": SILENT, "noisy": NOISY, "rubbish": RUBBISH, "logging": LOGGING}
    with OpenAIServer([Reply(tool_calls=[ECHO]), Reply("It works.")]) as model:
        program = with_model(tmp_path, model, {**bad, "good": {**GOOD, "trusted": True}})
        with chatting(program) as chat:
            chat.wait_for(r"servers? cannot be used: dead \(failed\)")
            seconds = seconds_of_keys(chat)
            # A chat that is disturbed takes seconds.
            assert seconds[len(seconds) // 2] < 0.15
            assert seconds[len(seconds) * 99 // 100 - 1] < 1
            chat.enter()
            chat.wait_for(r"^It works\.")
            chat.wait_for(r"^test-model · \d+ \+")
            chat.press(CTRL_D)
            assert chat.wait_for_end() == 0
        assert processes_in(program.folder) == {}
        assert '"content": "hello"' in json.dumps(model.requests[-1]["messages"])


def test_the_user_sees_which_server_does_not_end_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    with OpenAIServer() as model:
        program = with_model(tmp_path, model, {"stubborn": STUBBORN, "good": GOOD})
        with chatting(program, "good") as chat:
            chat.press(CTRL_D)
            chat.wait_for(r"^Waiting for stubborn to end\. Ctrl-C ends it at once\.")
            began = time.perf_counter()
            chat.type(CTRL_C)
            assert chat.wait_for_end() == 0
            # Without Ctrl-C it takes at least 4.5 seconds more; on a busy machine a program ends slowly.
            assert time.perf_counter() - began < 4
        assert processes_in(program.folder) == {}
