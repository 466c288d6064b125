"""The commands as a table, and the parser made of it. What a command does is not imported here."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from ragchat import __version__
from ragmcp.hosts import HOSTS

GROUPS = {
    "memory": "what memory holds, and what was done to it",
    "session": "past conversations",
    "mcp": "memory in other MCP hosts",
    "config": "settings",
}

HOST_ALIASES = {"claude": "claude-desktop", "code": "vscode", "vs-code": "vscode"}


class WrongUsage(Exception):
    """What was asked for is no command. `usage` is the synopsis and the flaw, as people are told."""

    hint: str

    def __init__(self, parser: argparse.ArgumentParser, flaw: str) -> None:
        super().__init__(flaw)
        self.usage = f"{parser.format_usage()}{parser.prog}: error: {flaw}\n"
        self.hint = f"`{parser.prog} --help` says what it takes."


class Parser(argparse.ArgumentParser):
    """Leaves what to do about wrong usage to its caller. Raises WrongUsage."""

    def error(self, message: str) -> NoReturn:
        raise WrongUsage(self, message)


class Argument(NamedTuple):
    """One call of `add_argument`."""

    names: tuple[str, ...]
    options: dict[str, Any]


class Command(NamedTuple):
    """One line of the table. `target` is `module:function` in `ragchat.commands`."""

    name: str
    target: str
    help: str
    arguments: tuple[Argument, ...] = ()


def _argument(*names: str, **options: Any) -> Argument:
    return Argument(names, options)


def _within(least: int, most: int) -> Callable[[str], int]:
    def number(text: str) -> int:  # its name is what argparse calls a value that is none
        if not least <= (value := int(text)) <= most:
            raise argparse.ArgumentTypeError(f"{text} is not from {least} to {most}")
        return value

    return number


def _text(text: str) -> str:
    """What an unset variable of a shell script leaves behind is not the same as saying nothing."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return text


def _host(text: str) -> str:
    name = text.lower().replace(" ", "-")
    return HOST_ALIASES.get(name, name)


K = _argument(
    "-k", type=_within(1, 100), metavar="N", dest="top_k", default=None, help="passages to find (1 to 100)"
)
LIMIT = _argument(
    "-n", "--limit", type=_within(1, 10_000), metavar="N", default=100, help="at most N lines (default: 100)"
)
DOCUMENT = _argument("document", help="its URI, its id, or the path of its file")
SESSION = _argument("session_id", metavar="ID", help="the session's id, or enough of its beginning")
MODEL_CHOICE = (
    _argument("--model", metavar="M", type=_text, default=None, help="the language model to ask"),
    _argument("--offline", action="store_true", default=False, help="answer without a language model"),
)
CONVERSATION = (
    _argument("--session", metavar="ID", type=_text, default=None, help="go on with this session"),
    _argument(
        "-c", "--continue", dest="resume", action="store_true", default=False, help="go on with the last one"
    ),
    *MODEL_CHOICE,
)

COMMANDS = (
    Command(
        "ask",
        "ask:ask",
        "one answer, with its sources",
        (_argument("question", nargs="+", help="the question; - reads it from stdin"), K, *CONVERSATION),
    ),
    Command(
        "inject",
        "inject:inject",
        "load files and folders into memory",
        (
            _argument("paths", nargs="+", metavar="PATH", help="a file or folder; - reads stdin"),
            _argument("--uri", type=_text, default=None, help="the name of what comes from stdin"),
        ),
    ),
    Command(
        "query",
        "query:query",
        "search memory, without an answer",
        (_argument("text", nargs="+", help="what to search for; - reads it from stdin"), K),
    ),
    Command(
        "run",
        "run:run",
        "run a scripted session and check its answers",
        (_argument("script", metavar="SCRIPT", help="a TOML file"), *MODEL_CHOICE),
    ),
    Command(
        "memory ls",
        "memory:ls",
        "list the documents",
        (
            LIMIT,
            _argument(
                "--uri", metavar="GLOB", type=_text, default=None, help="only documents with such a URI"
            ),
        ),
    ),
    Command("memory show", "memory:show", "show a document's text", (DOCUMENT,)),
    Command(
        "memory rm",
        "memory:rm",
        "take documents out of memory",
        (_argument("documents", nargs="+", metavar="document", help=DOCUMENT.options["help"]),),
    ),
    Command("memory log", "memory:log", "list the last changes", (LIMIT,)),
    Command("memory undo", "memory:undo", "take the last change back"),
    Command("memory stats", "memory:stats", "how much memory holds"),
    Command("memory reembed", "memory:reembed", "embed everything anew, as after a change of the embedder"),
    Command("memory verify", "memory:verify", "check the memory's file for damage"),
    Command("session ls", "session:ls", "list past conversations", (LIMIT,)),
    Command("session show", "session:show", "show a conversation", (SESSION,)),
    Command(
        "session rm",
        "session:rm",
        "delete conversations",
        (_argument("session_ids", nargs="+", metavar="ID", help=SESSION.options["help"]),),
    ),
    Command("session export", "session:export", "a conversation as Markdown", (SESSION,)),
    Command(
        "session search",
        "session:search",
        "full-text search in past conversations",
        (_argument("text", nargs="+"), LIMIT),
    ),
    Command(
        "mcp config",
        "mcp:config",
        "print the block to paste into another MCP host's settings",
        (
            _argument("host", metavar="HOST", type=_host, choices=tuple(HOSTS), help=", ".join(HOSTS)),
            _argument(
                "--url", type=_text, default=None, help="of a running `ragchat serve`, for hosts to share"
            ),
            _argument(
                "--token-file", metavar="FILE", type=_text, default=None, help="the file of its bearer token"
            ),
        ),
    ),
    Command(
        "serve",
        "serve:serve",
        "the memory over HTTP, for other programs",
        (
            _argument(
                "--host", type=_text, default=None, help="the address to listen at (default: 127.0.0.1)"
            ),
            _argument(
                "--port",
                type=_within(0, 65_535),
                default=None,
                metavar="N",
                help="0: any free (default: 8765)",
            ),
            _argument(
                "--token-file",
                metavar="FILE",
                type=_text,
                default=None,
                help="the bearer token that clients must show",
            ),
            _argument("--read-only", action="store_true", help="offer no tool that changes memory"),
        ),
    ),
    Command("config show", "config:show", "the effective settings, and where each comes from"),
    Command("config path", "config:path", "where settings, memory and logs are"),
    Command("config init", "config:init", "write a settings file to start from"),
    Command("doctor", "doctor:doctor", "check everything"),
)


