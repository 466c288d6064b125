"""What text is in some bytes."""

from __future__ import annotations

import pytest

from ragconfig.files.decoding import EmptyText, NotText, decode


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("Zürich".encode(), ("Zürich", "utf-8")),
        (b"\xef\xbb\xbfmark", ("mark", "utf-8")),
        ("Zürich".encode("utf-16"), ("Zürich", "utf-16-le")),
        (b"\xfe\xff" + "Zürich".encode("utf-16-be"), ("Zürich", "utf-16-be")),
        ("Zürich".encode("utf-32"), ("Zürich", "utf-32-le")),
        ("“Zürich”".encode("cp1252"), ("“Zürich”", "cp1252")),
        (b"caf\xe9 \x81", ("café \x81", "latin-1")),
        (b"a\r\nb\rc\n", ("a\nb\nc\n", "utf-8")),
    ],
)
def test_text_is_read_in_the_encoding_it_has(data: bytes, expected: tuple[str, str]) -> None:
    assert decode(data) == expected


@pytest.mark.parametrize(
    "data", [b"\x00\x01\x02", b"ELF\x00rest", bytes(range(1, 32)) * 9, b"x" * 100 + b"\0"]
)
def test_what_is_not_text_is_refused(data: bytes) -> None:
    with pytest.raises(NotText, match="is not text"):
        decode(data)


@pytest.mark.parametrize("data", [b"", b" \n\t\n", b"\xef\xbb\xbf\n"])
def test_what_holds_only_white_space_is_empty(data: bytes) -> None:
    with pytest.raises(EmptyText, match="is empty"):
        decode(data)
