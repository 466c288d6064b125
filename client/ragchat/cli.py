"""The `ragchat` command line: runs one command, and turns its end into an exit code.

What there is stands in `arguments`, what it does in `commands/`. A command is imported when it is called, so
that `--help` and `--version` load nothing.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragchat.arguments import make_parser, usage_flaw

if TYPE_CHECKING:
    from ragchat.commands import Run

# New objects after which Python looks for garbage. Imports make many and drop none: with the usual 700,
# looking takes 6 % of the time to the prompt.
OBJECTS = 50_000

FAILED = 1  # 0 is done; argparse leaves with 2 for wrong usage


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns 0 when it is done, 1 when it failed; wrong usage leaves with 2."""
    gc.set_threshold(OBJECTS)
    words = sys.argv[1:] if argv is None else argv
    parser = make_parser(commands=bool(words))
    arguments = parser.parse_args(words)
    if flaw := usage_flaw(arguments):
        parser.error(flaw)
    from ragchat.commands import Run
    from ragchat.console import Console, prepare_streams

    prepare_streams()
    return _run(Run(arguments, Console(json=arguments.json)))


def _run(run: Run) -> int:
    from ragchat.console import leaf

    try:
        run.start_log()
        return _call(run.arguments.target, run)
    except (Exception, BaseExceptionGroup, KeyboardInterrupt) as error:
        match leaf(error):
            case KeyboardInterrupt():
                run.console.note("Stopped.")
            case BrokenPipeError():
                _silence_stdout()
            case cause:
                run.report(cause)
    return FAILED


def _call(target: str, run: Run) -> int:
    """Run the command's function, in an event loop where it is a coroutine."""
    import inspect
    from importlib import import_module

    module, _, name = target.partition(":")
    outcome = getattr(import_module(f"ragchat.commands.{module}"), name)(run)
    if not inspect.iscoroutine(outcome):
        return int(outcome)
    import anyio

    async def await_outcome() -> int:
        return int(await outcome)

    return anyio.run(await_outcome)


def _silence_stdout() -> None:
    """The reader has gone; the interpreter's last flush must not complain about it."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
