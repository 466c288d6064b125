"""The parser of the command line, built from the table of commands."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any, NoReturn

from ragchat import __version__
from ragchat.arguments.declaring import Command, flag, text
from ragchat.arguments.questions import CONVERSATION
from ragcommon.files.uris import is_http_url

# What users of other programs type for the name of a command.
OTHER_WORDS = {
    "list": "ls",
    "search": "query",
    "find": "query",
    "load": "inject",
    "add": "inject",
    "delete": "rm",
}


class WrongUsage(Exception):
    """The arguments are wrong. `usage` is the synopsis with the message, as argparse prints it."""

    hint: str

    def __init__(self, parser: argparse.ArgumentParser, message: str) -> None:
        super().__init__(message)
        self.usage = f"{parser.format_usage()}{parser.prog}: error: {message}\n"
        self.hint = f"`{parser.prog} --help` lists the arguments."


class Parser(argparse.ArgumentParser):
    """Raises WrongUsage where argparse would exit, and names what is near a mistyped command or option."""

    def error(self, message: str) -> NoReturn:
        raise WrongUsage(self, message)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuse unknown arguments: argparse leaves those of a command to the parser above it."""
        words = list(args or ())
        for word in takewhile(self._may_be_option, words):
            self._check_option(word)
        found, rest = super().parse_known_args(words, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest

    def _may_be_option(self, word: str) -> bool:
        """Whether it stands before `--`, and above other parsers before the command."""
        return word != "--" and (self._subparsers is None or word.startswith("-"))

    def _check_option(self, word: str) -> None:
        name, known = word.partition("=")[0], self._option_string_actions
        is_long = name.startswith("--")
        if " " in name or not (is_long or (name[:1] == "-" and name[1:2].isalpha())):
            return  # a phrase, a number or a value
        if (name if is_long else name[:2]) not in known:  # `-k5` is `-k 5`
            self.error(f"there is no option {name}; {self._guess(name, known)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.nargs == argparse.PARSER and action.choices is not None and value not in action.choices:
            meant = self._meant(value)
            guess = f"did you mean `{meant}`?" if meant else self._guess(value, action.choices)
            self.error(f"there is no command {value!r}; {guess}")
        super()._check_value(action, value)

    def _meant(self, word: str) -> str:
        """The command of that name, perhaps of another group; "" if none or several are.

        Those of this group come first, then those without a group, and here also those of `memory`.
        """
        from ragchat.arguments.table import COMMANDS

        named = dict[str, str]()
        for command in COMMANDS:
            place, _, name = f"ragchat {command.name}".rpartition(" ")
            if name == OTHER_WORDS.get(word, word):
                named[place] = f"{place} {name}"
        for place in (self.prog, "ragchat", "ragchat memory" if self.prog == "ragchat" else ""):
            if place in named:
                return named[place]
        return "".join(named.values()) if len(named) == 1 else ""

    def _guess(self, word: str, known: Iterable[str]) -> str:
        import difflib

        names = {name.lstrip("-"): name for name in known}  # Dashes would make short options alike.
        near = difflib.get_close_matches(word.lstrip("-"), names, n=1)
        return f"did you mean {names[near[0]]}?" if near else f"`{self.prog} --help` lists them"


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command line. Raises WrongUsage."""
    try:
        return _checked(make_parser(words), words)
    except WrongUsage:
        return _checked(make_parser(), words)  # Its error knows all commands.


def _checked(parser: Parser, words: Sequence[str]) -> argparse.Namespace:
    arguments = parser.parse_args(words)
    if message := usage_error(arguments):
        arguments.parser.error(message)
    return arguments


def make_parser(words: Sequence[str] | None = None) -> Parser:
    """The parser; with `words`, one of the commands that they may name: all together take 40 ms."""
    parser = Parser(
        "ragchat",
        description="Answers questions from your own documents, with citations. Without a command: the chat.",
        epilog="Exit codes: 0 success, 1 failure, 2 wrong usage. With --json a command prints one JSON "
        "document, on failure {error: {code, message, hint}}.",
        allow_abbrev=False,
    )
    _add_globals(parser, top=True)
    for argument in CONVERSATION:
        parser.add_argument(*argument.names, **argument.options)
    parser.set_defaults(target="chat:chat", json=False, top_k=None, check=lambda _: "", parser=parser)
    wants_all = words is None or not {"-h", "--help"}.isdisjoint(words)
    if wants_all or words:
        _add_commands(parser, None if wants_all else words)
    return parser


_GLOBALS = (
    text("--memory", metavar="PATH", help="the SQLite file of memory, or postgresql://…"),
    text("--server", metavar="URL", help="use the memory of the running `ragchat serve` at this URL"),
    text("--config", metavar="FILE", help="use this settings file instead of your own"),
    flag("-v", "--verbose", help="log more, and list every file that is skipped"),
)


def _add_globals(parser: argparse.ArgumentParser, *, top: bool) -> None:
    """Add the flags that may stand before or after the command.

    After the command they have no default, because it would override a value given before it.
    """
    for argument in _GLOBALS:
        options = argument.options if top else {**argument.options, "default": argparse.SUPPRESS}
        parser.add_argument(*argument.names, **options)
    version = f"ragchat {__version__}"
    parser.add_argument("--version", action="version", version=version, help="print the version")


def _add_commands(parser: argparse.ArgumentParser, words: Sequence[str] | None) -> None:
    from ragchat.arguments.table import COMMANDS, GROUPS

    commands = parser.add_subparsers(metavar="command", title="commands")
    groups = {}
    for command in COMMANDS:
        group, _, name = command.name.rpartition(" ")
        if words is not None and (group or name) not in words:
            continue
        if group and group not in groups:
            below = commands.add_parser(
                group, help=GROUPS[group], description=GROUPS[group], allow_abbrev=False
            )
            _add_globals(below, top=False)
            groups[group] = below.add_subparsers(metavar="command", title="commands", required=True)
        _add_command(groups.get(group, commands), name, command)


def _add_command(commands: Any, name: str, command: Command) -> None:
    aliases = [command.alias] if command.alias else []
    parser = commands.add_parser(
        name, aliases=aliases, help=command.help, description=command.help, allow_abbrev=False
    )
    for argument in command.arguments:
        options = argument.options
        if argument in CONVERSATION:  # it may stand before the command, too
            options = {**options, "default": argparse.SUPPRESS}
        parser.add_argument(*argument.names, **options)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    _add_globals(parser, top=False)
    parser.set_defaults(target=command.target, check=command.check, parser=parser)


def usage_error(arguments: argparse.Namespace) -> str:
    """What argparse cannot check, because flags may stand on both sides of the command; "" if nothing."""
    if arguments.memory and arguments.server:
        return "--memory and --server cannot be combined"
    if arguments.server and not is_http_url(arguments.server):
        return f"{arguments.server!r} is not the address of a server, such as http://127.0.0.1:8765"
    if arguments.no_tools and arguments.yes_read_only:
        return "--no-tools and --yes-read-only cannot be combined"
    if arguments.session and arguments.resume:
        return "--session and -c cannot be combined"
    if arguments.model and arguments.offline:
        return "--model and --offline cannot be combined"
    return str(arguments.check(arguments))
