"""The table of commands, and the parser built from it. The commands themselves are not imported here."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from ragchat import __version__
from ragconfig.hosts import HOSTS

GROUPS = {
    "source": "folders that memory stays in step with",
    "memory": "list, show, remove, check and restore what is stored",
    "session": "list, show, search, remove and inject past conversations",
    "mcp": "use other MCP servers here, and this memory in other programs",
    "config": "show and create settings",
}

HOST_ALIASES = {
    "claude": "claude-desktop",
    "code": "vscode",
    "vs-code": "vscode",
    "lm-studio": "lmstudio",
    "gemini-cli": "gemini",
}
# The hosts whose servers can be imported.
JSON_HOSTS = tuple(name for name, host in HOSTS.items() if host.format == "json")


class WrongUsage(Exception):
    """The arguments are wrong. `usage` is the synopsis with the message, as argparse prints it."""

    hint: str

    def __init__(self, parser: argparse.ArgumentParser, message: str) -> None:
        super().__init__(message)
        self.usage = f"{parser.format_usage()}{parser.prog}: error: {message}\n"
        self.hint = f"`{parser.prog} --help` lists the arguments."


class Parser(argparse.ArgumentParser):
    """Raises WrongUsage where argparse would exit."""

    def error(self, message: str) -> NoReturn:
        raise WrongUsage(self, message)


class Instead(argparse.Action):
    """An option with which the positional arguments of its command need not be given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        setattr(namespace, self.dest, values)
        for action in parser._actions:
            action.required = False


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
    def number(text: str) -> int:  # argparse uses its name in "invalid number value"
        if not least <= (value := int(text)) <= most:
            raise argparse.ArgumentTypeError(f"{text} is not between {least} and {most}")
        return value

    return number


