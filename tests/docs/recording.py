"""Writes docs/screens/tour.svg, a minute of the chat: `python -m tests.docs.recording`.

The program, its terminal and its answers are real. The clock is not: it gives a person the time to type and
to read, so that recording takes seconds, and another machine gets the same film.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path
from xml.sax.saxutils import escape

from pyte.screens import Char
from rich.style import Style
from rich.terminal_theme import MONOKAI

from tests.docs.screens import FOLDER, PROMPT, style_of
from tests.docs.screenshots import LIBRARY
from tests.support.program import Program, program_in
from tests.support.terminal import Terminal

FILE = FOLDER / "tour.svg"
COLUMNS, ROWS = 88, 28
# Pixels of a cell, and of the frame around the screen.
WIDTH, HEIGHT, MARGIN = 9.6, 20.0, 14.0
KEY_SECONDS, OUTPUT_SECONDS = 0.07, 0.05
# What is typed, what its answer shows, and how long it takes to read.
SCENES = (
    ("/inject notes", "6 added", 4.0),
    ("What pressure does the boiler need?", "offline · ", 9.0),
    ("And when is it serviced?", "offline · ", 9.0),
    ("/why", "Judged: ", 24.0),
)

Row = tuple[Char, ...]
Frame = list[Row]


def record(ragchat: Program) -> list[tuple[float, Frame]]:
    """The screens with the seconds at which they begin; the last one is the end."""
    environ = {**ragchat.variables, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    frames: list[tuple[float, Frame]] = []
    now = 0.0

    with Terminal([sys.executable, "-m", "ragchat"], environ, ragchat.folder, COLUMNS, ROWS) as terminal:

        def show(seconds: float) -> None:
            nonlocal now
            screen = terminal.screen
            frames.append(
                (now, [tuple(screen.buffer[row][x] for x in range(COLUMNS)) for row in range(ROWS)])
            )
            now += seconds

        terminal.wait_for(PROMPT)
        show(2.0)
        for text, shown, seconds in SCENES:
            for end, key in enumerate(text, start=1):
                terminal.press(key)
                terminal.wait_for(re.escape(text[:end].rstrip()[-9:]))
                show(KEY_SECONDS * (2 if key in " /" else 1))
            show(0.6)
            terminal.enter()
            # The prompt and the toolbar are back after the answer.
            done = re.compile(rf"(?s){re.escape(text[-9:])}.*{shown}.*{PROMPT}.* chunks · ")
            while not done.search(terminal.text):
                assert terminal.read(60), terminal.text
                show(OUTPUT_SECONDS)
            show(seconds)
        terminal.press("/quit")
        terminal.enter()
        terminal.wait_for_end()
    return [*frames, (now, [])]


def film(frames: list[tuple[float, Frame]]) -> str:
    """An SVG that plays the frames again and again. A row is drawn once for as long as it stays the same."""
    end = frames[-1][0]
    width, height = COLUMNS * WIDTH + 2 * MARGIN, ROWS * HEIGHT + 2 * MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-size="16"',
        '  font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace">',
        "<title>ragchat: a folder is loaded, questions are answered with citations, /why explains</title>",
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="{MONOKAI.background_color.hex}">',
        f'<animate id="f" attributeName="x" from="0" to="0" dur="{end:.2f}s" begin="0s;f.end"/></rect>',
    ]
    for y in range(ROWS):
        for row, group in groupby(pairwise(frames), key=lambda pair: pair[0][1][y]):
            shots = list(group)
            if drawn := "".join(_drawn(row, y)):
                begin, length = shots[0][0][0], shots[-1][1][0] - shots[0][0][0]
                timing = f'begin="f.begin+{begin:.2f}s" dur="{length:.2f}s"'
                shown = f'<set attributeName="visibility" to="visible" {timing}/>'
                lines.append(f'<g visibility="hidden">{shown}{drawn}</g>')
    return "\n".join([*lines, "</svg>", ""])


def _drawn(row: Row, y: int) -> Iterator[str]:
    """The pieces of a row, each of one style."""
    x = 0
    for style, cells in groupby(row, style_of):
        text = "".join(cell.data for cell in cells)
        left, top, length = MARGIN + x * WIDTH, MARGIN + y * HEIGHT, len(text) * WIDTH
        fore, back = _colour(style, foreground=True), _colour(style, foreground=False)
        if style.reverse:
            fore, back = back, fore
        if back != MONOKAI.background_color.hex:
            yield f'<rect x="{left:.1f}" y="{top:.1f}" width="{length:.1f}" height="{HEIGHT}" fill="{back}"/>'
        if text.strip():
            looks = ' font-weight="bold"' if style.bold else ""
            looks += ' font-style="italic"' if style.italic else ""
            looks += ' text-decoration="underline"' if style.underline else ""
            shown = text.rstrip()
            yield (
                f'<text xml:space="preserve" x="{left:.1f}" y="{top + 0.75 * HEIGHT:.1f}" fill="{fore}"'
                f' textLength="{len(shown) * WIDTH:.1f}"{looks}>{escape(shown)}</text>'
            )
        x += len(text)


def _colour(style: Style, *, foreground: bool) -> str:
    colour = style.color if foreground else style.bgcolor
    if colour is None:
        return (MONOKAI.foreground_color if foreground else MONOKAI.background_color).hex
    return colour.get_truecolor(MONOKAI, foreground).hex


def take(folder: Path) -> list[tuple[float, Frame]]:
    ragchat = program_in(folder)
    (ragchat.folder / "notes").mkdir()
    for note in LIBRARY["flat"]:
        title, _, text = note.partition("\n")
        path = ragchat.folder / "notes" / f"{title.lower().replace(' ', '-')}.md"
        path.write_text(f"# {title}\n\n{text}\n", encoding="utf-8")
    return record(ragchat)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        FILE.write_text(film(take(Path(folder))), encoding="utf-8")


if __name__ == "__main__":
    main()
