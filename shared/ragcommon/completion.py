"""Completion in bash, zsh and fish, made from an `argparse` parser.

A shell's script calls the program at each Tab with the words before the cursor, and so never is out of date.
"""

from __future__ import annotations

import argparse
from argparse import Action, ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

# The line instead of candidates where the shell completes the names of files.
FILES = ":files"
_FILE_VALUES = frozenset({"FILE", "PATH", "FROM", "TO", "SCRIPT"})


def script(shell: str, program: str) -> str:
    """What the start file of a shell evaluates: one of the files next to this module.

    It calls the program as the user typed it, which may be one that is not on the PATH. `compopt` is missing
    in bash 3.2, which then completes files where there is no candidate.
    """
    return Path(__file__).with_name(f"completion.{shell}").read_text("utf-8").replace("PROGRAM", program)


def completed(
    parser: ArgumentParser, words: Sequence[str], known: Mapping[str, Callable[[], Iterable[str]]]
) -> list[str]:
    """Lines of a candidate for the last of the words, a tab, and what it does; or the line FILES.

    `words` follow the program's name. `known` gives values by the name of an option, or by the command for
    its positional argument.
    """
    *before, typed = words or [""]
    pending: Action | None = None  # the option whose value comes next
    position, only_values = 0, False
    for word in before:
        if word == "=":  # bash splits `--option=value`
            continue
        if pending is not None:
            pending = None
        elif word == "--":
            only_values = True
        elif word.startswith("-") and not only_values:
            pending = _option(parser, word)
        elif commands := _commands(parser):
            if word not in commands.choices:
                return []
            parser = commands.choices[word]
        else:
            position += 1
    prefix = ""
    if typed.startswith("--") and "=" in typed and not only_values and pending is None:
        pending = _option(parser, typed.partition("=")[0])
        prefix, typed = f"{typed.partition('=')[0]}=", typed.partition("=")[2]
    typed = "" if typed == "=" else typed
    candidates = _candidates(parser, pending, position, typed, known, only_values=only_values)
    if candidates is None:
        return [FILES]
    return [
        f"{prefix}{value}\t{' '.join(text.split())}" for value, text in candidates if value.startswith(typed)
    ]


def _candidates(
    parser: ArgumentParser,
    pending: Action | None,
    position: int,
    typed: str,
    known: Mapping[str, Callable[[], Iterable[str]]],
    *,
    only_values: bool,
) -> Iterable[tuple[str, str]] | None:
    """Values with what they do; None: files."""
    if pending is not None:
        return _values(pending, known.get(pending.option_strings[-1]))
    if typed.startswith("-") and not only_values:
        return _options(parser)
    if commands := _commands(parser):
        return [(one.dest, one.help or "") for one in commands._choices_actions]
    positionals = [one for one in parser._actions if not one.option_strings]
    if not positionals:
        return _options(parser)
    return _values(positionals[min(position, len(positionals) - 1)], known.get(parser.prog))


def _values(action: Action, known: Callable[[], Iterable[str]] | None) -> Iterable[tuple[str, str]] | None:
    if known is not None:
        return [(one, "") for one in known()]
    if action.choices is not None:
        return [(str(one), "") for one in action.choices]
    # The words after `ask --prompt` are often names of files.
    is_text = not action.option_strings and action.metavar is None
    return None if is_text or action.metavar in _FILE_VALUES else []


def _options(parser: ArgumentParser) -> Iterator[tuple[str, str]]:
    for action in parser._actions:
        if action.option_strings and action.help != argparse.SUPPRESS:
            yield max(action.option_strings, key=len), action.help or ""


def _option(parser: ArgumentParser, name: str) -> Action | None:
    """The option of that name if a value follows it."""
    found = parser._option_string_actions.get(name)
    return None if found is None or found.nargs == 0 else found


def _commands(parser: ArgumentParser) -> argparse._SubParsersAction[ArgumentParser] | None:
    return next((one for one in parser._actions if isinstance(one, argparse._SubParsersAction)), None)
