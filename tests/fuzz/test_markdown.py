"""The blocks of hostile texts: they join to the whole text, say what they are, and take linear time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcommon.text.rules import MAX_HEADING
from ragmemory.files.formats.text import title_of
from ragmemory.ingest.blocks import Block, markdown_blocks, paragraphs
from ragmemory.ingest.documents import first_heading
from ragmemory.ingest.headings import plain_blocks
from tests.fuzz.hostile import UNSHRUNK, few, processor_seconds, repeated, texts

LONG = 500_000
PROCESSOR_SECONDS = 4.0
# A heading path names at most the six levels above.
MAX_PATH = 6 * (MAX_HEADING + len(" > "))


def check(text: str, blocks: list[Block]) -> None:
    assert [block.start for block in blocks] == [0, *(block.end for block in blocks[:-1])][: len(blocks)]
    assert (blocks[-1].end if blocks else 0) == len(text)
    assert all(block.start < block.end for block in blocks)
    assert all(len(block.heading) <= MAX_PATH and "\n" not in block.heading for block in blocks)
    sections = [block.section for block in blocks]
    assert sections == sorted(sections)


@given(texts)
def test_the_blocks_of_a_text_join_to_it(text: str) -> None:
    check(text, list(markdown_blocks(text)))
    check(text, list(paragraphs(text)))
    check(text, list(plain_blocks(text)))


@settings(few(15), phases=UNSHRUNK)
@given(repeated(LONG))
def test_the_blocks_of_a_long_repetition_take_linear_time(text: str) -> None:
    with processor_seconds(PROCESSOR_SECONDS):
        blocks = list(markdown_blocks(text))
        plain = list(paragraphs(text))
        check(text, list(plain_blocks(text)))
        first_heading(text)
        title_of(Path("a.md"), text)
    check(text, blocks)
    check(text, plain)


@pytest.mark.parametrize("size", [290, 2_000, 100_000])
@given(st.data())
@settings(few(10), phases=UNSHRUNK)
def test_one_long_line_takes_linear_time(size: int, data: st.DataObject) -> None:
    line = data.draw(repeated(size)).replace("\n", " ")
    with processor_seconds(PROCESSOR_SECONDS):
        check(line, list(markdown_blocks(line)))
        first_heading(line)
        title_of(Path("a.md"), line)


@pytest.mark.parametrize(
    "line",
    [
        "# a" + " " * 2_000 + "b",
        "# a" + "\t" * 2_000 + "#b",
        "# " + "#" * 100_000 + "b",
        "# a" + " #" * 20_000,
    ],
)
def test_headings_that_once_took_long(line: str) -> None:
    with processor_seconds(1):
        first_heading(line)
        assert title_of(Path("a.md"), line)
