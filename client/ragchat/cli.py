"""The `ragchat` command line: runs one command and returns its exit code.

`arguments/` lists the commands, `commands/` implements them. A command is imported when it is called, so that
`--help` and `--version` load nothing else.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ragcommon.streams import leave_ascii

if TYPE_CHECKING:
    from ragchat.arguments.parser import WrongUsage
    from ragchat.commands.invocation import Invocation

# The threshold of the garbage collector. Imports make many objects and drop few: with the default of 700,
# collection takes 6 % of the time to the prompt.
GC_THRESHOLD = 50_000

FAILED, WRONG_USAGE = 1, 2  # 0 is done


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns 0 when it is done, 1 when it failed, 2 for wrong usage."""
    if argv is None:
        leave_ascii()
    if argv is None and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Nothing needs cleaning up before a command runs, so Ctrl-C may end the process without a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(GC_THRESHOLD)
    from ragchat.arguments.parser import WrongUsage, make_parser, parse

    words = sys.argv[1:] if argv is None else argv
    try:
        if bad := next(filter(_is_undecodable, words), None):
            make_parser(()).error(f"the argument {bad!r} is not UTF-8")
        arguments = parse(words)
    except WrongUsage as error:
        return _refuse(error, json="--json" in words)
    from ragchat.commands.invocation import Invocation
    from ragchat.console import Console, prepare_streams

    prepare_streams()
    return _run(Invocation(arguments, Console(json=arguments.json)))


def _is_undecodable(word: str) -> bool:
    """Whether an argument is not UTF-8 and does not name an existing file either."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return not os.path.lexists(word)
    return False


def _refuse(error: WrongUsage, *, json: bool) -> int:
    from ragchat.console import Console, Failure, prepare_streams

    prepare_streams()
    sys.stderr.write(error.usage)
    if json:
        with suppress(OSError):
            Console(json=True).document({"error": Failure("USAGE", str(error), error.hint)})
        _discard_stdout()
    return WRONG_USAGE


def _run(run: Invocation) -> int:
    from ragcommon.errors import leaf

    try:
        run.start_log()
        code = _call(run.arguments.target, run)
        sys.stdout.flush()
        return code
    except (Exception, BaseExceptionGroup, KeyboardInterrupt) as error:
        match leaf(error):
            case KeyboardInterrupt():
                run.console.stopped()
            case BrokenPipeError():  # the reader closed the pipe
                pass
            case cause:
                run.report(cause)
    _discard_stdout()
    return FAILED


def _call(target: str, run: Invocation) -> int:
    """Run the command's function, in an event loop if it is a coroutine. Raises KeyboardInterrupt."""
    import inspect
    from importlib import import_module

    module, _, name = target.partition(":")
    function = getattr(import_module(f"ragchat.commands.{module}"), name)
    if not inspect.iscoroutinefunction(function):
        return function(run) or 0
    from ragchat.commands import stopping

    try:
        return stopping.run(function(run)) or 0
    except stopping.Stopped:
        raise KeyboardInterrupt from None


def _discard_stdout() -> None:
    """Discard what cannot be written, so that the flush at exit does not fail."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
