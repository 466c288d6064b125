"""Stored times (ISO 8601, UTC) as a person reads them. Pure but for the machine's time zone."""

from __future__ import annotations

from datetime import datetime


def local(moment: str) -> str:
    """`2026-11-21 09:40` where the user is; what is no time stays as it is."""
    try:
        return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return moment
