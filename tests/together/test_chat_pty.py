"""The chat as a person meets it: the installed program in a real terminal, with its real memory server.

Covers `ragchat.commands.chat` and `ragchat.ui.slash.indexing`.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.embeddings_server import embeddings_server
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.program import program_in

if sys.platform == "win32":
    pytest.skip("Windows has no pseudo-terminals of this kind", allow_module_level=True)

from tests.support.terminal import Terminal

RAGCHAT = str(Path(sys.executable).with_name("ragchat"))
ESCAPE = "\x1b"
CTRL_C, CTRL_D = "\x03", "\x04"
READY = r"^❯ Ask something"

Start = Callable[..., Terminal]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the chat in a folder with a document; sizes and environment as keywords."""
    program = program_in(tmp_path)
    (program.folder / "tea.md").write_text(
        "# Tea\n\n## Green\n\nGreen tea is brewed at 75 degrees for two minutes.\n", "utf-8"
    )
    with ExitStack() as terminals:

        def start(*words: str, columns: int = 100, rows: int = 40, **environ: str) -> Terminal:
            variables = {**program.variables, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **environ}
            return terminals.enter_context(
                Terminal([RAGCHAT, *words], variables, program.folder, columns, rows)
            )

        yield start


@pytest.mark.smoke
def test_from_the_first_prompt_to_a_cited_answer_and_out_again(start: Start) -> None:
    chat = start()
    chat.wait_for(READY)
    chat.wait_for("Your memory is empty")
    chat.wait_for("offline · 0 documents, 0 chunks")
    chat.enter("/inject tea.md")
    chat.wait_for("1 added")
    chat.wait_for(r"offline · 1 document, \d chunk")
    chat.enter("How hot is green tea brewed?")
    chat.wait_for(r"^\[1\] tea\.md:\d.*  Tea › Green$")
    chat.wait_for(r"^  Green tea is brewed at 75 degrees for two minutes\.$")
    chat.wait_for(r"^offline · \d")
    chat.enter("/why")
    chat.wait_for(r"^Times: retrieval")
    chat.wait_for(r"\[1\] +[01]\.\d\d +tea\.md:\d.*yes: ")
    chat.press(CTRL_D)
    assert chat.wait_for_end() == 0


def test_on_a_small_screen_the_top_of_an_answer_is_seen_when_the_prompt_returns(
    start: Start, tmp_path: Path
) -> None:
    folder = program_in(tmp_path).folder / "a folder with a long name" / "that is deep"
    folder.mkdir(parents=True)
    for n in range(1, 7):
        lines = [
            f"In week {n * 7 + m} the pump of house {n} was repaired by Carl, and oiled." for m in range(40)
        ]
        (folder / f"the log of house number {n}.md").write_text("# Log\n\n" + "\n".join(lines), "utf-8")
    chat = start(columns=80, rows=24)
    chat.wait_for("Your memory is empty")
    chat.enter("/inject .")
    chat.wait_for("7 added")
    for question in (
        "When was the pump of the house repaired?",
        "When was the pump of the house in Oslo repaired?",
    ):
        chat.enter(question)
        chat.wait_for(rf"(?s){re.escape(question)}.*· /more.*{READY}")
        chat.wait_for("^ offline · 7 documents")
        screen = [line.rstrip() for line in chat.screen.display]
        assert screen[-2].startswith("❯ Ask something")  # no row is empty below it
        [top] = [row for row, line in enumerate(screen) if line.startswith("[1] the log of house number ")]
        assert re.fullmatch(r"\[1\] the log of house number \d\.md:\d+–\d+  Log", screen[top])
        assert "the pump of house" in screen[top + 1] + screen[top + 2]
        chat.enter("/more")
        chat.wait_for(rf"(?s){re.escape(question)}.*^\[2\] the log of house number ")
        chat.press("x")
        chat.wait_for(rf"(?s){re.escape(question)}.*^❯ x")
        assert any(line.startswith("[2] ") for line in chat.screen.display)
        chat.press(CTRL_C)


