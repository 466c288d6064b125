"""Notebooks: text, code and output."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files.formats.notebook import MAX_OUTPUT, read

FILE = Path("a.ipynb")


def notebook(*cells: dict[str, Any]) -> bytes:
    about = {"language_info": {"name": "python"}}
    return json.dumps({"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}).encode()


def test_text_code_and_output_are_read_cell_by_cell() -> None:
    printed = {"output_type": "stream", "name": "stdout", "text": ["\x1b[31m3", " minutes\x1b[0m\n"]}
    shown = {"output_type": "execute_result", "data": {"text/plain": "4", "image/png": "iVBOR"}}
    found = read(
        FILE,
        notebook(
            {"cell_type": "markdown", "source": ["# Brewing\n", "How long?"]},
            {"cell_type": "code", "source": "print(t)", "outputs": [printed, shown]},
            {"cell_type": "code", "source": "", "outputs": []},
            {
                "cell_type": "code",
                "source": "x",
                "outputs": [{"output_type": "error", "ename": "E", "evalue": "no"}],
            },
        ),
    )
    assert found.text == (
        "# Brewing\nHow long?\n\n```python\nprint(t)\n```\n\n```\n3 minutes\n4\n```\n\n"
        "```python\nx\n```\n\n```\nE: no\n```\n"
    )
    assert found.title == "Brewing"
    assert found.places == [(1, "cell 1"), (4, "cell 2"), (8, "cell 2"), (13, "cell 4"), (17, "cell 4")]


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("<Figure size 432x288 with 1 Axes>", ""),
        ("<AxesSubplot:xlabel='mm'>", ""),
        ("[<matplotlib.lines.Line2D at 0x7f3c>]", ""),
        ("(3, <Weekday.MON: 1>)", "(3, <Weekday.MON: 1>)\n"),
    ],
)
def test_what_stands_for_a_plot_is_no_output(label: str, shown: str) -> None:
    plot = {"output_type": "display_data", "data": {"text/plain": [label], "image/png": "iVBOR"}}
    found = read(FILE, notebook({"cell_type": "code", "source": "plot()", "outputs": [plot]})).text
    assert found == "```python\nplot()\n```\n" + (f"\n```\n{shown}```\n" if shown else "")


def test_a_long_output_is_cut() -> None:
    log = {"output_type": "stream", "text": "x" * (MAX_OUTPUT + 1)}
    assert (
        len(read(FILE, notebook({"cell_type": "code", "source": "run()", "outputs": [log]})).text)
        < MAX_OUTPUT + 100
    )


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"cells": 3}', b'{"worksheets": []}', b"\xff"])
def test_a_damaged_notebook_is_refused(data: bytes) -> None:
    with pytest.raises(NotText, match="is a damaged notebook file"):
        read(FILE, data)


def test_a_fence_is_longer_than_any_in_the_code_and_found_in_one_pass() -> None:
    spent = os.times().user
    found = read(Path("a.ipynb"), b'{"cells": [{"cell_type": "code", "source": "%s"}]}' % (b"`" * 200_000))
    assert found.text.startswith("`" * 200_001 + "\n")
    assert os.times().user - spent < 1
