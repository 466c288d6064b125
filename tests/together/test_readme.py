"""What the README says: its transcript, its commands, its table of folders."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ragchat.arguments.parser import make_parser
from ragchat.offline.answer import NO_MODEL
from ragchat.servers.recipes import read_recipes
from ragchat.ui.approval import CHOICES
from ragchat.ui.slash.servers import ACTIONS
from tests.support.program import program_in

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
NOTES = {
    "flat.md": "# Flat\n\n## Boiler\n\nPressure must stay between 1.2 and 1.8 bar. "
    "Refill it with the blue valve under the sink.\n\n## Bins\n\nPaper goes out every second Tuesday.\n",
    "garden.md": "# Garden\n\n## Roses\n\nCut the roses in March.\n\n## Lawn\n\nMow it every ten days.\n",
}
# Lines of code blocks that begin with the command, without their comments.
COMMANDS = re.findall(r"^ragchat (.*?)(?: +#.*)?$", README, re.MULTILINE)


def words(text: str) -> list[str]:
    """Without the marks of quotations, which wrap differently on a terminal and a pipe."""
    return re.sub(r"(?m)^[▌>] |\*", "", text).split()


def test_the_transcript_is_what_the_chat_says(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path)
    (ragchat.folder / "notes").mkdir()
    for name, text in NOTES.items():
        (ragchat.folder / "notes" / name).write_text(text, encoding="utf-8")
    transcript = README.partition("```\nYour memory is empty.")[2].partition("```")[0]
    steps = [step.partition("\n") for step in transcript.split("\n❯ ")[1:]]
    done = ragchat(stdin="".join(f"{typed}\n" for typed, _, _ in steps))
    assert done.code == 0, done.err
    # The line with the time is for a terminal; the outcome of /inject and NO_MODEL go to stderr.
    expected = words("\n".join(re.sub(r"(?m)^offline · .*$", "", answer) for _, _, answer in steps[1:]))
    note = words(NO_MODEL)
    place = next(place for place in range(len(expected)) if expected[place:][: len(note)] == note)
    assert words(done.out) == expected[:place] + expected[place + len(note) :]
    assert words(done.err) == words(steps[0][2]) + note


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_in_a_code_block_parses(command: str) -> None:
    make_parser().parse_args(shlex.split(command))


def test_every_recipe_and_every_action_on_servers_is_described() -> None:
    table = README.partition("| recipe |")[2].partition("\n\n")[0]
    assert {*re.findall(r"^\| `([\w-]+)`", table, re.MULTILINE)} == {*read_recipes()}
    assert {*re.findall(r"`/mcp ([a-z]+)", README)} == {*ACTIONS}


def test_the_question_about_a_tool_is_the_one_that_the_chat_asks() -> None:
    assert f"Allow git__git_commit(message='Fix the date')? {CHOICES}\n" in README


def test_every_module_on_the_two_paths_exists() -> None:
    paths = README.partition("**The path of a question**")[2].partition("| folder |")[0]
    named = re.findall(r"`([\w/]+\.py)`", paths)
    assert len(named) > 10
    roots = [ROOT / "client" / "ragchat", ROOT / "server" / "ragmemory"]
    assert [name for name in named if not any((root / name).is_file() for root in roots)] == []