def test_more_shows_all_of_a_list_that_does_not_fit(start: Start, tmp_path: Path) -> None:
    rows = "\n".join(f"| tent {n} | {n} people |" for n in range(1, 31))
    (program_in(tmp_path).folder / "tents.md").write_text(f"| Tent | For |\n|---|---|\n{rows}\n", "utf-8")
    chat = start(columns=80, rows=24)
    chat.wait_for("Your memory is empty")
    chat.enter("/inject tents.md")
    chat.wait_for("1 added")
    chat.enter("List all tents")
    chat.wait_for(rf"(?s)… \d+ more lines\n.*· /more.*{READY}")
    chat.enter("/more")
    chat.wait_for(rf"(?s)tent 15 .*tent 30 .*{READY}")
    chat.enter("/more")
    chat.wait_for("the last answer has no further cards")
    chat.press(CTRL_D)
    assert chat.wait_for_end() == 0


def test_a_prompt_asks_for_its_document_and_attaches_it(start: Start) -> None:
    with OpenAIServer([Reply("It says “brewed at 75 degrees” [1].")]) as server:
        chat = start(
            RAGCHAT_MODEL_BASE_URL=server.base_url, RAGCHAT_MODEL_NAME="test-model", OPENAI_API_KEY="k"
        )
        chat.wait_for("Your memory is empty")
        chat.enter("/inject tea.md")
        chat.wait_for("1 added")
        chat.enter("/prompt check-consistency")
        chat.wait_for(r"^The document to check\. Its URI, file name, title or id\.")
        chat.wait_for("^document:")
        chat.press("tea")
        chat.wait_for(r"^ +tea\.md")
        chat.type("\t\r")
        chat.wait_for(r"^Attached: tea\.md \(\d+ characters\)")
        chat.wait_for(r"brewed at 75 degrees” \[1\]")
        chat.wait_for(r"^\[1\] tea\.md:5")
        chat.enter("/prompt check-consistency")
        chat.wait_for(r"(?s)document:.*document:")
        chat.press(CTRL_C)
        chat.wait_for(r"^Nothing is asked\.")
        chat.press(CTRL_D)
        assert chat.wait_for_end() == 0
        assert "Green tea is brewed" in str(server.requests[-1]["messages"][-1])


def test_ctrl_c_stops_the_answer_and_not_the_chat_and_a_signal_both(start: Start) -> None:
    held = Reply("Once upon a time there was a kettle that never came to the boil.", hold_after=6)
    another = Reply("There was another kettle.", hold_after=3)
    with OpenAIServer([held, Reply("Short."), another]) as server:
        chat = start(
            RAGCHAT_MODEL_BASE_URL=server.base_url, RAGCHAT_MODEL_NAME="test-model", OPENAI_API_KEY="k"
        )
        chat.wait_for("Your memory is empty")
        chat.enter("Tell me a story")
        chat.wait_for("Once upon a time")
        chat.type(CTRL_C)
        chat.wait_for(r"^The answer was stopped\.")
        chat.enter("/copy")
        chat.wait_for("Copied")
        chat.enter("Another one")
        chat.wait_for(r"^Short\.")
        chat.wait_for(r"^test-model · \d")
        chat.enter("Tell me a story")
        chat.wait_for("There was")
        chat.signal(signal.SIGTERM)
        assert chat.wait_for_end() == 1
        assert chat.echoes
        assert not chat.screen.cursor.hidden


def end_by(chat: Terminal, number: signal.Signals) -> None:
    """A signal at the prompt ends the chat, and leaves the terminal as it was."""
    chat.wait_until(lambda: not chat.echoes, "prompt")
    chat.signal(number)
    assert chat.wait_for_end() == 1
    assert chat.echoes
    assert "Stopped." in chat.text


def test_ctrl_c_at_the_prompt_clears_the_line_and_a_signal_ends_the_chat(start: Start) -> None:
    chat = start()
    chat.wait_for("Your memory is empty")
    chat.type("half a question")
    chat.wait_for("^❯ half a question")
    chat.press(CTRL_C)
    chat.wait_for(READY)
    chat.press(CTRL_C)
    chat.wait_for("Ctrl-D leaves the chat")
    end_by(chat, signal.SIGTERM)


