"""Notebooks: a part of memory with conversations, instructions and a model of its own."""

from __future__ import annotations

from argparse import SUPPRESS

from ragchat.arguments.declaring import argument, command, flag, text
from ragchat.arguments.questions import SCOPE

_NAME = argument("name", metavar="NAME", help="its name: letters, digits, - and _")
_VALUES = (
    SCOPE,
    argument("--instructions", metavar="TEXT", help="what you want of every answer"),
    argument(
        "--model",
        metavar="M",
        default=SUPPRESS,  # it may stand before the command, too
        help='the language model to ask; "" takes it back',
    ),
)

COMMANDS = (
    command("notebook new", "create a notebook", _NAME, *_VALUES),
    command("notebook ls", "list the notebooks"),
    command("notebook show", "show a notebook and its conversations", _NAME),
    command(
        "notebook edit",
        "change a notebook; `notebook show` names its file",
        _NAME,
        *_VALUES,
        check=lambda arguments: (
            "notebook edit needs --in, --instructions or --model"
            if (arguments.scope, arguments.instructions, arguments.model) == (None, None, None)
            else ""
        ),
    ),
    command(
        "notebook rm",
        "remove notebooks; their documents and conversations stay",
        argument("names", metavar="NAME", nargs="+", help="a notebook"),
    ),
    command(
        "notebook export",
        "write a notebook with its documents and conversations as lines of JSON",
        _NAME,
        text("-o", "--output", metavar="FILE", default="-", help="a new file (default: stdout)"),
        check=lambda arguments: (
            "--json needs -o FILE: without it, the notebook itself goes to stdout"
            if arguments.output == "-" and arguments.json
            else ""
        ),
    ),
    command(
        "notebook import",
        "load an exported notebook, with its documents and conversations",
        text("file", metavar="FILE", help="an exported notebook"),
        text("--as", metavar="NAME", dest="other_name", help="under another name"),
        flag("--yes", help="do not ask whether its instructions are right"),
        target="notebook:import_",
    ),
)
