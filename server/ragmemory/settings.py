"""The memory's own tables of the settings. Light: read before the first answer."""

from __future__ import annotations

from msgspec import Struct


class MemorySettings(Struct, frozen=True):
    """The table [memory]."""

    path: str
    toolsets: list[str]
    roots: list[str]
    read_only: bool
    busy_seconds: float
    undo_depth: int


class LimitSettings(Struct, frozen=True):
    """The table [limits]."""

    message_bytes: int


class RankingSettings(Struct, frozen=True):
    """The table [ranking]."""

    candidates: int
    alpha: float
    alpha_contextual: float
    alpha_uncovered: float
    k1: float
    b: float
    title_weight: float
    surroundings_weight: float
    pair_weight: float
