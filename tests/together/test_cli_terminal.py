"""Commands on a terminal: progress bars (`ragchat.ui.render.progress`), colours, the width of tables."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.openai_server import OpenAIServer, Reply
from tests.support.program import Program, program_in

if sys.platform == "win32":
    pytest.skip("there are no pseudo-terminals", allow_module_level=True)

from tests.support.terminal import Terminal


@pytest.fixture
def ragchat(tmp_path: Path) -> Program:
    ragchat = program_in(tmp_path, TERM="xterm-256color")
    for number in range(30):
        text = f"# Note {number}\n\nThe bell number {number} was cast in {1800 + number}.\n"
        (ragchat.folder / f"{number}.md").write_text(text, encoding="utf-8")
    return ragchat


def on_terminal(ragchat: Program, *words: str, **environ: str) -> tuple[int, Terminal]:
    """The command's exit code, and the terminal with all that came."""
    command = [sys.executable, "-m", "ragchat", *words]
    with Terminal(command, {**ragchat.variables, **environ}, cwd=ragchat.folder) as terminal:
        return terminal.wait_for_end(), terminal


def test_a_loading_draws_a_bar_and_leaves_only_its_outcome(ragchat: Program) -> None:
    code, terminal = on_terminal(ragchat, "inject", ".", CI="1")
    assert code == 0
    assert b"of 30 files" in terminal.raw
    assert terminal.text.split() == ["30", "added", "(30", "chunks)."]


@pytest.mark.full
def test_only_the_first_load_says_where_to_begin(ragchat: Program) -> None:
    (ragchat.folder / "tea.md").write_text("# Tea\n\n## When is it drunk?\n\nIt is drunk at four.\n")
    code, terminal = on_terminal(ragchat, "inject", "tea.md", CI="")
    assert code == 0
    assert 'They answer, for example:\n  ragchat ask "When is it drunk?"' in terminal.text
    code, terminal = on_terminal(ragchat, "inject", ".", CI="")
    assert (code, "They answer" in terminal.text) == (0, False)
    with OpenAIServer([Reply("Bells were cast [1].")]) as server:
        model = {"RAGCHAT_MODEL_BASE_URL": server.base_url, "RAGCHAT_MODEL_NAME": "test-model"}
        code, terminal = on_terminal(ragchat, "--memory", "other.db", "inject", ".", CI="", **model)
    assert (code, "Bells were cast [1]." in terminal.text) == (0, True), terminal.text


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_who_wants_no_codes_gets_none(ragchat: Program, environ: dict[str, str]) -> None:
    for words in (
        ["inject", "."],
        ["ask", "When was bell number 7 cast?"],
        ["query", "bell"],
        ["memory", "ls"],
    ):
        code, terminal = on_terminal(ragchat, *words, **environ)
        assert (code, b"\x1b" in terminal.raw) == (0, False)


def test_a_table_fits_the_terminal(ragchat: Program) -> None:
    ragchat("inject", ".")
    code, terminal = on_terminal(ragchat, "memory", "ls")
    lines = terminal.text.rstrip().splitlines()
    assert (code, len(lines)) == (0, 31)
    assert lines[0].split() == ["document", "chunks", "changed", "id", "title"]
