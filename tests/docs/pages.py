"""The pages of the documentation, their code blocks, and a folder in which their commands run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.support.processes import LONGEST_SECONDS
from tests.support.program import Program, program_in

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "deploy/README.md", *sorted(DOCS.rglob("*.md")))
# What the folder of the examples holds.
FILES = {
    "notes/flat.md": "# Flat\n\n## Boiler\n\nPressure must stay between 1.2 and 1.8 bar. "
    "Refill it with the blue valve under the sink.\n\n## Bins\n\nPaper goes out every second Tuesday.\n",
    "notes/garden.md": "# Garden\n\n## Roses\n\nCut the roses in March.\n\n"
    "## Lawn\n\nMow it every ten days.\n",
    "code/disk.py": "def load(name):\n    return open(name)\n",
    "code/store.py": "from disk import load\n\n\nclass Store:\n    def find(self, name):\n"
    "        return load(name)\n",
    "build.log": "compiling store.c\nlinking failed: the symbol load is missing\n",
}
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    page: Path
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{name_of(self.page)}:{self.line}"


class Step(NamedTuple):
    """What is typed, and what is shown then."""

    typed: str
    shown: str


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(*kinds: str) -> list[Block]:
    """The code blocks of all pages, of some kinds or of all."""
    return [
        Block(page, text.count("\n", 0, found.start()) + 1, found[1], found[2])
        for page in PAGES
        for text in [read(page)]
        for found in BLOCK.finditer(text)
        if found[1] in kinds or not kinds
    ]


def steps(block: Block, prompt: str) -> list[Step]:
    parts = f"\n{block.text}".split(f"\n{prompt}")[1:]
    return [Step(*part.partition("\n")[::2]) for part in parts]


def folder_of_examples(tmp_path: Path) -> Program:
    """A home of its own, and a folder with the files that the examples name."""
    ragchat = program_in(tmp_path)
    for name, text in FILES.items():
        path = ragchat.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return ragchat


def run_line(ragchat: Program, line: str) -> str:
    """Run a line in a shell; both of its streams."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", line],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=ragchat.folder,
        env={**ragchat.variables, "PATH": programs},
        timeout=LONGEST_SECONDS,
        check=False,
    )
    return done.stdout.decode()
