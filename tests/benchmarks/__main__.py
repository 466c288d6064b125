"""`make bench`: all benchmarks but those on request, or those named on the command line."""

from __future__ import annotations

import importlib
import os
import sys

SECTIONS = (
    "stdio",
    "http",
    "servers",
    "start",
    "memory",
    "library",
    "fairness",
    "ndcg",
    "conversations",
    "grounding",
    "offline",
    "evaluation",
    "web",
    "pages",
    "ocr",
)
# Run only if they are named: too long.
ON_REQUEST = ("million", "store")


def main(names: list[str]) -> int:
    known = SECTIONS + ON_REQUEST
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"No benchmark {unknown[0]!r}; there are: {', '.join(known)}.", file=sys.stderr)
        return 2
    # As on a user's machine: without it every start compiles our sources again, which takes 30 ms.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for name in names or SECTIONS:
        importlib.import_module(f"tests.benchmarks.{name}").run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