def test_pasted_lines_are_one_message_and_tab_completes(start: Start) -> None:
    chat = start()
    chat.wait_for("Your memory is empty")
    chat.type(f"{ESCAPE}[200~first line\n\tsecond {ESCAPE}[31m\u202eline{ESCAPE}[201~")
    chat.wait_for(r"^❯ first line\n·     second ␛\[31m�line")
    assert "\u202e".encode() not in chat.raw
    chat.press(CTRL_C)
    chat.type("/inj")
    chat.wait_for("load files and folders")
    chat.type("\t")
    chat.wait_for(r"^❯ /inject$")
    chat.type("te")
    chat.wait_for(r"^ +tea\.md$")
    chat.type("\t")
    chat.wait_for(r"/inject tea\.md")
    chat.press(CTRL_C)
    end_by(chat, signal.SIGHUP)


def test_a_narrow_terminal_wraps_and_loses_nothing(start: Start) -> None:
    chat = start(columns=30, rows=30)
    chat.wait_for("Your memory is empty")
    chat.enter("/inject tea.md")
    chat.wait_for("1 added")
    chat.enter("How hot is green tea brewed?")
    answer = "Green tea is brewed at 75 degrees for two minutes."

    def is_answered() -> bool:
        unwrapped = " ".join(line.strip("▌ ") for line in chat.text.splitlines())
        return answer in unwrapped.replace("  ", " ")

    # The toolbar begins like the line after the answer, and may be drawn before it.
    chat.wait_until(is_answered, answer)
    chat.wait_for(r"^offline · \d")
    assert all(len(line) <= 30 for line in chat.text.splitlines())
    chat.press(CTRL_D)
    assert chat.wait_for_end() == 0


def test_no_color_means_no_colours_and_no_line_drawn_twice(start: Start) -> None:
    chat = start(NO_COLOR="1")
    chat.wait_for("Your memory is empty")
    chat.enter("/inject tea.md")
    chat.wait_for("1 added")
    chat.enter("How hot is green tea brewed?")
    chat.wait_for(r"^offline · \d")
    chat.press(CTRL_D)
    assert chat.wait_for_end() == 0
    assert set(re.findall(rb"\x1b\[[\d;]*m", chat.raw)) <= {b"\x1b[0m"}
    assert b"\x1b]8" not in chat.raw
    assert chat.raw.count("▸ Green tea is brewed at 75 degrees".encode()) == 1


def test_a_dumb_terminal_gets_plain_lines(start: Start) -> None:
    chat = start(TERM="dumb")
    chat.wait_for("^>")
    chat.wait_for("Your memory is empty")
    chat.enter("/help")
    chat.wait_for("Ctrl-D +leave")
    chat.press(f"half{CTRL_C}")
    chat.wait_for("^> half\n>$")
    chat.enter("/quit")
    assert chat.wait_for_end() == 0
    assert ESCAPE.encode() not in chat.raw


def test_a_terminal_without_the_arrow_gets_a_plain_prompt(start: Start) -> None:
    chat = start(LC_ALL="en_US.ISO-8859-1", PYTHONIOENCODING="latin-1", PYTHONUTF8="0")
    chat.wait_for("^> Ask something")
    chat.wait_for("Your memory is empty")
    chat.press(CTRL_D)
    assert chat.wait_for_end() == 0


@pytest.mark.parametrize("kind", ["xterm-256color", "dumb"])
def test_a_session_that_does_not_exist_is_told(start: Start, kind: str) -> None:
    chat = start("--session", "nothing", TERM=kind)
    assert chat.wait_for_end() == 1
    assert "There is no session nothing." in chat.text


def test_a_model_that_cannot_be_reached_is_told_before_the_first_question(start: Start) -> None:
    chat = start(RAGCHAT_MODEL_BASE_URL="http://127.0.0.1:9/v1", RAGCHAT_MODEL_NAME="m", OPENAI_API_KEY="k")
    chat.wait_for(READY)
    chat.enter("Hello?")
    chat.wait_for(r"127\.0\.0\.1:9.* cannot be reached")
    chat.press(CTRL_D)
    assert chat.wait_for_end() == 0


# As vim does: Ctrl-C is a signal in it, and does not end it.
EDITOR = """
import os, signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, lambda *_: os.write(1, b"HEARD\\n"))
print("EDITING", flush=True)
sys.stdin.readline()
Path(sys.argv[1]).write_text("Answer in verse.")
"""


