"""The command `ragmemory`: the memory as an MCP server on stdio. stdout belongs to the protocol alone.

Light on purpose: a host waits for the first answer, so what is heavy is imported after it.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ragmemory import __version__

# New objects after which Python looks for garbage. Imports make many and drop none: with the usual 700,
# looking takes 6 % of the time to the first answer.
OBJECTS = 50_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run until the host goes away. Returns the exit code: 0 done, 1 failed (2, wrong usage, by argparse)."""
    gc.set_threshold(OBJECTS)
    arguments = _parser().parse_args(argv)
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO if arguments.verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    from ragmcp.settings import SettingsError, load_settings
    from ragmemory import serving

    try:
        settings = load_settings(
            arguments.config,
            {"memory.path": arguments.memory, "memory.toolsets": arguments.toolsets},
        )
        with suppress(KeyboardInterrupt):
            serving.run(settings)
    except SettingsError as error:
        sys.stderr.write(f"{error} {error.hint}".rstrip() + "\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ragmemory",
        description="A memory for language models, served over MCP on stdio: Inject text, Query it.",
        formatter_class=_formatter,
    )
    parser.add_argument("--memory", metavar="PATH", help="the memory's SQLite file")
    parser.add_argument(
        "--config", metavar="FILE", type=Path, help="a settings file instead of the user's own"
    )
    parser.add_argument(
        "--toolsets", metavar="A,B", type=_names, help="tool groups to offer: memory, documents"
    )
    parser.add_argument("--version", action="version", version=f"ragmemory {__version__}")
    parser.add_argument("-v", "--verbose", action="store_true", help="log more, to stderr")
    return parser


def _formatter(prog: str) -> argparse.HelpFormatter:
    # Told the width, argparse does not import shutil (4 ms) with every start to ask for it.
    width = 80
    with suppress(OSError):
        width = os.get_terminal_size().columns
    return argparse.HelpFormatter(prog, width=width - 2)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
