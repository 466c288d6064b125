"""Lines and events out of bytes."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmcp.errors import MessageTooLarge
from ragmcp.protocol.framing import END_BYTES, EventDecoder, LineDecoder, Overlong, ServerEvent

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
    assert len(decoder.partial.kept) <= END_BYTES
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


# Events


def events(parts: list[bytes]) -> list[tuple[str, bytes]]:
    decoder = EventDecoder(NO_LIMIT)
    return [(event.type, bytes(event.data)) for part in parts for event in decoder.feed(part)]


def test_an_event_ends_at_its_blank_line() -> None:
    stream = b"event: endpoint\ndata: /messages\n\n: a comment\ndata:{}\n\ndata: unfinished\n"
    assert events([stream]) == [("endpoint", b"/messages"), ("message", b"{}")]


def test_an_event_of_several_lines_is_one_text() -> None:
    assert events([b"data: one\ndata\ndata:  two\nunknown: x\n\n"]) == [("message", b"one\n\n two")]


def test_lines_of_events_may_end_in_any_of_three_ways() -> None:
    for end in (b"\n", b"\r", b"\r\n"):
        assert events([b"data: 1" + end + b"data: 2" + end + end + b"data: 3" + end + end]) == [
            ("message", b"1\n2"),
            ("message", b"3"),
        ]


def test_a_line_end_may_be_cut_in_two() -> None:
    assert events([b"data: 1\r", b"\n", b"\r", b"\ndata: 2\r", b"\n", b"\n"]) == [
        ("message", b"1"),
        ("message", b"2"),
    ]
    assert events([b"data: 1\r", b"\ndata: 2\r", b"\n\r\n"]) == [("message", b"1\n2")]


def test_the_id_holds_until_there_is_another_and_the_pause_too() -> None:
    decoder = EventDecoder(NO_LIMIT)
    assert decoder.feed(b"\xef\xbb\xbfid: 1\nretry: 500\ndata: \n\n") == []
    assert (decoder.last_id, decoder.retry_ms) == ("1", 500)
    decoder.feed(b"data: x\n\nid: 2\nretry: soon\ndata: y\n")
    assert (decoder.last_id, decoder.retry_ms) == ("1", 500)
    decoder.feed(b"\nid: \0\n\n")
    assert (decoder.last_id, decoder.retry_ms) == ("2", 500)


@pytest.mark.parametrize("line", [b"x" * 3000, b"x" * 1500 + b"\ndata: " + b"x" * 1500])
@pytest.mark.parametrize("cuts", [[], [*range(3000)]], ids=["at once", "in pieces"])
def test_an_overlong_event_is_refused_and_the_stream_goes_on_after_it(line: bytes, cuts: list[int]) -> None:
    decoder = EventDecoder(2000)
    *parts, last = slices(b"id: 7\ndata: " + line + b"\n\n", cuts)
    assert [event for part in parts for event in decoder.feed(part)] == []
    with pytest.raises(MessageTooLarge) as refused:
        decoder.feed(last)
    assert (refused.value.limit, refused.value.size // 100, decoder.last_id) == (2000, 30, "7")
    assert decoder.feed(b"data: next\n\n") == [ServerEvent(bytearray(b"next"))]


def test_an_overlong_comment_is_no_event() -> None:
    decoder = EventDecoder(10)
    assert decoder.feed(b":" + b"x" * 5000 + b"\n\ndata: next\n\n") == [ServerEvent(bytearray(b"next"))]


@given(
    st.lists(
        st.sampled_from([b"data", b"data: a", b"id: 1", b"event: e", b"\r", b"\n", b"\r\n", b":", b"x"])
    ),
    st.lists(st.integers(min_value=0)),
)
def test_slicing_events_makes_no_difference(pieces: list[bytes], cuts: list[int]) -> None:
    data = b"".join(pieces)
    assert events(slices(data, cuts)) == events([data])


@given(st.lists(st.binary()))
def test_no_bytes_break_the_event_decoder(parts: list[bytes]) -> None:
    events(parts)


def test_events_take_time_with_their_size_and_not_with_its_square() -> None:
    def seconds(chunks: int) -> float:
        decoder, chunk = EventDecoder(NO_LIMIT), b"x" * 1024
        began = time.process_time()
        decoder.feed(b"data: ")
        for _ in range(chunks):
            decoder.feed(chunk)
        assert len(decoder.feed(b"\n\n")) == 1
        return time.process_time() - began

    seconds(1000)
    small, large = min(seconds(2000) for _ in range(3)), min(seconds(32_000) for _ in range(3))
    assert large < 100 * max(small, 1e-4)
