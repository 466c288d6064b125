"""`ragchat memory`: documents, their history, exports and backups."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace

from ragchat.arguments.declaring import LIMIT, argument, command, flag, int_between, text

DOCUMENT = argument("document", help="its URI, its id or the path of its file")


# The number of a write in the journal, and of the document version that it created.
NUMBER = int_between(1, 2**63 - 1)


LAST = 0


def _write(text: str) -> int:
    """The number of a write; LAST for "last"."""
    return LAST if text.lower() == "last" else NUMBER(text)


def _time(text: str) -> str:
    """A time as the memory takes it."""
    from datetime import UTC, datetime

    from ragcommon.text.times import moment

    try:
        moment(text, datetime.now(UTC))
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} {error}") from None
    return text


def _check_ls(arguments: Namespace) -> str:
    if arguments.uri and arguments.documents:
        return "--uri and the names of documents cannot be combined"
    return ""


def _check_undo(arguments: Namespace) -> str:
    if arguments.writes and (arguments.origin or arguments.since):
        return "--origin and --since choose the writes: they cannot be combined with numbers"
    if LAST in arguments.writes and len(arguments.writes) > 1:
        return "last cannot be combined with numbers"
    return ""


def _check_copy(arguments: Namespace) -> str:
    return "FROM names the memory: it cannot be combined with --server" if arguments.server else ""


def _check_export(arguments: Namespace) -> str:
    if arguments.file == "-" and arguments.json:
        return "--json needs a FILE: without it, the documents themselves go to stdout"
    return ""


COMMANDS = (
    command(
        "memory ls",
        "list the documents",
        argument(
            "documents",
            nargs="?",
            default="",
            help="only these: a name or a part of it, a folder, a glob or a tag",
        ),
        LIMIT,
        text("--uri", metavar="GLOB", help="only documents whose URI matches"),
        check=_check_ls,
    ),
    command("memory show", "show a document's text", DOCUMENT),
    command(
        "memory rm",
        "remove documents from memory",
        argument("documents", nargs="+", metavar="document", help=f"{DOCUMENT.options['help']}, or a glob"),
        flag("--yes", help="remove all that a glob matches without asking"),
    ),
    command("memory log", "list the last changes of memory", LIMIT),
    command("memory versions", "list the versions of a document", DOCUMENT, LIMIT),
    command(
        "memory diff",
        "show what changed between two versions of a document",
        DOCUMENT,
        argument(
            "before",
            nargs="?",
            type=NUMBER,
            metavar="A",
            help="the older version (default: the one before B)",
        ),
        argument(
            "after", nargs="?", type=NUMBER, metavar="B", help="the newer version (default: the current one)"
        ),
    ),
    command(
        "memory restore",
        "make an earlier version of a document the current one, also of a removed document",
        DOCUMENT,
        argument(
            "version",
            nargs="?",
            type=NUMBER,
            metavar="VERSION",
            help="its number in `memory versions` (default: the one before the current one)",
        ),
    ),
    command(
        "memory undo",
        "undo the last change of memory, such as a whole load, or some writes",
        argument(
            "writes",
            nargs="*",
            type=_write,
            metavar="LAST|ID",
            help="the numbers of writes in `memory log` (default: last)",
        ),
        text("--origin", metavar="NAME", help="all writes of this client, session or group"),
        argument(
            "--since",
            type=_time,
            metavar="TIME",
            help="all writes since then: ISO 8601, or a time ago such as 10m, 2h or 3d",
        ),
        check=_check_undo,
    ),
    command(
        "memory export",
        "write all documents with their earlier versions as lines of JSON",
        text("file", metavar="FILE", nargs="?", default="-", help="a new file (default: stdout)"),
        flag(
            "--vectors", help="with the embeddings, which an import into a memory of the same embedder uses"
        ),
        target="transfer:export",
        check=_check_export,
    ),
    command(
        "memory import",
        "load the documents of an export",
        text("file", metavar="FILE", help="an export, or - to read it from stdin"),
        target="transfer:import_",
    ),
    command(
        "memory backup",
        "write a consistent copy of memory to a file",
        text("file", metavar="FILE", help="a new file"),
        flag("--force", help="replace FILE if it is a memory"),
    ),
    command(
        "memory copy",
        "copy a memory with everything in it to another file or database",
        text("source", metavar="FROM", help="a file or postgresql://…"),
        text("destination", metavar="TO", help="a new file, or postgresql://…"),
        check=_check_copy,
    ),
    command("memory stats", "print the size of memory and its embedder"),
    command(
        "memory reembed",
        "embed all documents again, after a change of the embedder; the old embeddings are kept to go back",
        flag(
            "--discard",
            help="only delete the embeddings that the last one has kept, or that a killed one has left",
        ),
    ),
    command(
        "memory verify",
        "check the memory file for damage",
        flag("--repair", help="rebuild what follows from the texts, after a copy of the file was made"),
    ),
)
