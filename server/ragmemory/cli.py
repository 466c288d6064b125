"""The command `ragmemory`: the memory as an MCP server. On stdio, stdout belongs to the protocol alone.

A host waits for the first response, so heavy modules are imported after it.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from signal import SIG_DFL, SIGINT, default_int_handler, getsignal, signal
from typing import TYPE_CHECKING, Any

from ragcommon.streams import leave_ascii, open_closed_streams
from ragmemory import __version__

if TYPE_CHECKING:
    from ragcommon.errors import StructuredError
    from ragconfig.settings import Settings

# The threshold of the garbage collector. Imports create many objects and no garbage: with the default of 700,
# collections take 6 % of the time to the first response.
GC_THRESHOLD = 50_000
# Only these words require the parsers of the commands, which take 0.8 ms to build.
COMMANDS = frozenset({"http", "bridge", "copy", "token", "completion", "-h", "--help"})


def main(argv: Sequence[str] | None = None) -> int:
    """Run until the host disconnects. Return the exit code: 0 done, 1 failed (argparse exits with 2)."""
    if argv is None:
        leave_ascii()
    if argv is None and sys.platform != "win32" and getsignal(SIGINT) is default_int_handler:
        # Until a server runs there is nothing to clean up: exit without a traceback of imports.
        signal(SIGINT, SIG_DFL)
    gc.set_threshold(GC_THRESHOLD)
    open_closed_streams()
    words = sys.argv[1:] if argv is None else argv
    parser = _parser(commands=not COMMANDS.isdisjoint(words))
    arguments = parser.parse_args(words)
    if arguments.repository and arguments.memory is not None:
        parser.error("--repository names the memory: it cannot be combined with --memory")
    _start_log(logging.INFO if arguments.verbose else logging.WARNING)
    from ragcommon import errors
    from ragconfig.settings import load_settings

    try:
        settings = load_settings(arguments.config, _flags(arguments))
        if arguments.repository:
            settings = _of_repository(settings, arguments.roots or [])
        # The usual form needs no further imports. Commands that do not serve print text for a person.
        if arguments.serves and settings.tables["log"]["form"] != "text":
            from ragmemory.log import set_form

            set_form(settings)
        with suppress(KeyboardInterrupt):
            arguments.run(settings, arguments)
    except (Exception, BaseExceptionGroup) as error:
        found = error if isinstance(error, errors.StructuredError) else errors.of_the_system(error)
        if found is None:
            raise
        logging.getLogger(__name__).info("%s", found, exc_info=error)
        _report(found, as_json=arguments.json)
        return 1
    return 0


def _start_log(level: int) -> None:
    from ragconfig.redaction import RedactingFormatter

    # Log records that cannot be written, because the disk is full, are lost.
    logging.raiseExceptions = False
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])


def _report(error: StructuredError, *, as_json: bool) -> None:
    from ragmemory.log import say

    say(logging.ERROR, f"{error} {error.hint}".rstrip())
    if as_json:
        import json

        failure = {"code": error.code, "message": str(error), "hint": error.hint}
        sys.stdout.write(json.dumps({"error": failure}) + "\n")


# The commands. Each imports its own dependencies.


def _serve_stdio(settings: Settings, arguments: argparse.Namespace) -> None:
    from ragmemory.mcp import server as serving

    serving.run(settings, arguments.pages, warm=not arguments.no_warm_up)


def _serve_http(settings: Settings, arguments: argparse.Namespace) -> None:
    from ragmemory.http import serving

    serving.run(settings, as_json=arguments.json, end_with_stdin=arguments.end_with_stdin)


def _bridge(settings: Settings, arguments: argparse.Namespace) -> None:
    from ragmemory.bridge import serving

    spawn = _http_command(arguments) if arguments.spawn else None
    serving.run(settings, arguments.url, arguments.token_file or "", spawn)


def _copy(settings: Settings, arguments: argparse.Namespace) -> None:
    from ragmemory.app import make_engine
    from ragmemory.maintenance import copying

    places = arguments.source, arguments.target
    source, target = (make_engine(settings.with_memory(place, "the command line")) for place in places)
    copying.run(source, target, as_json=arguments.json)


def _make_token(settings: Settings, arguments: argparse.Namespace) -> None:
    import json

    from ragmemory.http.memories_file import make_token

    memory, owner, right = arguments.memory_name, arguments.owner, arguments.right
    if not settings.tables["http"]["memories"]:
        raise settings.invalid("http.memories", "it names no file of memories")
    token = make_token(settings.path("http.memories", ""), settings, memory, owner, right)
    made = {"token": token, "memory": memory, "owner": owner, "right": right}
    sys.stdout.write((json.dumps(made) if arguments.json else token) + "\n")


def _complete(_: Settings, arguments: argparse.Namespace) -> None:
    from ragcommon.completion import completed, script

    words = arguments.words
    lines = completed(_parser(commands=True), words, {}) if words else [script(arguments.shell, "ragmemory")]
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _http_command(arguments: argparse.Namespace) -> list[str]:
    """The command that serves the same memory over HTTP."""
    # -P: a file in the working folder must not shadow a module.
    words = [sys.executable, "-P", "-X", "utf8", "-m", "ragmemory", "http"]
    for option in ("memory", "config", "token_file"):
        if (value := getattr(arguments, option)) is not None:
            words += [f"--{option.replace('_', '-')}", str(value)]
    words += ["--toolsets", ",".join(arguments.toolsets)] if arguments.toolsets else []
    words += [f"--root={root}" for root in arguments.roots or ()]
    words += ["--read-only"] if arguments.read_only else []
    words += ["--repository"] if arguments.repository else []
    return words


def _flags(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "memory.path": arguments.memory,
        "memory.toolsets": arguments.toolsets,
        "memory.roots": arguments.roots,
        "memory.read_only": arguments.read_only or None,
        "http.host": arguments.host,
        "http.port": arguments.port,
        "http.token_file": arguments.token_file,
    }


def _of_repository(settings: Settings, roots: Sequence[str]) -> Settings:
    """The settings for the repository of the working folder: its memory, its root, the tools for its code.

    `roots` may be read as well.
    """
    from ragconfig.repository import OPTION, memory_of, root_of

    path = memory_of(Path(), settings.home)
    settings = settings.with_memory(path, OPTION)
    memory = settings.tables["memory"]
    memory["roots"] = [str(root_of(path)), *roots]
    if "memory.toolsets" not in settings.origins:
        memory["toolsets"] = [*memory["toolsets"], "code"]
    return settings


def _parser(*, commands: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ragmemory",
        description="A memory for language models, served over MCP on stdio: Inject text, Query it.",
        formatter_class=_formatter,
    )
    _add_globals(parser)
    parser.add_argument(
        "--pages",
        choices=("public", "private"),
        default="",
        help="let the client load web pages, for the commands of ragchat: whatever can call this server then "
        "chooses what this machine requests",
    )
    parser.add_argument(
        "--no-warm-up",
        action="store_true",
        help="load what the first query needs when it comes, for programs that may not ask one",
    )
    parser.set_defaults(run=_serve_stdio, host=None, port=None, token_file=None, serves=True)
    parser.set_defaults(json=False, end_with_stdin=False, spawn=False)
    if commands:
        _add_commands(parser)
    return parser


def _add_commands(parser: argparse.ArgumentParser) -> None:
    from ragmemory.types.rights import RIGHTS

    commands = parser.add_subparsers(title="commands other than stdio", parser_class=_Command)
    http = commands.add_parser("http", help="serve over HTTP", description="The memory over HTTP.")
    http.set_defaults(run=_serve_http)
    http.add_argument("--host", help="the address to listen on (default: 127.0.0.1)")
    http.add_argument("--port", type=_port, metavar="N", help="0 takes any free port (default: 8765)")
    http.add_argument("--token-file", metavar="FILE", help="the bearer token that clients must send")
    http.add_argument("--json", action="store_true", help="print where it listens as JSON, on stdout")
    http.add_argument(
        "--end-with-stdin", action="store_true", help="stop when stdin ends: for programs that start this one"
    )
    bridge = commands.add_parser(
        "bridge",
        help="connect stdio to a server that runs over HTTP",
        description="A server on stdio that forwards everything to URL, for hosts without HTTP.",
    )
    bridge.set_defaults(run=_bridge)
    bridge.add_argument("url", metavar="URL", help="such as http://127.0.0.1:8765/mcp")
    bridge.add_argument("--spawn", action="store_true", help="start a server there if none responds")
    bridge.add_argument("--token-file", metavar="FILE", help="the bearer token for the server")
    copy = commands.add_parser(
        "copy",
        help="copy a memory to another file or database",
        description="Copy a memory with everything in it. An interrupted copy goes on where it was.",
    )
    copy.set_defaults(run=_copy, serves=False)
    copy.add_argument("source", metavar="FROM", help="a file or postgresql://…")
    copy.add_argument("target", metavar="TO", help="a new file, or postgresql://…?schema=NAME without tables")
    copy.add_argument("--json", action="store_true", help="print the outcome as JSON")
    token = commands.add_parser(
        "token",
        help="make a token for a named memory of the HTTP server",
        description="Make a token, print it, and put its digest into the file of the setting http.memories. "
        "It takes the place of an earlier token of the same owner.",
    )
    token.set_defaults(run=_make_token, serves=False)
    token.add_argument("memory_name", metavar="MEMORY", help="a table of that file")
    token.add_argument("owner", metavar="OWNER", help="who gets it, such as anne")
    token.add_argument("--right", choices=RIGHTS, default="read", help="what it allows (default: read)")
    token.add_argument("--json", action="store_true", help="print it as JSON")
    completion = commands.add_parser(
        "completion",
        help="print the script with which a shell completes commands and options",
        description="Print the script with which a shell completes commands and options.",
    )
    completion.set_defaults(run=_complete, serves=False)
    completion.add_argument(
        "shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish"
    )
    completion.add_argument("words", nargs="*", default=[], help=argparse.SUPPRESS)


class _Command(argparse.ArgumentParser):
    """Global options may also follow a command, without defaults that would override earlier values."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, formatter_class=_formatter, argument_default=argparse.SUPPRESS)
        _add_globals(self)


