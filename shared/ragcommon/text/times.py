"""Times as users and models write them. Both programs read them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_AGO = re.compile(r"([0-9]+)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def moment(text: str, now: datetime) -> datetime:
    """The time of an ISO 8601 text (without a zone: local time) or of a time ago.

    Raises ValueError, whose message is the end of a sentence.
    """
    try:
        if ago := _AGO.fullmatch(text):
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        reason = "is neither a time in ISO 8601 nor a time ago such as 10m, 2h or 3d"
        raise ValueError(reason) from None
