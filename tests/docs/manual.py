"""Writes the manual pages in docs/man from the parsers: `python -m tests.docs.manual`."""

from __future__ import annotations

import argparse
from argparse import SUPPRESS, Action, ArgumentParser
from collections.abc import Iterator

from ragchat import __version__
from ragchat.arguments.parser import make_parser
from ragmemory.cli import _parser
from tests.docs.pages import DOCS

FOLDER = DOCS / "man"
PARSERS = {"ragchat": make_parser, "ragmemory": lambda: _parser(commands=True)}


def page(program: str) -> str:
    parser = PARSERS[program]()
    common = set.intersection(*map(names, leaves(parser)))
    first, _, rest = (parser.description or "").partition(". ")
    about = first.rstrip(".")
    lines = [
        f'.TH {program.upper()} 1 "" "{program} {__version__}" "User Commands"',
        ".SH NAME",
        text(f"{program} - {about[0].lower()}{about[1:]}"),
        ".SH SYNOPSIS",
        f".B {program}",
        text("[OPTION …] [COMMAND …]"),
        *([".SH DESCRIPTION", text(rest)] if rest else []),
        ".SH OPTIONS",
        *options(parser, set()),
        ".SH COMMANDS",
        text(f"Every command also takes {', '.join(sorted(common))}."),
        *commands(parser, common),
        *([".SH EXIT STATUS", text(parser.epilog)] if parser.epilog else []),
    ]
    return "\n".join(lines) + "\n"


def names(parser: ArgumentParser) -> set[str]:
    return {name for one in parser._actions for name in one.option_strings}


def leaves(parser: ArgumentParser) -> list[ArgumentParser]:
    """The parsers without commands below a parser."""
    groups = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    return [leaf for one in groups for below in one.choices.values() for leaf in leaves(below)] or [parser]


def commands(parser: ArgumentParser, known: set[str]) -> Iterator[str]:
    """The commands below a parser, without the options that are `known`."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action._choices_actions:
                below = action.choices[one.dest]
                yield f".SS {text(below.prog)}{''.join(map(positional, below._actions))}"
                yield text(f"{one.help[:1].upper()}{one.help[1:]}." if one.help else "")
                yield from options(below, known)
                yield from commands(below, known)


def positional(action: Action) -> str:
    if action.option_strings or action.help == SUPPRESS or isinstance(action, argparse._SubParsersAction):
        return ""
    name = f"{metavar(action)}{' …' if action.nargs in ('+', '*') else ''}"
    return text(f" [{name}]" if action.nargs in ("*", "?") else f" {name}")


def metavar(action: Action) -> str:
    name = action.metavar or action.dest.upper()
    return name.upper() if isinstance(name, str) else " ".join(name)


def options(parser: ArgumentParser, known: set[str]) -> Iterator[str]:
    for action in parser._actions:
        is_known = bool(action.option_strings) and set(action.option_strings) <= known
        if is_known or action.help == SUPPRESS or isinstance(action, argparse._SubParsersAction):
            continue
        shown = ", ".join(action.option_strings) or metavar(action)
        value = f" {metavar(action)}" if action.option_strings and action.nargs != 0 else ""
        yield ".TP"
        yield f"\\fB{text(shown)}\\fR{text(value)}"
        yield text(action.help or "")


def text(plain: str) -> str:
    """Text in which roff reads nothing as a request."""
    escaped = plain.replace("\\", "\\e").replace("-", "\\-")
    escaped = "".join(one if one.isascii() else f"\\[u{ord(one):04X}]" for one in escaped)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for program in PARSERS:
        (FOLDER / f"{program}.1").write_text(page(program), encoding="utf-8")


if __name__ == "__main__":
    main()
