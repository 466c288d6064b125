"""Questions: asked, researched, searched for, and run as a script; what the chat takes as well."""

from __future__ import annotations

import argparse
from argparse import Namespace

from ragchat.arguments.declaring import argument, command, flag, int_between, stream_among, text

TOP_K = argument(
    *("-k", "--top-k"), type=int_between(1, 100), metavar="N", dest="top_k", help="find N passages (1 to 100)"
)


MODEL_CHOICE = (
    text("--model", metavar="M", help="the language model to ask"),
    flag("--offline", help="answer without a language model"),
)


class _Once(argparse.Action):
    """Refuses a second value, which would replace the first."""

    def __call__(self, _parser: object, arguments: Namespace, value: object, _name: object = None) -> None:
        if getattr(arguments, self.dest, None) is not None:
            raise argparse.ArgumentError(self, "give it once: a glob or a tag names several documents")
        setattr(arguments, self.dest, value)


SCOPE = text(
    "--in",
    action=_Once,
    metavar="DOCUMENTS",
    dest="scope",
    help="ask only these documents: a folder, a glob, a tag or a name",
)


ROLE = text("--role", metavar="NAME", help="answer in this role, such as reviewer")
NOTEBOOK = text("--notebook", metavar="NAME", help="in this notebook: its documents, instructions and model")


CONVERSATION = (
    SCOPE,
    ROLE,
    NOTEBOOK,
    text("--session", metavar="ID", help="continue this session"),
    flag("-c", "--continue", dest="resume", help="continue the last session"),
    *MODEL_CHOICE,
    flag("--yes-read-only", help="call tools that say they only read without asking"),
    flag("--no-tools", help="offer the model no tools"),
)


def _check_ask(arguments: Namespace) -> str:
    if not (arguments.question or arguments.prompt):
        return "name a question, or a prompt with --prompt"
    if arguments.no_session and (arguments.session or arguments.resume):
        return "--no-session cannot be combined with --session and -c"
    if arguments.question == ["-"] and "-" in arguments.files:
        return "stdin has either the question or the text"
    if arguments.files and arguments.scope:
        return "--in chooses documents of memory: it cannot be combined with -f"
    if arguments.files and arguments.notebook:
        return "--notebook asks documents of memory: it cannot be combined with -f"
    return stream_among(arguments.files)


def _check_query(arguments: Namespace) -> str:
    if arguments.notebook:
        return "--notebook is for questions: a search is limited by --in"
    return ""


def _check_research(arguments: Namespace) -> str:
    if arguments.resume_stopped == bool(arguments.question):
        return "name a question, or use --resume"
    return ""


ASK = command(
    "ask",
    "answer one question, with sources",
    argument(
        "question",
        nargs="*",
        help="the question, or - to read it from stdin; with --prompt its values, also as name=value",
    ),
    text("--prompt", metavar="NAME", help="ask this prompt; `ragchat prompt ls` lists them"),
    TOP_K,
    text(
        "-f",
        "--file",
        metavar="FILE",
        action="append",
        dest="files",
        default=[],
        help="ask about this file (- for stdin) instead of memory; piped text is used the same way",
    ),
    flag("--no-session", help="do not save the question and its answer"),
    *CONVERSATION,
    check=_check_ask,
)


RESEARCH = command(
    "research",
    "write a cited report from memory and the connected servers",
    argument("question", nargs="*", help="the question, or - to read it from stdin"),
    flag("--resume", dest="resume_stopped", help="go on with the report that was stopped last"),
    flag("--inject", help="store the report in memory"),
    *(one for one in CONVERSATION if one is not ROLE),
    check=_check_research,
)


PROMPTS = (
    command("prompt ls", "list the prompts and the roles"),
    command(
        "prompt show",
        "show a prompt or a role, and the file that it is in",
        argument("name", metavar="NAME", help="the name of a prompt or a role"),
    ),
)


QUERY = command(
    "query",
    "search memory without asking a question",
    argument("text", nargs="+", help="what to search for, or - to read it from stdin"),
    TOP_K,
    SCOPE,
    check=_check_query,
)


RUN = command(
    "run",
    "run a scripted session and check its answers",
    argument("script", metavar="SCRIPT", help="a TOML file"),
    *MODEL_CHOICE,
)
