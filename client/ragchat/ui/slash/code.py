"""/trace: where a symbol of source code is defined, and what uses it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragchat.errors import ArgumentMissing
from ragchat.sanitize import sanitize
from ragchat.uris import short_path

if TYPE_CHECKING:
    from rich.table import Table

    from ragchat.ui.context import ChatContext
    from ragcommon.contract.code import TraceStep

# Maximum lines of each part.
_SHOWN = 20
# Maximum definitions that are named; more are only counted.
_TARGETS = 2
# The relations that are shown, in this order, with their titles.
_PARTS = {"caller": "Called by", "reference": "Used in", "importer": "Imported by", "callee": "Calls"}


async def trace(context: ChatContext, name: str) -> None:
    """Show the definitions of a symbol, what calls, uses and imports it, and what it calls."""
    if not name:
        raise ArgumentMissing("trace", "the name of a function, class or constant")
    found = await context.memory.trace(name)
    context.screen.show(*(f"{one.name}  {one.kind}  {_short(one.location)}" for one in found.definitions))
    for relation, title in _PARTS.items():
        if steps := [step for step in found.steps if step.relation == relation]:
            context.screen.show("", title, _table(steps[:_SHOWN]))
        if len(steps) > _SHOWN:
            context.screen.show(f"  … and {len(steps) - _SHOWN:,} more")
    for notice in found.notices:
        context.screen.note(notice)
    if found.next_cursor:
        context.screen.note("There are more than are counted here; a qualified name narrows it down.")
    if not found.definitions and not found.steps:
        context.screen.note(
            f"Memory holds no source code with a symbol {name}. /inject loads files and folders."
        )
    elif not found.definitions:
        context.screen.note(f"Memory does not hold the definition of {name}.")


def _table(steps: Sequence[TraceStep]) -> Table:
    """One row for each step: the symbol, its place, its line, and for callees where they are defined."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    table.add_column()
    if any(step.targets for step in steps):
        table.add_column(overflow="fold")
    for step in steps:
        row = [f"  {_what(step)}", _short(step.location), step.text, _definitions(step)]
        what, place, text, *targets = (Text(sanitize(cell)) for cell in row[: len(table.columns)])
        # Usually the widest column, so it shrinks first. It is cut off; names and places are folded.
        text.no_wrap, text.overflow = True, "ellipsis"
        table.add_row(what, place, text, *targets)
    return table


def _what(step: TraceStep) -> str:
    return step.of if step.relation == "callee" else step.symbol or "(top level)"


def _definitions(step: TraceStep) -> str:
    """Where a callee is defined, if memory holds that; "defined in 5 places" for a name that many have."""
    if len(step.targets) > _TARGETS:
        return f"defined in {len(step.targets):,} places"
    return f"defined in {', '.join(map(_short, step.targets))}" if step.targets else ""


def _short(location: str) -> str:
    """A location as path:line, relative to the working folder or the home folder if it is below them."""
    path, _, line = location.rpartition(":")
    return f"{short_path(Path(path)) if Path(path).is_absolute() else path}:{line}"
