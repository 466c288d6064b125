"""The program itself: its model and embedder, serve the memory, settings, diagnosis."""

from __future__ import annotations

from argparse import SUPPRESS, Namespace

from ragchat.arguments.declaring import Argument, argument, command, flag, int_between, text


def _check_serve(arguments: Namespace) -> str:
    if arguments.server:
        return "serve serves a memory of this machine: it cannot be combined with --server"
    return ""


def _check_web(arguments: Namespace) -> str:
    if bool(arguments.certificate) != bool(arguments.private_key):
        return "--certificate and --private-key belong together"
    return ""


def _port(default: int) -> Argument:
    described = f"the port, or 0 for any free one (default: {default})"
    return argument("--port", type=int_between(0, 65_535), metavar="N", help=described)


_HOST = text("--host", help="the address to listen on (default: 127.0.0.1)")
YES = flag("--yes", help="download and choose without asking")

COMMANDS = (
    command(
        "model setup",
        "find models on this machine, try them, and write the one to use into the settings",
        text("--use", metavar="NAME", help="this model, auto, offline, or back for what was before"),
        YES,
    ),
    command("embedder ls", "list what can embed: size, languages, licence"),
    command(
        "embedder use",
        "embed memory with another embedder, compare both by your own cases, and change to it",
        text(
            "name",
            metavar="NAME",
            help="its name in `embedder ls`, ollama:NAME to pull one, a folder with a model, or back",
        ),
        flag("--anyway", help="change to it without asking your cases"),
        YES,
    ),
    command(
        "web",
        "open the conversation, its sources and the library on a page",
        _HOST,
        _port(0),
        text("--password-file", metavar="FILE", help="a file with the password that lets others in"),
        text("--certificate", metavar="FILE", help="serve HTTPS with this certificate (PEM)"),
        text("--private-key", metavar="FILE", help="the private key of the certificate (PEM)"),
        text("--public-url", metavar="URL", help="the address of the proxy that this page is behind"),
        flag("--no-open", help="print the address, and open no browser"),
        text("--token-file", metavar="FILE", help="a file with the token of other programs"),
        flag("--api-only", help="serve other programs at /v1, without the page"),
        check=_check_web,
    ),
    command(
        "serve",
        "serve the memory over HTTP",
        _HOST,
        _port(8765),
        text("--token-file", metavar="FILE", help="a file with the bearer token that clients must send"),
        flag("--read-only", help="offer no tool that changes memory"),
        check=_check_serve,
    ),
    command(
        "completion",
        "print the script with which a shell completes commands, options and names",
        argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish"),
        argument("words", nargs="*", default=[], help=SUPPRESS),
    ),
    command("config show", "show the effective settings and where each comes from"),
    command("config path", "show where settings, memory and logs are"),
    command("config init", "write a settings file with all defaults, commented out"),
    command("doctor", "check the installation, memory and model"),
)
