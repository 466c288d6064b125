"""Reading what is piped to a command."""

from __future__ import annotations

import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from ragchat.commands.stdin import read_stdin
from ragchat.errors import StdinUnusable


def test_stdin_without_an_end_is_refused_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragcommon.files.decoding.MAX_FILE_BYTES", 1000)
    with Path("/dev/zero" if sys.platform != "win32" else __file__).open("rb") as endless:
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(endless))
        with pytest.raises(StdinUnusable) as caught:
            read_stdin()
    assert str(caught.value) == "The input from stdin is larger than 1,000 bytes."


@pytest.mark.parametrize(
    ("given", "text", "notes"),
    [
        ("Café\n".encode(), "Café\n", []),
        (
            "Das Café öffnet um sieben, größer als früher.\n".encode("cp1252"),
            "Das Café öffnet um sieben, größer als früher.\n",
            ["The input from stdin is not UTF-8; it was read as cp1252."],
        ),
    ],
)
def test_another_encoding_is_named(
    monkeypatch: pytest.MonkeyPatch, given: bytes, text: str, notes: list[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(given)))
    said: list[str] = []
    assert read_stdin(said.append) == text
    assert said == notes