def _add_globals(parser: argparse.ArgumentParser, *, top: bool) -> None:
    """The flags that stand before or after the command: after it, silence must not undo what stood before."""
    default = None if top else argparse.SUPPRESS
    parser.add_argument(
        "--memory", metavar="PATH", type=_text, default=default, help="the memory's SQLite file"
    )
    parser.add_argument("--config", metavar="FILE", type=_text, default=default, help="another settings file")
    parser.add_argument(
        "-v", "--verbose", action="store_true", default=False if top else default, help="log more"
    )
    parser.add_argument(
        "--version", action="version", version=f"ragchat {__version__}", help="print the version"
    )


def make_parser(*, commands: bool = True) -> Parser:
    """The parser, with all `commands` or for the chat alone: making theirs takes 10 ms of its start."""
    parser = Parser(
        "ragchat",
        description="Answers from your own documents, with citations. Without a command: the chat.",
        epilog="Exit codes: 0 done, 1 failed, 2 wrong usage. With --json a command prints one JSON document, "
        "also when it fails: {error: {code, message, hint}}.",
        allow_abbrev=False,
    )
    _add_globals(parser, top=True)
    for argument in CONVERSATION:
        parser.add_argument(*argument.names, **argument.options)
    parser.set_defaults(target="chat:chat", json=False, top_k=None)
    if commands:
        _add_commands(parser)
    return parser


def _add_commands(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar="command", title="commands")
    groups = {}
    for command in COMMANDS:
        group, _, name = command.name.rpartition(" ")
        if group and group not in groups:
            below = commands.add_parser(
                group, help=GROUPS[group], description=GROUPS[group], allow_abbrev=False
            )
            _add_globals(below, top=False)
            groups[group] = below.add_subparsers(metavar="command", title="commands", required=True)
        _add_command(groups.get(group, commands), name, command)


def _add_command(commands: Any, name: str, command: Command) -> None:
    parser = commands.add_parser(name, help=command.help, description=command.help, allow_abbrev=False)
    for argument in command.arguments:
        options = argument.options
        if argument in CONVERSATION:  # these stand before the command too
            options = {**options, "default": argparse.SUPPRESS}
        parser.add_argument(*argument.names, **options)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    _add_globals(parser, top=False)
    parser.set_defaults(target=command.target)


def usage_flaw(arguments: argparse.Namespace) -> str:
    """What argparse cannot say of flags that may stand on both sides of the command; "" if nothing."""
    if arguments.session and arguments.resume:
        return "--session and -c exclude each other"
    if arguments.model and arguments.offline:
        return "--model and --offline exclude each other"
    if arguments.target == "inject:inject" and arguments.uri and "-" not in arguments.paths:
        return "--uri names what comes from stdin: it needs the path -"
    if arguments.target == "mcp:config" and arguments.token_file and not arguments.url:
        return "--token-file is that of a running server: it needs --url"
    if arguments.target == "mcp:config" and arguments.url and not _is_address(arguments.url):
        return f"{arguments.url!r} is no address of a server; one is http://127.0.0.1:8765/mcp"
    return ""


def _is_address(url: str) -> bool:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