def _add_globals(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--memory", metavar="PATH", help="the memory's SQLite file, or postgresql://…")
    parser.add_argument(
        "--repository",
        action="store_true",
        help="the memory of the git repository of the working folder, whose files may be loaded; the first "
        "build_index makes it",
    )
    parser.add_argument(
        "--config", metavar="FILE", type=Path, help="a settings file instead of the user's own"
    )
    parser.add_argument(
        "--toolsets",
        metavar="A,B",
        type=_names,
        help="toolsets to offer: memory, search, documents, blocks, history, ingestion, code, maintenance",
    )
    parser.add_argument(
        "--root",
        metavar="PATH",
        dest="roots",
        action="append",
        help="a folder from which files may be loaded; * for every one (repeatable)",
    )
    parser.add_argument("--read-only", action="store_true", help="offer no tools that change memory")
    parser.add_argument("--version", action="version", version=f"ragmemory {__version__}")
    parser.add_argument("-v", "--verbose", action="store_true", help="log more, to stderr")


def _formatter(prog: str) -> argparse.HelpFormatter:
    # Without a width argparse imports shutil at every start (4 ms) to find it.
    width = 80
    with suppress(OSError):
        width = os.get_terminal_size().columns
    return argparse.HelpFormatter(prog, width=width - 2)


def _port(text: str) -> int:
    if text.isdecimal() and (port := int(text)) <= 65_535:
        return port
    raise argparse.ArgumentTypeError(f"{text} is not from 0 to 65535")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
