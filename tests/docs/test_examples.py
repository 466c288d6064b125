"""Every code block of the documentation: it runs, or its commands and settings are accepted.

`console` blocks are run in a shell, and the `chat` blocks of a page as one conversation; their output is
compared, with `…` for any text. The blocks of a page share a home and a folder. The commands of `sh` blocks
need a network, a model or a terminal: their arguments are parsed.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from ragchat.arguments.parser import make_parser, usage_error
from ragchat.servers.recipes import read_recipes
from ragchat.ui.approval import CHOICES
from ragchat.ui.slash.servers import ACTIONS
from ragchat.ui.slash.table import BY_NAME
from ragconfig.prompt_files import read_template
from ragconfig.settings import load_settings
from ragmemory.cli import _parser as make_server_parser
from ragmemory.http.memories_file import read_memories
from tests.docs.pages import (
    PAGES,
    ROOT,
    Block,
    Step,
    blocks,
    folder_of_examples,
    name_of,
    read,
    run_line,
    steps,
)
from tests.support.memories import settings_for
from tests.support.program import Program

KINDS = ("console", "chat", "sh", "toml", "json", "markdown", "python", "text")
# Programs of others that commands may start with.
OTHERS = {"cd", "pip", "pipx", "ollama", "export", "git", "docker", "kubectl", "openssl", "sudo"}
OTHERS |= {"mkdir", "chmod", "cat", "echo", "printf", "eval"}
RUN = [
    pytest.param(page, id=name_of(page), marks=pytest.mark.smoke if page == PAGES[0] else ())
    for page in PAGES
    if any(block.page == page for block in blocks("console", "chat"))
]


def same(shown: str, real: str) -> bool:
    """Whether the words are the same; `…` in `shown` stands for any text."""
    words = [re.escape(word).replace("…", ".*") for word in words_of(shown)]
    return re.fullmatch(" ".join(words), " ".join(words_of(real)), re.DOTALL) is not None


def words_of(text: str) -> list[str]:
    """Without the marks of quotations and the line with the time, which only a terminal shows."""
    return re.sub(r"(?m)^[▌>] ?|^offline · .*$|\*", "", text).split()


def run_chat(ragchat: Program, asked: list[Step]) -> str:
    typed = " ".join(shlex.quote(step.typed) for step in asked)
    return run_line(ragchat, rf"printf '%s\n' {typed} | ragchat")


def test_every_block_says_what_it_is() -> None:
    assert [str(block) for block in blocks() if block.kind not in KINDS] == []


@pytest.mark.full
@pytest.mark.parametrize("page", RUN)
def test_the_program_prints_what_a_page_shows(page: Path, tmp_path: Path) -> None:
    ragchat = folder_of_examples(tmp_path)
    said = [step for block in blocks("chat") if block.page == page for step in steps(block, "❯ ")]
    if said:
        real = run_chat(ragchat, said)
        assert same("\n".join(step.shown for step in said), real), real
    for block in blocks("console"):
        for typed, shown in steps(block, "$ ") if block.page == page else ():
            real = run_line(ragchat, typed)
            assert same(shown, real), f"{block}: {typed}\n{real}"


@pytest.mark.parametrize("block", blocks("sh"), ids=str)
def test_every_command_is_one_that_exists(block: Block) -> None:
    targets = set(re.findall(r"^([\w-]+):", read(ROOT / "Makefile"), re.MULTILINE))
    for line in block.text.splitlines():
        words = shlex.split(line, comments=True)
        match words:
            case []:
                pass
            case ["ragchat", *arguments]:
                found = make_parser().parse_args(arguments)
                assert usage_error(found) == "", line
            case ["ragmemory", *arguments]:
                make_server_parser(commands=True).parse_args(arguments)
            case ["make", target, *_]:
                assert target in targets, line
            case [program, *_]:
                own = (ROOT / program).exists() or program.startswith(".venv/bin/")
                assert own or program in OTHERS, line


@pytest.mark.parametrize("block", blocks("toml"), ids=str)
def test_every_settings_block_is_accepted(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "example.toml"
    path.write_text(block.text, encoding="utf-8")
    if block.text.startswith("[script]"):
        ragchat = folder_of_examples(tmp_path)
        path.replace(ragchat.folder / path.name)
        assert "steps passed" in run_line(ragchat, f"ragchat run {path.name} || echo failed").splitlines()[-1]
    elif block.text.startswith("[notes]"):
        assert set(read_memories(path, settings_for(tmp_path))) == {"notes", "plans"}
    else:
        load_settings(path, environ={"RAGCHAT_HOME": str(tmp_path)}, folder=tmp_path)


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_every_json_block_is_json(block: Block) -> None:
    json.loads(block.text)


@pytest.mark.parametrize("block", blocks("markdown"), ids=str)
def test_every_prompt_file_is_one(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "example.md"
    path.write_text(block.text, encoding="utf-8")
    assert read_template(path).head.description


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_every_program_compiles(block: Block) -> None:
    compile(block.text, str(block), "exec")


def test_every_slash_command_that_a_page_names_exists() -> None:
    # In a code span: alone, or before its arguments.
    named = {
        (name_of(page), name)
        for page in PAGES
        for name in re.findall(r"`/([a-z]+)(?: [^`]*)?`", read(page))
        # Paths of the server, and what is typed into a form.
        if name not in ("sse", "messages", "health", "metrics", "decline")
    }
    assert [(page, name) for page, name in sorted(named) if name not in BY_NAME] == []


def test_every_recipe_and_every_action_on_servers_is_described() -> None:
    servers = read(ROOT / "docs" / "guide" / "servers.md")
    table = servers.partition("| recipe |")[2].partition("\n\n")[0]
    assert {*re.findall(r"^\| `([\w-]+)`", table, re.MULTILINE)} == {*read_recipes()}
    assert {*re.findall(r"`/mcp ([a-z]+)", servers)} == {*ACTIONS}
    assert f"Allow git__git_commit(message='Fix the date')? {CHOICES}\n" in servers
