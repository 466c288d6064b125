"""The loop of the chat with keys from a pipe: what opens behind the prompt, what can go wrong there.

Covers `approval` and `background`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from prompt_toolkit.output.vt100 import Vt100_Output

from ragchat.conversation import Conversation
from ragchat.errors import MemoryUnavailable
from ragchat.ui.chat.interactive import Chat
from tests.support.memory import memory_in
from tests.support.screens import PyteFile
from tests.support.turns import no_servers, settings_in

LONGEST_SECONDS = 60


@pytest.fixture(autouse=True)
def xterm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


def opener(folder: Path, *, resume: bool = False) -> AbstractAsyncContextManager[Conversation]:
    @asynccontextmanager
    async def open_conversation() -> AsyncIterator[Conversation]:
        settings = settings_in(folder)
        async with (
            memory_in(folder) as memory,
            Conversation(settings, memory, no_servers(settings)) as conversation,
        ):
            if resume:
                await conversation.resume()
            yield conversation

    return open_conversation()


async def chat(folder: Path, keys: str, *, resume: bool = False) -> str:
    """The screen after these keys, which must leave the chat."""
    file = PyteFile(100, 40)
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        pipe.send_text(keys)
        with anyio.fail_after(LONGEST_SECONDS):
            open_conversation = partial(opener, folder, resume=resume)
            await Chat(folder / "state", open_conversation, stdout=file, stderr=file).run()
    return file.shown


async def test_messages_typed_before_everything_is_open_are_answered(tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text("Green tea is brewed at 75 degrees.\n", "utf-8")
    shown = await chat(tmp_path, f"/inject {tmp_path / 'tea.md'}\rHow hot is green tea?\r/why\r\x04")
    assert "1 added" in shown
    assert "[1] tea.md:1\n  Green tea is brewed at 75 degrees.\n" in shown
    assert "Times: retrieval" in shown


async def test_quit_leaves_the_chat(tmp_path: Path) -> None:
    assert "There is no command /nothing" in await chat(tmp_path, "/nothing\r/quit\rnever read\r")


async def test_an_empty_memory_is_announced_and_y_loads_the_readme(tmp_path: Path) -> None:
    file = PyteFile(100, 40)
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        chat = Chat(tmp_path / "state", lambda: opener(tmp_path), stdout=file, stderr=file)
        async with anyio.create_task_group() as tasks:
            with anyio.fail_after(LONGEST_SECONDS):
                tasks.start_soon(chat.run)
                await file.until("memory is empty")
                pipe.send_text("y\r\x04")
    assert "The README is in memory" in file.shown


async def test_a_resumed_conversation_is_shown(tmp_path: Path) -> None:
    await chat(tmp_path, "what is new?\r\x04")
    # Its answer waits until everything is open, which leaving at once would not.
    shown = await chat(tmp_path, "/nothing\r\x04", resume=True)
    assert "what is new?" in shown
    assert "(1 turn)" in shown


async def test_a_conversation_that_cannot_be_opened_ends_the_chat_with_its_error(tmp_path: Path) -> None:
    @asynccontextmanager
    async def broken() -> AsyncIterator[Conversation]:
        raise MemoryUnavailable("it is not there")
        yield

    with create_pipe_input(), create_app_session(output=DummyOutput()), pytest.raises(MemoryUnavailable):
        with anyio.fail_after(LONGEST_SECONDS):
            await Chat(tmp_path / "state", broken, stdout=PyteFile(80, 24)).run()


async def test_lines_that_are_pasted_while_a_message_is_handled_are_one_message(tmp_path: Path) -> None:
    file = PyteFile(100, 40)
    output = Vt100_Output(file, lambda: Size(40, 100))
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=output):
        pipe.send_text("/nothing\r/quit\r")
        with anyio.fail_after(LONGEST_SECONDS):
            await Chat(tmp_path / "state", lambda: opener(tmp_path), stdout=file, stderr=file).run()
    marks = ["\x1b[?2004l", "\x1b[?2004h"]
    before, _, after = file.getvalue().partition("There is no command /nothing")
    assert max(marks, key=before.rfind) == marks[1]
    assert max(marks, key=after.rfind) == marks[0]
