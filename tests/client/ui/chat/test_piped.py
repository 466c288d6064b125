"""Questions on a pipe: one a line, one answer each."""

from __future__ import annotations

import os
import sys
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from ragchat.errors import StdinUnusable
from ragchat.ui.chat.piped import read_lines
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.program import Program, program_in


@pytest.fixture
def ragchat(tmp_path: Path) -> Program:
    ragchat = program_in(tmp_path)
    (ragchat.folder / "tea.md").write_text("# Tea\n\nGreen tea is brewed at 75 degrees.\n", "utf-8")
    (ragchat.folder / "bad.md").write_text("Terminals obey \x1b[31m this one.\n", "utf-8")
    return ragchat


def test_each_line_gets_an_answer_with_sources_and_no_colours(ragchat: Program) -> None:
    done = ragchat(stdin="/inject tea.md\n\nHow hot is green tea?\r\n  \nWho sells zebras?\n")
    assert done.code == 0, done.err
    assert "75 degrees" in done.out
    assert "[1] tea.md:" in done.out
    assert "\x1b" not in done.out + done.err
    assert "❯" not in done.out
    assert "1 added" in done.err


def test_a_line_that_fails_does_not_end_the_rest(ragchat: Program) -> None:
    done = ragchat(stdin="/inject tea.md\n\n/nothing\nHow hot is green tea?\n")
    assert done.code == 1
    assert "\nThis was line 3: /nothing\n" in done.err
    assert "There is no command /nothing." in done.err
    assert "75 degrees" in done.out


@pytest.mark.full
def test_quit_ends_the_reading(ragchat: Program) -> None:
    done = ragchat(stdin="/quit\n/nothing\n")
    assert (done.code, done.out, done.err) == (0, "\n", "")


@pytest.mark.full
def test_empty_input_is_not_a_failure(ragchat: Program) -> None:
    assert ragchat(stdin="").code == 0


@pytest.mark.full
def test_escape_sequences_in_documents_do_not_get_through(ragchat: Program) -> None:
    done = ragchat(stdin="/inject bad.md\nWhat do terminals obey?\n/sources\n/query terminals\n")
    assert "␛[31m" in done.out
    assert "\x1b" not in done.out + done.err


@pytest.mark.full
def test_hints_about_the_context_are_those_of_the_chat_or_of_the_command_line(tmp_path: Path) -> None:
    full = Reply(status=400, code="context_length_exceeded", message="You requested\n5210 tokens\x1b.")
    with OpenAIServer(rules={"again": full}) as server:
        ragchat = program_in(tmp_path, RAGCHAT_MODEL_NAME="auto", OPENAI_BASE_URL=server.base_url)
        chatted, asked = ragchat(stdin="Why?\nAgain?\n"), ragchat("ask", "-c", "Again?")
        first = ragchat("ask", "--no-session", "Again?")
    assert "start a new session with /new" in chatted.err
    assert "ask without -c and --session" in asked.err
    assert "/new" not in asked.err
    assert "more than test-model can hold: You requested 5210 tokens␛." in first.err
    assert "context_tokens to what the model holds.\n" in first.err


@pytest.mark.full
def test_forced_colours_do_not_reach_a_pipe(tmp_path: Path) -> None:
    done = program_in(tmp_path, FORCE_COLOR="1", TTY_COMPATIBLE="1")(stdin="/help\n")
    assert "/inject" in done.out
    assert "\x1b" not in done.out


@pytest.mark.full
def test_the_last_session_is_resumed(ragchat: Program) -> None:
    ragchat(stdin="/inject tea.md\nHow hot is green tea?\n")
    done = ragchat("-c", stdin="/sources\n")
    assert done.code == 0, done.err
    assert "75 degrees" in done.out


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"one\ntwo", ["one", "two"]),
        (b"one\r\n\ntwo\n", ["one", "", "two"]),
        (b"\xef\xbb\xbfone\n", ["one"]),
        (b"\xff\n", ["\ufffd"]),
        ("ä日\n".encode(), ["ä日"]),
    ],
)
async def test_lines_come_without_their_ends(data: bytes, lines: list[str]) -> None:
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    with anyio.fail_after(60):
        async with aclosing(read_lines(reading)) as found:
            assert [line async for line in found] == lines
    os.close(reading)


async def test_a_line_without_an_end_is_refused_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragchat.ui.chat.piped.MAX_LINE", 1000)
    reading, writing = os.pipe()
    os.write(writing, b"x" * 1001)
    with anyio.fail_after(60):
        async with aclosing(read_lines(reading)) as found:
            with pytest.raises(StdinUnusable) as caught:
                await anext(found)
    os.close(writing)
    os.close(reading)
    assert str(caught.value) == "The input from stdin has a line of more than 1,000 characters."


async def test_lines_are_not_read_far_ahead_of_their_use() -> None:
    """A program that writes lines without end must wait."""

    def write_without_end() -> None:
        while os.write(writing, b"x\n" * 1000):
            pass

    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with anyio.fail_after(60):
        async with aclosing(read_lines(reading)) as found:
            os.write(writing, b"first\n")
            assert await anext(found) == "first"
            with pytest.raises(BlockingIOError):
                write_without_end()
    os.close(writing)
    os.close(reading)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows opens no folders")
async def test_a_folder_as_stdin_cannot_be_read(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    with anyio.fail_after(60), pytest.raises(StdinUnusable, match="cannot be read: is a directory"):
        async with aclosing(read_lines(folder)) as found:
            await anext(found)
    os.close(folder)


async def test_a_line_is_there_before_the_pipe_ends() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"one\ntw")
    with anyio.fail_after(60):
        async with aclosing(read_lines(reading)) as found:
            assert await anext(found) == "one"
            os.close(writing)
            assert await anext(found) == "tw"
    os.close(reading)
