"""Files and folders: loaded once, or kept in step with."""

from __future__ import annotations

from argparse import Namespace

from ragchat.arguments.declaring import argument, command, flag, stream_among, text


def _check_inject(arguments: Namespace) -> str:
    if arguments.uri and "-" not in arguments.paths:
        return "--uri is the URI of the document from stdin: it needs the path -"
    if not arguments.paths and not arguments.addresses:
        return "it needs a PATH, or --addresses FILE"
    if arguments.addresses == "-" and "-" in arguments.paths:
        return "stdin has either a text or the addresses"
    return stream_among(arguments.paths)


def _check_watch(arguments: Namespace) -> str:
    if arguments.install and arguments.uninstall:
        return "--install and --uninstall cannot be combined"
    if (arguments.install or arguments.uninstall) and not arguments.service:
        return f"--{'install' if arguments.install else 'uninstall'} needs --service"
    return ""


_PRIVATE = flag("--allow-private", help="also load web pages of this machine and of private networks")


COMMANDS = (
    command(
        "inject",
        "load files, folders and web pages into memory",
        argument(
            "paths",
            nargs="*",
            metavar="PATH",
            help="a file or folder, the address of a web page, or - to read stdin",
        ),
        argument(
            "--addresses", metavar="FILE", help="a file with addresses of web pages, one a line; - is stdin"
        ),
        _PRIVATE,
        text("--uri", help="the URI of the document from stdin"),
        flag("--prune", help="remove documents whose files are gone from the folders"),
        check=_check_inject,
    ),
    command(
        "sync",
        "load what is new and changed in the sources, and remove what is gone",
        argument("paths", nargs="*", metavar="PATH", help="only these files, folders and pages"),
        _PRIVATE,
        target="source:sync_sources",
    ),
    command(
        "watch",
        "keep memory in step with the sources until Ctrl-C",
        argument("paths", nargs="*", metavar="PATH", help="only these files, folders and pages"),
        _PRIVATE,
        flag("--service", help="print a unit with which systemd, launchd or Windows runs it instead"),
        flag("--install", help="with --service: write the unit and start it"),
        flag("--uninstall", help="with --service: stop it and remove the unit"),
        check=_check_watch,
    ),
    command(
        "source add",
        "register folders and web pages that memory stays in step with, and load them",
        argument("paths", nargs="+", metavar="PATH", help="a file or folder, or the address of a web page"),
        _PRIVATE,
    ),
    command("source ls", "list the sources and their last sync"),
    command(
        "source rm",
        "take folders and pages off the list; their documents stay in memory",
        argument("paths", nargs="+", metavar="PATH", help="a source"),
        flag("--forget", help="remove their documents from memory, too"),
        text("--machine", metavar="NAME", help="the machine that they are on, if not this one"),
    ),
)
