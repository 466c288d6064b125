"""Jupyter notebooks: their text, code and printed output; the places are the cells."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from msgspec import Struct

from ragcommon.errors import DECODE_ERRORS
from ragmemory.files.formats.file_text import Damaged, FileText, TextBuilder, clean, fenced
from ragmemory.ingest.documents import first_heading

Lines = str | list[str]
# Characters of a cell's output; the rest is mostly training logs.
MAX_OUTPUT = 4_000
# What stands for a plot or an object: "<Figure size 432x288 with 1 Axes>", "[<lines.Line2D at 0x7f3c>]".
OBJECT = re.compile(
    r"^ ?\[?<(?:[^<>\n]* at 0x[0-9a-f]+|Figure size [^<>\n]*|Axes(?:Subplot)?:[^<>\n]*)>,?\]?$\n?",
    re.MULTILINE,
)
COLOURS = re.compile("\x1b\\[[0-9;]*[A-Za-z]")


class Output(Struct, frozen=True):
    output_type: str = ""
    text: Lines = ""
    data: dict[str, object] = {}
    ename: str = ""
    evalue: str = ""


class Cell(Struct, frozen=True):
    cell_type: str
    source: Lines = ""
    outputs: list[Output] = []


class Notebook(Struct, frozen=True):
    cells: list[Cell]
    metadata: dict[str, object] = {}


def read(path: Path, data: bytes) -> FileText:
    """The text of a notebook of version 4. Raises NotText."""
    try:
        notebook = msgspec.json.decode(data, type=Notebook)
    except DECODE_ERRORS:
        raise Damaged("notebook") from None
    builder, title = TextBuilder(), ""
    language = _language(notebook.metadata)
    for number, cell in enumerate(notebook.cells, 1):
        source = _joined(cell.source)
        if cell.cell_type != "code":
            title = title or first_heading(source)
            builder.add(source, f"cell {number}")
            continue
        if source.strip():
            builder.add(fenced(source, language), f"cell {number}")
        if output := "".join(map(_printed, cell.outputs)).strip("\n"):
            builder.add(fenced(output[:MAX_OUTPUT]), f"cell {number}")
    return builder.build(title or path.name)


def _language(metadata: dict[str, object]) -> str:
    about = metadata.get("language_info")
    name = about.get("name", "") if isinstance(about, dict) else ""
    return name if isinstance(name, str) and name.isalnum() else ""


def _printed(output: Output) -> str:
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}\n"
    plain = output.text or output.data.get("text/plain", "")
    text = OBJECT.sub("", clean(COLOURS.sub("", _joined(plain))))
    return text if not text or text.endswith("\n") else f"{text}\n"


def _joined(lines: object) -> str:
    if isinstance(lines, list):
        return "".join(line for line in lines if isinstance(line, str))
    return lines if isinstance(lines, str) else ""
