"""What a timed run reports of each test: one JSON line when it begins, when it fails and when it ends."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

import msgspec

State = Literal["running", "passed", "failed", "hung"]


class TestReport(msgspec.Struct):
    """`examples` counts the calls of the test, also those that make a failing example smaller."""

    __test__: ClassVar[bool] = False  # not a test class, whatever its name

    test: str
    state: State = "running"
    examples: int = 0
    seconds: float = 0.0
    error: str = ""


def read_reports(path: Path) -> list[TestReport]:
    """The last report of each test; none where the run has not written the file."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    reports = [msgspec.json.decode(line, type=TestReport) for line in lines]
    return list({report.test: report for report in reports}.values())
