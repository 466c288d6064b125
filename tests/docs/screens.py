"""Writes the pictures of docs/screens: `python -m tests.docs.screens`. The chat runs in a pseudo-terminal."""

from __future__ import annotations

import html
import io
import re
import sys
import tempfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from pyte.screens import Char, Screen
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tests.docs.pages import DOCS, folder_of_examples
from tests.support.program import Program
from tests.support.terminal import Terminal

FOLDER = DOCS / "screens"
COLUMNS = 84
TITLE = "ragchat"
# A font that the program of the reader has, instead of one from the network.
FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
# pyte's names of colours that rich calls otherwise.
COLOURS = {"brown": "yellow", "brightbrown": "bright_yellow"}
# The placeholder of an empty line.
PROMPT = "❯ Ask something"
QUESTION = "How much water pressure does the boiler need?"


def take(tmp_path: Path) -> dict[str, str]:
    """The pictures as SVG, by their names."""
    ragchat = folder_of_examples(tmp_path)
    # The first question of a chat loads what the others need.
    warm = [
        ("/inject notes", "2 added"),
        ("What is the capital of Mongolia?", "offline · "),
        ("/new", ""),
        ("/clear", ""),
    ]
    return {"why": chat(ragchat, 34, [*warm, (QUESTION, "offline · "), ("/why", "Judged: ")])}


def chat(ragchat: Program, rows: int, typed: Sequence[tuple[str, str]]) -> str:
    """The screen after some lines were typed, each with what its answer shows."""
    environ = {**ragchat.variables, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    command = [sys.executable, "-m", "ragchat"]
    with Terminal(command, environ, ragchat.folder, COLUMNS, rows) as terminal:
        terminal.wait_for(PROMPT)
        for text, shown in typed:
            ask(terminal, text, shown)
        svg = picture(terminal.screen)
        terminal.press("/quit")
        terminal.enter()
        terminal.wait_for_end()
    return svg


def ask(terminal: Terminal, text: str, shown: str) -> None:
    """Type a line, and wait until it has been answered, and the prompt and the toolbar are back."""
    terminal.press(text)
    terminal.wait_for(re.escape(text[-9:]))
    terminal.enter()
    terminal.wait_for(rf"(?s){shown}.*{PROMPT}.* chunks · ")


def picture(screen: Screen) -> str:
    console = Console(
        record=True, width=screen.columns, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    last = max(row for row, line in enumerate(screen.display) if line.strip())
    for row in range(last + 1):
        line = Text(no_wrap=True)
        cells = [screen.buffer[row][column] for column in range(screen.columns)]
        for style, alike in groupby(cells, style_of):
            line.append("".join(cell.data for cell in alike), style)
        console.print(line)
    svg = console.export_svg(title=TITLE, theme=MONOKAI, unique_id=TITLE)
    return "\n".join(line.rstrip() for line in FONT_FACE.sub("", svg).splitlines()) + "\n"


def style_of(cell: Char) -> Style:
    return Style(
        color=colour(cell.fg),
        bgcolor=colour(cell.bg),
        bold=cell.bold,
        italic=cell.italics,
        underline=cell.underscore,
        reverse=cell.reverse,
    )


def colour(name: str) -> str | None:
    if name == "default":
        return None
    if re.fullmatch("[0-9a-f]{6}", name):
        return f"#{name}"
    return COLOURS.get(name, name.replace("bright", "bright_"))


def words_of(svg: str) -> list[str]:
    """What the picture shows; times are masked."""
    text = " ".join(html.unescape(found) for found in re.findall(r"<text[^>]*>(.*?)</text>", svg))
    return re.sub(r"[\d.]+\s(m?s)\b", r"0 \1", text.replace("\xa0", " ")).split()


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, svg in take(Path(folder)).items():
            (FOLDER / f"{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
