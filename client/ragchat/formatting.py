"""Numbers, times and names as a person reads them. Pure but for the clock and the time zone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

# The words that a sentence lists at most.
MAX_LISTED = 10


def seconds(value: float) -> str:
    """`12 ms`, `2.1 s`."""
    return f"{value * 1000:.0f} ms" if value < 0.9995 else f"{value:.1f} s"


def utc_now() -> str:
    """The time as it is stored: ISO 8601, UTC, to the millisecond. It sorts as text."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def local(moment: str) -> str:
    """A stored time (ISO 8601) as `2026-11-21 09:40` where the user is; other text is returned unchanged."""
    try:
        return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError):
        return moment


def listed(words: Sequence[str]) -> str:
    """`7 hours, Newton`; of very many the first: `7 hours, …, Newton and 1,990 more`."""
    more = f" and {len(words) - MAX_LISTED:,} more" if len(words) > MAX_LISTED else ""
    return ", ".join(words[:MAX_LISTED]) + more
