"""Lines out of bytes."""

from __future__ import annotations

import itertools
import time

from hypothesis import given
from hypothesis import strategies as st

from ragmcp.framing import END_BYTES, LineDecoder, Overlong

NO_LIMIT = 2**40


def slices(data: bytes, cuts: list[int]) -> list[bytes]:
    """`data` cut at these places."""
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(places)]


def decoded(parts: list[bytes], limit: int = NO_LIMIT) -> list[bytes | Overlong]:
    decoder = LineDecoder(limit)
    lines = [line for part in parts for line in decoder.feed(part)]
    return [line if isinstance(line, Overlong) else bytes(line) for line in lines]


def test_a_line_ends_at_its_newline() -> None:
    assert decoded([b"one\ntwo\nthr"]) == [b"one", b"two"]


def test_a_line_may_come_in_pieces() -> None:
    assert decoded([b"o", b"", b"n", b"e", b"\nt", b"wo\n"]) == [b"one", b"two"]


def test_blank_lines_are_no_lines() -> None:
    assert decoded([b"\n\r\n  \t\none\r\n\n"]) == [b"one\r"]


def test_an_overlong_line_is_skipped_and_the_next_one_read() -> None:
    long = b"a" * 300 + b"b" * 300
    for parts in (
        [long + b"\nnext\n"],
        [long[:100], long[100:], b"\nnext\n"],
        [*slices(long, [*range(600)]), b"\nnext\n"],
    ):
        skipped, following = decoded(parts, limit=599)
        assert skipped == Overlong(600, long[:END_BYTES], long[-END_BYTES:])
        assert following == b"next"


def test_a_line_of_exactly_the_limit_passes() -> None:
    assert decoded([b"12345\n", b"123", b"45\n"], limit=5) == [b"12345", b"12345"]


def test_an_overlong_line_is_not_kept_in_memory() -> None:
    decoder = LineDecoder(1000)
    for _ in range(1000):
        assert decoder.feed(b"x" * 1000) == []
    assert len(decoder._partial) <= END_BYTES
    assert decoder.feed(b"\n") == [Overlong(1_000_000, b"x" * END_BYTES, b"x" * END_BYTES)]


@given(st.binary(), st.lists(st.integers(min_value=0)), st.integers(min_value=1, max_value=50))
def test_slicing_makes_no_difference(data: bytes, cuts: list[int], limit: int) -> None:
    assert decoded(slices(data, cuts), limit) == decoded([data], limit)


@given(
    st.lists(st.binary().filter(lambda line: b"\n" not in line and line.strip())),
    st.lists(st.integers(min_value=0)),
)
def test_what_was_sent_comes_out(lines: list[bytes], cuts: list[int]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    assert decoded(slices(data, cuts)) == lines


def test_time_grows_with_the_size_and_not_with_its_square() -> None:
    def seconds(chunks: int) -> float:
        decoder, chunk = LineDecoder(NO_LIMIT), b"x" * 1024
        began = time.process_time()
        for _ in range(chunks):
            decoder.feed(chunk)
        decoder.feed(b"\n")
        return time.process_time() - began

    seconds(1000)
    small, large = min(seconds(2000) for _ in range(3)), min(seconds(32_000) for _ in range(3))
    # 16 times the size: linear would be 16, quadratic 256.
    assert large < 100 * max(small, 1e-4)
