"""Times as users and models write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ragcommon.text.times import moment


def test_a_time_is_absolute_or_ago() -> None:
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert moment("90s", now) == datetime(2026, 3, 1, 11, 58, 30, tzinfo=UTC)
    assert moment("10m", now) == datetime(2026, 3, 1, 11, 50, tzinfo=UTC)
    assert moment("2h", now) == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert moment("3d", now) == datetime(2026, 2, 26, 12, tzinfo=UTC)
    assert moment("2026-03-01T12:00:00+02:00", now) == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert moment("2026-03-01", now) == datetime(2026, 3, 1).astimezone(UTC)
    for wrong in ("yesterday", "10", "m", "-1h", "9" * 50 + "d"):
        with pytest.raises(ValueError, match=r"^is neither a time in ISO 8601 nor a time ago"):
            moment(wrong, now)
