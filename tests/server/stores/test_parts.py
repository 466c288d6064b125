"""A document read in parts."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from ragcommon.contract.documents import DocumentPart
from ragmemory.errors import BadArgument
from ragmemory.service import MemoryService
from ragmemory.stores.parts import clipped
from tests.server.test_model import odd_texts
from tests.support.memories import ORIGIN, service_for
from tests.support.stores import BOTH_ENGINES

pytestmark = BOTH_ENGINES

LONG = "".join(f"## Part {number}\n\n{'Some words. ' * 60}\n\n" for number in range(50))


async def parts(memory: MemoryService, lines: tuple[int, int | None], size: int) -> list[DocumentPart]:
    found = [await memory.documents.part("doc", lines, 0, size)]
    while found[-1].next_cursor is not UNSET:
        found.append(await memory.documents.part("doc", lines, int(found[-1].next_cursor), size))
    return found


def lines_of(text: str, first: int, last: int | None) -> str:
    return "".join(line + "\n" for line in text.split("\n")[first - 1 : last])[: len(text)]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        *[(0, None, "a\nb\n\nc"), (-3, None, "a\nb\n\nc"), (1, None, "b\n\nc"), (3, 4, "c"), (3, 9, "c")],
        *[(0, 1, "a\n"), (2, 3, "\n"), (4, None, ""), (9, 12, ""), (-5, 0, ""), (-5, -2, "")],
    ],
)
def test_lines_are_cut_out_of_a_text(start: int, end: int | None, expected: str) -> None:
    assert clipped("a\nb\n\nc", start, end) == expected


async def test_the_parts_of_a_document_name_the_places_of_their_lines(tmp_path: Path) -> None:
    places = [(4 * number + 1, f"p. {number + 1}") for number in range(50)]
    async with service_for(tmp_path) as memory:
        await memory.writer.inject(LONG, {"uri": "doc"}, ORIGIN, places=places)
        found = await parts(memory, (1, None), 3_000)
        assert len(found) > 3
        assert list(dict.fromkeys(place for part in found for place in part.places)) == places
        [part] = await parts(memory, (6, 9), 3_000)
        assert part.places == places[1:3]


async def test_the_parts_of_a_document_join_to_its_text_and_keep_to_their_size(tmp_path: Path) -> None:
    async with service_for(tmp_path) as memory:
        await memory.writer.inject(LONG, {"uri": "doc"}, ORIGIN)
        found = await parts(memory, (1, None), 5_000)
        assert "".join(part.text for part in found) == LONG
        assert len(found) > 5
        assert max(len(part.text) for part in found) <= 5_000
        for part in found:
            # Line numbers are those of the whole text.
            assert lines_of(LONG, part.start_line, part.end_line).endswith(part.text)
        [whole] = await parts(memory, (1, None), 1_000_000)
        assert (whole.text, whole.start_line, whole.end_line) == (LONG, 1, LONG.count("\n"))


@given(
    text=st.one_of(
        odd_texts, st.lists(st.sampled_from(["# A", "", " ", "word " * 90, "|a|", "- b"])).map("\n".join)
    ).filter(lambda text: bool(text.strip())),
    first=st.integers(1, 12),
    count=st.none() | st.integers(0, 12),
    size=st.integers(1, 2_000),
)
async def test_any_lines_of_any_text_are_returned_exactly(
    text: str, first: int, count: int | None, size: int
) -> None:
    last = None if count is None else first + count
    expected = clipped(text, first - 1, last)
    with TemporaryDirectory() as folder:
        async with service_for(Path(folder)) as memory:
            await memory.writer.inject(text, {"uri": "doc"}, ORIGIN)
            if expected:
                found = await parts(memory, (first, last), size)
                assert "".join(part.text for part in found) == expected
                assert found[0].start_line == first
            else:
                with pytest.raises(BadArgument, match="after the last line"):
                    await parts(memory, (first, last), size)


async def test_a_cursor_of_a_text_that_was_replaced_is_refused(tmp_path: Path) -> None:
    async with service_for(tmp_path) as memory:
        await memory.writer.inject(LONG, {"uri": "doc"}, ORIGIN)
        part = await memory.documents.part("doc", (1, None), 0, 1_000)
        await memory.writer.inject("# New\n\n" + LONG, {"uri": "doc"}, ORIGIN)
        assert part.next_cursor is not UNSET
        with pytest.raises(BadArgument, match="has changed since the page before"):
            await memory.documents.part("doc", (1, None), int(part.next_cursor), 1_000)
