"""How a command and its arguments are declared, and the kinds of values."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class Argument(NamedTuple):
    """One call of `add_argument`."""

    names: tuple[str, ...]
    options: dict[str, Any]


class Command(NamedTuple):
    """One line of the table. `target` is `module:function` in `ragchat.commands`; `alias` is another name.

    `check` returns what is wrong with arguments that argparse accepts, such as flags that exclude each other
    but may stand on both sides of the command; "" if nothing is.
    """

    name: str
    target: str
    help: str
    arguments: tuple[Argument, ...]
    check: Callable[[Namespace], str]
    alias: str


def command(
    name: str,
    help: str,
    *arguments: Argument,
    target: str = "",
    check: Callable[[Namespace], str] = lambda _: "",
    alias: str = "",
) -> Command:
    """A line of the table. Without a target, `memory ls` calls `memory:ls`, and `ask` calls `ask:ask`."""
    group, _, verb = name.partition(" ")
    return Command(name, target or f"{group}:{verb or group}", help, arguments, check, alias)


def argument(*names: str, **options: Any) -> Argument:
    return Argument(names, options)


def flag(*names: str, **options: Any) -> Argument:
    return Argument(names, {"action": "store_true", **options})


def text(*names: str, **options: Any) -> Argument:
    """An argument whose value is a text, which must not be empty."""
    return Argument(names, {"type": _filled, **options})


def int_between(minimum: int, maximum: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if not minimum <= value <= maximum:
            raise argparse.ArgumentTypeError(f"{text} is not between {minimum} and {maximum}")
        return value

    return number


def _filled(text: str) -> str:
    """Refuse an empty value, such as an unset variable in a shell script."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return text


def pair(separator: str) -> Callable[[str], tuple[str, str]]:
    def pair(text: str) -> tuple[str, str]:
        name, found, value = text.partition(separator)
        if not (name and found):
            raise argparse.ArgumentTypeError(f"{text!r} has no {separator!r} after a name")
        return name.strip(), value.strip()

    return pair


LIMIT = argument(
    "-n",
    "--limit",
    type=int_between(1, 10_000),
    metavar="N",
    default=100,
    help="at most N lines (default: 100)",
)


# Files of this process, such as `<(COMMAND)` of a shell; the server, which reads files, has others there.
_STREAMS = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")


def stream_among(paths: Sequence[str]) -> str:
    """What to do about a path that names a stream of this process; "" without one."""
    streams = [path for path in paths if path.startswith(_STREAMS)]
    return f"{streams[0]} is a stream: name - in its place, and pipe the text to it" if streams else ""