def test_ctrl_c_in_the_editor_is_the_editors(start: Start, tmp_path: Path) -> None:
    editor = tmp_path / "editor.py"
    editor.write_text(EDITOR, "utf-8")
    chat = start(EDITOR=f"{sys.executable} {editor}", VISUAL="")
    chat.wait_for("Your memory is empty")
    chat.enter("/system edit")
    chat.wait_for("^EDITING")
    chat.type(CTRL_C)
    # Ctrl-C discards what the terminal has not shown yet, such as the line break.
    chat.wait_for("HEARD")
    chat.type("\n")
    chat.wait_for("The system prompt is changed")
    chat.enter("/system")
    chat.wait_for(r"^Answer in verse\.")
    assert "(stopped)" not in chat.text
    chat.press(CTRL_D)
    assert chat.wait_for_end() == 0


# /index


FILES = 100


def test_index_loads_the_repository_beside_the_chat_and_the_next_chat_goes_on_with_it(
    start: Start, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    for number in range(FILES):
        (folder / f"{number}.md").write_text(f"# Note {number}\n\nWords of note {number}.", "utf-8")
    with embeddings_server() as embedder:
        embedder.hold_after = FILES / 3
        environ = {
            "RAGCHAT_EMBEDDER_KIND": "openai",
            "RAGCHAT_EMBEDDER_MODEL": "held",
            "RAGCHAT_EMBEDDER_BASE_URL": embedder.url,
        }
        chat = start(columns=200, **environ)
        chat.wait_for("Your memory is empty")
        chat.enter("/index")
        chat.wait_for("This repository has its own memory now")
        chat.wait_for("Loading in the background; /index shows how far it is")
        # The chat can be used meanwhile, and a second one is the same job.
        chat.wait_for(r"offline · loading [1-9]\d* of 10\d files")
        chat.enter("/index")
        chat.wait_for(r"^Loading \d+ of 10\d files\.")
        chat.enter("/index elsewhere")
        chat.wait_for("/index is not possible now: .* is being loaded")
        assert not re.search(r"\d added", chat.text)
        chat.press(CTRL_D)
        assert chat.wait_for_end() == 0
        assert (folder / ".ragchat" / ".gitignore").read_text("utf-8") == "*\n"
        embedder.go.set()
        chat = start(columns=200, **environ)
        chat.wait_for(f"Memory of this repository: {re.escape(str(folder))}")
        chat.enter("/index")
        chat.wait_for(r"[1-9]\d* added, [1-9]\d* unchanged")
        chat.wait_for(r"offline · 10\d documents")
        chat.enter("How hot is green tea brewed?")
        chat.wait_for(r"75 degrees for two minutes\.$")
        chat.press(CTRL_D)
        assert chat.wait_for_end() == 0


def test_index_outside_a_repository_needs_a_path(start: Start) -> None:
    chat = start()
    chat.wait_for("Your memory is empty")
    chat.enter("/index")
    chat.wait_for(r"is not in a git\s+repository\.")
    chat.enter("/index tea.md")
    chat.wait_for("1 added")
    chat.wait_for("offline · 1 document, 1 chunk")


def test_a_model_writes_to_memory_after_approval_and_a_server_of_the_project_waits_for_consent(
    start: Start, tmp_path: Path
) -> None:
    servers = {"mcpServers": {"theirs": {"command": "run-me"}}}
    (tmp_path / "folder" / ".mcp.json").write_text(json.dumps(servers), "utf-8")
    injects = [[("Inject", {"text": text})] for text in ("The boiler is blue.", "The door is red.")]
    replies = [
        Reply(tool_calls=injects[0]),
        Reply("One stored."),
        Reply(tool_calls=injects[1]),
        Reply("Two stored."),
    ]
    with OpenAIServer(replies) as server:
        chat = start(
            OPENAI_BASE_URL=server.base_url,
            OPENAI_API_KEY="k",
            RAGCHAT_MODEL_NAME="test-model",
            RAGCHAT_TOOLS_OFFERED="Query,Inject",
            columns=200,
        )
        chat.wait_for("names 1 MCP server that you have not agreed to: theirs")
        chat.enter("Remember the boiler.")
        chat.wait_for(r"^Allow Inject\(text='The boiler is blue\.'\)\?")
        chat.press("a\r")
        chat.wait_for("One stored")
        chat.wait_for("1 document, 1 chunk")
        chat.enter("And the door.")
        chat.wait_for("Two stored")
        assert chat.text.count("Allow Inject") == 1
        assert chat.text.count("Inject: Added: sha256:") == 2
