"""The command line: what is accepted, and what each command is.

Covers the arguments: `ragchat.arguments.declaring`, `ragchat.arguments.memory`, `ragchat.arguments.parser`,
`ragchat.arguments.program`, `ragchat.arguments.questions`, `ragchat.arguments.mcp`,
`ragchat.arguments.sessions`, `ragchat.arguments.sources`, `ragchat.arguments.table`; and
`ragchat.commands.invocation`.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from inspect import signature

import pytest

from ragchat import __version__
from ragchat.arguments.declaring import Command
from ragchat.arguments.parser import make_parser
from ragchat.arguments.table import COMMANDS, GROUPS
from ragchat.cli import main


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_of_the_table_has_its_function(command: Command) -> None:
    module, _, name = command.target.partition(":")
    function = getattr(import_module(f"ragchat.commands.{module}"), name)
    assert list(signature(function).parameters) == ["run"]


def test_every_group_has_commands() -> None:
    assert {command.name.partition(" ")[0] for command in COMMANDS if " " in command.name} == set(GROUPS)


@pytest.mark.parametrize(
    "words",
    [
        ["--memory", "m.db", "-v", "memory", "ls"],
        ["memory", "--memory", "m.db", "-v", "ls"],
        ["memory", "ls", "--memory", "m.db", "-v"],
        ["--memory", "other.db", "memory", "ls", "-v", "--memory", "m.db"],
    ],
)
def test_global_flags_stand_before_or_after_the_command_and_the_last_wins(words: list[str]) -> None:
    arguments = make_parser().parse_args(words)
    assert (arguments.target, arguments.memory, arguments.verbose) == ("memory:ls", "m.db", True)


def test_flags_of_a_conversation_stand_on_both_sides_too() -> None:
    for words in (["--offline", "ask", "x"], ["ask", "x", "--offline"], ["--offline"]):
        assert make_parser().parse_args(words).offline is True
    assert make_parser().parse_args(["-c"]).target == "chat:chat"


@pytest.mark.parametrize(
    "words",
    [
        ["--nonsense"],
        ["notebook", "edit", "mine"],
        ["nonsense"],
        ["serve", "--port", "many"],
        ["memory"],
        ["memory", "nonsense"],
        ["ask"],
        ["query"],
        ["inject"],
        ["run"],
        ["session", "show"],
        ["query", "x", "-k", "0"],
        ["query", "x", "-k", "-3"],
        ["query", "x", "-k", "101"],
        ["query", "x", "-k", "many"],
        ["mcp", "config", "emacs"],
        ["ask", "x", "-c", "--session", "y"],
        ["memory", "ls", "tea", "--uri", "*"],
        ["ask", "x", "--no-session", "-c"],
        ["--session", "y", "ask", "x", "--no-session"],
        ["ask", "x", "-f", "a.log", "--in", "notes"],
        ["ask", "x", "--in", ""],
        ["ask", "x", "--in", "notes", "--in", "letters"],
        ["query", "x", "--in", "notes", "--in", "letters"],
        ["--model", "m", "ask", "x", "--offline"],
        ["--notebook", "mine", "query", "x"],
        ["inject", "file.md", "--uri", "note:1"],
        ["inject", "-", "--addresses", "-"],
        ["inject", "/dev/stdin"],
        ["inject", "a.md", "/dev/fd/63"],
        ["ask", "x", "-f", "/dev/fd/63"],
        ["ask", "-", "-f", "-"],
        ["ask", "x", "--off"],
        ["--memory", "", "query", "x"],
        ["ask", "x", "--session", ""],
        ["config", "show", "--config", ""],
        ["serve", "--token-file", ""],
    ],
)
def test_wrong_usage_leaves_with_2_and_says_why_on_stderr(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "usage: ragchat" in printed.err
    assert "error: " in printed.err


@pytest.mark.parametrize(
    ("words", "program", "message"),
    [
        ("aks hi", "ragchat", "there is no command 'aks'; did you mean ask?"),
        ("zzz", "ragchat", "there is no command 'zzz'; `ragchat --help` lists them"),
        ("ls", "ragchat", "there is no command 'ls'; did you mean `ragchat memory ls`?"),
        ("list", "ragchat", "there is no command 'list'; did you mean `ragchat memory ls`?"),
        ("search cats", "ragchat", "there is no command 'search'; did you mean `ragchat query`?"),
        ("login", "ragchat", "there is no command 'login'; did you mean `ragchat mcp login`?"),
        ("delete", "ragchat", "there is no command 'delete'; did you mean `ragchat memory rm`?"),
        ("session list", "ragchat session", "there is no command 'list'; did you mean `ragchat session ls`?"),
        ("mcp show", "ragchat mcp", "there is no command 'show'; `ragchat mcp --help` lists them"),
        ("mcp ad x", "ragchat mcp", "there is no command 'ad'; did you mean add?"),
        ("ask hi --modle m", "ragchat ask", "there is no option --modle; did you mean --model?"),
        ("ask --modle=m", "ragchat ask", "there is no option --modle; did you mean --model?"),
        ("--modle m", "ragchat", "there is no option --modle; did you mean --model?"),
        ("ask hi --zzz", "ragchat ask", "there is no option --zzz; `ragchat ask --help` lists them"),
        ("ask hi -x", "ragchat ask", "there is no option -x; `ragchat ask --help` lists them"),
        ("ask -model m hi", "ragchat ask", "there is no option -model; did you mean --model?"),
        ("-x", "ragchat", "there is no option -x; `ragchat --help` lists them"),
        ("--json ls", "ragchat", "there is no option --json; `ragchat --help` lists them"),
        ("ask hi --bogus", "ragchat ask", "there is no option --bogus; `ragchat ask --help` lists them"),
        ("memory -x ls", "ragchat memory", "there is no option -x; `ragchat memory --help` lists them"),
        ("memory stats all", "ragchat memory stats", "unrecognized arguments: all"),
        ("inject", "ragchat inject", None),
        ("--memory m --server http://h memory ls", "ragchat memory ls", None),
        (
            "memory undo --since yesterday",
            "ragchat memory undo",
            "argument --since: 'yesterday' is neither a time in ISO 8601"
            " nor a time ago such as 10m, 2h or 3d",
        ),
    ],
)
def test_wrong_usage_names_the_command_and_what_is_near(
    words: str, program: str, message: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"usage: {program} ")
    assert f"\n{program}: error: " in printed
    if message is not None:
        assert printed.endswith(f"{program}: error: {message}\n")


@pytest.mark.parametrize("word", ["-5", "-", "-.5 degrees", "-x of them", "--all of them"])
def test_numbers_and_phrases_that_begin_with_a_dash_are_words_of_the_question(word: str) -> None:
    assert make_parser().parse_args(["ask", "why", word, "-k5", "-v"]).question == ["why", word]


def test_options_of_the_command_of_a_server_are_not_ours() -> None:
    words = ["mcp", "add", "x", "--", "npx", "--yes", "y"]
    assert make_parser().parse_args(words).command == ["npx", "--yes", "y"]


@pytest.mark.parametrize(
    "words", [["memory", "undo", "x"], ["ask", "hi", "-k", "x"], ["serve", "--port", "x"]]
)
def test_a_word_in_place_of_a_number_is_named(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert "'x' is not a whole number" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--version"], ["ask", "--version"], ["memory", "ls", "--version"]])
def test_the_version_is_that_of_the_distribution(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 0
    assert capsys.readouterr().out == f"ragchat {version('ragchat')}\n" == f"ragchat {__version__}\n"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from ragchat.cli import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit:\n    print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"anyio", "asyncio", "dataclasses", "importlib.metadata", "msgspec", "numpy", "openai", "rich"}
    if sys.version_info >= (3, 14):
        heavy.remove("dataclasses")  # argparse loads it, for colours
    assert not heavy & set(done.stderr.split())
