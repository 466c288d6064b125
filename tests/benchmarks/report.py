"""How the benchmarks print: one table a question, medians, and the ratio to a peer of the same run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table

console = Console(width=100)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    drawn = Table(*columns, title=title, title_justify="left", title_style="bold")
    for row in rows:
        drawn.add_row(*row)
    console.print(drawn)


def median(measure: Callable[[], float], times: int) -> float:
    return statistics.median(measure() for _ in range(times))
