"""Sets the clock of a Python process wrong by CLOCK_SHIFT seconds: its folder is put on PYTHONPATH."""

from __future__ import annotations

import datetime
import os
import sys
import time
from types import ModuleType

import msgspec.toml  # noqa: F401  # It accepts no other class than the real one.

_SHIFT = float(os.environ["CLOCK_SHIFT"])
_time = time.time


class _Shifted(datetime.datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:  # type: ignore[override]
        return datetime.datetime.now(tz) + datetime.timedelta(seconds=_SHIFT)


_module = ModuleType("datetime")
vars(_module).update(vars(datetime), datetime=_Shifted)
sys.modules["datetime"] = _module
time.time = lambda: _time() + _SHIFT
