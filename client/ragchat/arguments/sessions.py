"""Past conversations."""

from __future__ import annotations

from argparse import Namespace

from ragchat.arguments.declaring import LIMIT, argument, command, flag, text

SESSION = argument("session_id", metavar="ID", help="the session's id or the beginning of it")
NOTEBOOK = text("--notebook", metavar="NAME", help="only the conversations of this notebook")


def _check_inject(arguments: Namespace) -> str:
    if arguments.all == bool(arguments.session_ids):
        return "name the sessions to inject, or use --all"
    return ""


COMMANDS = (
    command("session ls", "list past conversations", LIMIT, NOTEBOOK),
    command("session show", "show a conversation", SESSION),
    command(
        "session rm",
        "delete conversations",
        argument("session_ids", nargs="+", metavar="ID", help=SESSION.options["help"]),
    ),
    command("session export", "print a conversation as Markdown", SESSION),
    command(
        "session inject",
        "put conversations into memory, so that later questions find them",
        argument("session_ids", nargs="*", metavar="ID", help=SESSION.options["help"]),
        flag("--all", help="all conversations"),
        check=_check_inject,
    ),
    command("session stale", "list answers whose documents have changed since"),
    command(
        "session search",
        "search past conversations",
        argument("text", nargs="+", help="words to search for"),
        LIMIT,
        NOTEBOOK,
    ),
)
