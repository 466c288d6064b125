"""What a caller of a named memory may do."""

from __future__ import annotations

from typing import Literal, get_args

# Each right includes those before it.
Right = Literal["read", "write", "admin"]
RIGHTS: tuple[Right, ...] = get_args(Right)