def _text(text: str) -> str:
    """Refuse an empty value, such as an unset variable in a shell script."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return text


def _pair(separator: str) -> Callable[[str], tuple[str, str]]:
    def pair(text: str) -> tuple[str, str]:
        name, found, value = text.partition(separator)
        if not (name and found):
            raise argparse.ArgumentTypeError(f"{text!r} has no {separator!r} after a name")
        return name.strip(), value.strip()

    return pair


def _host(text: str) -> str:
    name = text.lower().replace(" ", "-")
    return HOST_ALIASES.get(name, name)


K = _argument(
    "-k",
    type=_within(1, 100),
    metavar="N",
    dest="top_k",
    default=None,
    help="find N passages (1 to 100)",
)
LIMIT = _argument(
    "-n",
    "--limit",
    type=_within(1, 10_000),
    metavar="N",
    default=100,
    help="at most N lines (default: 100)",
)
DOCUMENT = _argument("document", help="its URI, its id or the path of its file")
SESSION = _argument("session_id", metavar="ID", help="the session's id or the beginning of it")
# Of a write in the journal, and of the version of a document that it made.
NUMBER = _within(1, 2**63 - 1)
LAST = 0


def _write(text: str) -> int:
    """The number of a write; LAST for "last"."""
    return LAST if text.lower() == "last" else NUMBER(text)


MODEL_CHOICE = (
    _argument("--model", metavar="M", type=_text, default=None, help="the language model to ask"),
    _argument("--offline", action="store_true", default=False, help="answer without a language model"),
)
SCOPE = _argument(
    "--in",
    metavar="DOCUMENTS",
    type=_text,
    dest="scope",
    default=None,
    help="ask only these documents: a folder, a glob, a tag or a name",
)
CONVERSATION = (
    SCOPE,
    _argument("--session", metavar="ID", type=_text, default=None, help="continue this session"),
    _argument(
        "-c",
        "--continue",
        dest="resume",
        action="store_true",
        default=False,
        help="continue the last session",
    ),
    *MODEL_CHOICE,
    _argument(
        "--yes-read-only",
        action="store_true",
        default=False,
        help="call tools that say they only read without asking",
    ),
    _argument("--no-tools", action="store_true", default=False, help="offer the model no tools"),
)

COMMANDS = (
    Command(
        "ask",
        "ask:ask",
        "answer one question, with sources",
        (
            _argument("question", nargs="+", help="the question, or - to read it from stdin"),
            K,
            _argument(
                "-f",
                "--file",
                metavar="FILE",
                type=_text,
                action="append",
                dest="files",
                default=[],
                help="ask about this file instead of memory; so is text on stdin",
            ),
            _argument("--no-session", action="store_true", help="do not save the question and its answer"),
            *CONVERSATION,
        ),
    ),
    Command(
        "research",
        "research:research",
        "write a cited report from memory and the connected servers",
        (
            _argument("question", nargs="*", help="the question, or - to read it from stdin"),
            _argument(
                "--resume", dest="goes_on", action="store_true", help="go on with the one stopped last"
            ),
            _argument("--inject", action="store_true", help="store the report in memory"),
            *CONVERSATION,
        ),
    ),
    Command(
        "inject",
        "inject:inject",
        "load files and folders into memory",
        (
            _argument("paths", nargs="+", metavar="PATH", help="a file or folder, or - to read stdin"),
            _argument("--uri", type=_text, default=None, help="the URI of the document from stdin"),
            _argument(
                "--prune",
                action="store_true",
                help="remove documents whose files are gone from the folders",
            ),
        ),
    ),
    Command(
        "sync",
        "source:sync_sources",
        "load what is new and changed in the sources, and remove what is gone",
        (_argument("paths", nargs="*", metavar="PATH", help="only these files and folders, sources or not"),),
    ),
    Command(
        "watch",
        "watch:watch",
        "keep memory in step with the sources until Ctrl-C",
        (_argument("paths", nargs="*", metavar="PATH", help="only these files and folders, sources or not"),),
    ),
    Command(
        "source add",
        "source:add",
        "register folders that memory stays in step with, and load them",
        (_argument("paths", nargs="+", metavar="PATH", help="a file or folder"),),
    ),
    Command("source ls", "source:ls", "list the sources and their last sync"),
    Command(
        "source rm",
        "source:rm",
        "take folders off the list; their documents stay in memory",
        (
            _argument("paths", nargs="+", metavar="PATH", help="a source"),
            _argument("--forget", action="store_true", help="remove their documents from memory, too"),
        ),
    ),
    Command(
        "query",
        "query:query",
        "search memory without asking a question",
        (_argument("text", nargs="+", help="what to search for, or - to read it from stdin"), K, SCOPE),
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
            _argument(
                "documents",
                nargs="?",
                default="",
                help="only these: a name or a part of it, a folder, a glob or a tag",
            ),
            LIMIT,
            _argument(
                "--uri", metavar="GLOB", type=_text, default=None, help="only documents whose URI matches"
            ),
        ),
    ),
    Command("memory show", "memory:show", "show a document's text", (DOCUMENT,)),
    Command(
        "memory rm",
        "memory:rm",
        "remove documents from memory",
        (
            _argument(
                "documents", nargs="+", metavar="document", help=f"{DOCUMENT.options['help']}, or a glob"
            ),
            _argument("--yes", action="store_true", help="remove all that a glob matches without asking"),
        ),
    ),
    Command("memory log", "memory:log", "list the last changes of memory", (LIMIT,)),
    Command("memory versions", "history:versions", "list the versions of a document", (DOCUMENT, LIMIT)),
    Command(
        "memory diff",
        "history:diff",
        "show what changed between two versions of a document",
        (
            DOCUMENT,
            _argument(
                "before",
                nargs="?",
                type=NUMBER,
                metavar="A",
                default=None,
                help="the older version (default: the one before B)",
            ),
            _argument(
                "after",
                nargs="?",
                type=NUMBER,
                metavar="B",
                default=None,
                help="the newer version (default: the current one)",
            ),
        ),
    ),
    Command(
        "memory restore",
        "history:restore",
        "make an earlier version of a document the current one, also of a removed document",
        (
            DOCUMENT,
            _argument(
                "version",
                nargs="?",
                type=NUMBER,
                metavar="VERSION",
                default=None,
                help="its number in `memory versions` (default: the one before the current one)",
            ),
        ),
    ),
    Command(
        "memory undo",
        "history:undo",
        "undo the last change of memory, such as a whole load, or some writes",
        (
            _argument(
                "writes",
                nargs="*",
                type=_write,
                metavar="LAST|ID",
                help="the numbers of writes in `memory log` (default: last)",
            ),
            _argument(
                "--origin",
                metavar="NAME",
                type=_text,
                default=None,
                help="all writes of this client or session",
            ),
            _argument(
                "--since",
                metavar="TIME",
                type=_text,
                default=None,
                help="all writes since then: ISO 8601, or a time ago such as 10m, 2h or 3d",
            ),
        ),
    ),
    Command(
        "memory export",
        "transfer:export",
        "write all documents as lines of JSON",
        (
            _argument(
                "file",
                metavar="FILE",
                nargs="?",
                type=_text,
                default="-",
                help="a new file (default: stdout)",
            ),
            _argument(
                "--vectors",
                action="store_true",
                help="with the embeddings, which an import into a memory of the same embedder uses",
            ),
        ),
    ),
    Command(
        "memory import",
        "transfer:import_",
        "load the documents of an export",
        (_argument("file", metavar="FILE", type=_text, help="an export, or - to read it from stdin"),),
    ),
    Command(
        "memory backup",
        "memory:backup",
        "write a consistent copy of memory to a file",
        (
            _argument("file", metavar="FILE", type=_text, help="a new file"),
            _argument("--force", action="store_true", help="replace FILE if it is a memory"),
        ),
    ),
    Command("memory stats", "memory:stats", "print the size of memory and its embedder"),
    Command(
        "memory reembed",
        "memory:reembed",
        "embed all documents again, after a change of the embedder",
        (
            _argument(
                "--discard",
                action="store_true",
                help="only delete the embeddings that the last one has kept, or that a killed one has left",
            ),
        ),
    ),
    Command(
        "memory verify",
        "memory:verify",
        "check the memory file for damage",
        (
            _argument(
                "--repair",
                action="store_true",
                help="rebuild what follows from the texts, after a copy of the file was made",
            ),
        ),
    ),
    Command("session ls", "session:ls", "list past conversations", (LIMIT,)),
    Command("session show", "session:show", "show a conversation", (SESSION,)),
    Command(
        "session rm",
        "session:rm",
        "delete conversations",
        (_argument("session_ids", nargs="+", metavar="ID", help=SESSION.options["help"]),),
    ),
    Command("session export", "session:export", "print a conversation as Markdown", (SESSION,)),
    Command(
        "session inject",
        "session:inject",
        "put conversations into memory, so that later questions find them",
        (
            _argument("session_ids", nargs="*", metavar="ID", help=SESSION.options["help"]),
            _argument("--all", action="store_true", help="all conversations"),
        ),
    ),
    Command(
        "session search",
        "session:search",
        "search past conversations",
        (_argument("text", nargs="+", help="words to search for"), LIMIT),
    ),
    Command(
        "mcp add",
        "servers:add",
        "add a server whose tools a model may use",
        (
            _argument("name", metavar="NAME", type=_text, help="how you call it"),
            _argument(
                "command",
                metavar="COMMAND",
                nargs="+",
                type=_text,
                help="-- and the command that starts it, or the URL where it runs",
            ),
            _argument(
                "--recipe",
                metavar=("RECIPE", "FOLDER"),
                nargs="*",
                type=_text,
                action=Instead,
                help="instead of a command: a server that ragchat knows; without RECIPE, list them",
            ),
            _argument(
                "--scope",
                choices=("user", "project"),
                default="user",
                help="for you everywhere, or for everybody in this project (.mcp.json)",
            ),
            _argument(
                "--env",
                metavar="NAME=VALUE",
                type=_pair("="),
                action="append",
                default=[],
                help="a variable for it; ${NAME} is replaced by yours at its start",
            ),
            _argument(
                "--header",
                metavar="NAME:VALUE",
                type=_pair(":"),
                action="append",
                default=[],
                help="a header for its URL, such as 'Authorization: Bearer ${TOKEN}'",
            ),
            _argument(
                "--trusted",
                action="store_true",
                help="run the tools that it says only read without asking",
            ),
        ),
    ),
    Command(
        "mcp import",
        "imports:import_servers",
        "copy the servers of Claude Desktop, VS Code, Cursor and others",
        (
            _argument(
                "host",
                metavar="HOST",
                nargs="?",
                type=_host,
                choices=JSON_HOSTS,
                help=f"of this program only: {', '.join(JSON_HOSTS)}",
            ),
        ),
    ),
    Command("mcp list", "servers:ls", "list the other servers"),
    Command(
        "mcp remove",
        "servers:remove",
        "remove a server, and what it was allowed",
        (_argument("name", metavar="NAME", help="its name"),),
    ),
    Command(
        "mcp test",
        "servers:test",
        "start servers and list their tools",
        (_argument("names", metavar="NAME", nargs="*", help="their names (default: all)"),),
    ),
    Command(
        "mcp login",
        "servers:login",
        "log in at a remote server",
        (_argument("name", metavar="NAME", help="its name"),),
    ),
    Command(
        "mcp logout",
        "servers:logout",
        "forget the login at a remote server",
        (_argument("name", metavar="NAME", help="its name"),),
    ),
    Command(
        "mcp config",
        "mcp:config",
        "print the block to paste into the settings of another program",
        (
            _argument("host", metavar="HOST", type=_host, choices=tuple(HOSTS), help=", ".join(HOSTS)),
            _argument("--url", type=_text, default=None, help="use the running `ragchat serve` at this URL"),
            _argument(
                "--token-file",
                metavar="FILE",
                type=_text,
                default=None,
                help="a file with the bearer token of that server",
            ),
        ),
    ),
    Command(
        "serve",
        "serve:serve",
        "serve the memory over HTTP",
        (
            _argument(
                "--host", type=_text, default=None, help="the address to listen on (default: 127.0.0.1)"
            ),
            _argument(
                "--port",
                type=_within(0, 65_535),
                default=None,
                metavar="N",
                help="the port, or 0 for any free one (default: 8765)",
            ),
            _argument(
                "--token-file",
                metavar="FILE",
                type=_text,
                default=None,
                help="a file with the bearer token that clients must send",
            ),
            _argument("--read-only", action="store_true", help="offer no tool that changes memory"),
        ),
    ),
    Command("config show", "config:show", "show the effective settings and where each comes from"),
    Command("config path", "config:path", "show where settings, memory and logs are"),
    Command("config init", "config:init", "write a settings file with all defaults, commented out"),
    Command("doctor", "doctor:doctor", "check the installation, memory and model"),
)


def _add_globals(parser: argparse.ArgumentParser, *, top: bool) -> None:
    """Add the flags that may stand before or after the command.

    After it they have no default, which would override a value before it.
    """
    default = None if top else argparse.SUPPRESS
    parser.add_argument(
        "--memory", metavar="PATH", type=_text, default=default, help="the SQLite file of memory"
    )
    parser.add_argument(
        "--server",
        metavar="URL",
        type=_text,
        default=default,
        help="use the memory of the running `ragchat serve` at this URL",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        type=_text,
        default=default,
        help="use this settings file instead of your own",
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", default=False if top else default, help="log more"
    )
    parser.add_argument(
        "--version", action="version", version=f"ragchat {__version__}", help="print the version"
    )


def make_parser(*, commands: bool = True) -> Parser:
    """The parser. Without `commands` it takes the arguments of the chat only, and is built 10 ms faster."""
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
        if argument in CONVERSATION:  # it may stand before the command, too
            options = {**options, "default": argparse.SUPPRESS}
        parser.add_argument(*argument.names, **options)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    _add_globals(parser, top=False)
    parser.set_defaults(target=command.target)


def usage_error(arguments: argparse.Namespace) -> str:
    """What argparse cannot check, because flags may stand on both sides of the command; "" if nothing."""
    if arguments.memory and arguments.server:
        return "--memory and --server cannot be combined"
    if arguments.server and not _is_address(arguments.server):
        return f"{arguments.server!r} is not the address of a server, such as http://127.0.0.1:8765"
    if arguments.target == "serve:serve" and arguments.server:
        return "serve serves a memory of this machine: it cannot be combined with --server"
    if arguments.no_tools and arguments.yes_read_only:
        return "--no-tools and --yes-read-only cannot be combined"
    if arguments.session and arguments.resume:
        return "--session and -c cannot be combined"
    if arguments.model and arguments.offline:
        return "--model and --offline cannot be combined"
    if arguments.target == "ask:ask" and arguments.no_session and (arguments.session or arguments.resume):
        return "--no-session cannot be combined with --session and -c"
    if arguments.target == "ask:ask" and arguments.files and arguments.scope:
        return "--in chooses documents of memory: it cannot be combined with -f"
    if arguments.target == "research:research" and arguments.goes_on == bool(arguments.question):
        return "name a question, or use --resume"
    if arguments.target == "inject:inject" and arguments.uri and "-" not in arguments.paths:
        return "--uri is the URI of the document from stdin: it needs the path -"
    if arguments.target == "history:undo" and arguments.writes:
        if arguments.origin or arguments.since:
            return "--origin and --since choose the writes: they cannot be combined with numbers"
        if LAST in arguments.writes and len(arguments.writes) > 1:
            return "last cannot be combined with numbers"
    if arguments.target == "transfer:export" and arguments.file == "-" and arguments.json:
        return "--json needs a FILE: without it, the documents themselves go to stdout"
    if arguments.target == "memory:ls" and arguments.uri and arguments.documents:
        return "--uri and the names of documents cannot be combined"
    if arguments.target == "session:inject" and arguments.all == bool(arguments.session_ids):
        return "name the sessions to inject, or use --all"
    if arguments.target == "servers:add" and arguments.recipe is not None and arguments.command:
        return "--recipe has the command: they cannot be combined"
    if arguments.target == "mcp:config" and arguments.token_file and not arguments.url:
        return "--token-file belongs to a running server: it needs --url"
    if arguments.target == "mcp:config" and arguments.url and not _is_address(arguments.url):
        return f"{arguments.url!r} is not the address of a server, such as http://127.0.0.1:8765/mcp"
    return ""


def _is_address(url: str) -> bool:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
