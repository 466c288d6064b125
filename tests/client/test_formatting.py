"""Numbers and times as a person reads them."""

from __future__ import annotations

from ragchat.formatting import local, seconds
from ragcommon.text.rules import counted


def test_numbers_and_times_read_well() -> None:
    assert counted(1, "chunk") == "1 chunk"
    assert counted(1204, "chunk") == "1,204 chunks"
    assert seconds(0.0124) == "12 ms"
    assert seconds(2.06) == "2.1 s"
    for no_time in ("yesterday", "0001-01-01T00:00:00+14:00"):
        assert local(no_time) == no_time
    assert local("2026-01-01T12:00:00Z").startswith("202")
