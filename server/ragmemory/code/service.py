"""Queries about the source code in memory: symbols, and what calls, uses and imports them.

There is no symbol table. The full-text index finds the files that contain a name, and these are parsed on
demand. So no second index must be kept up to date, and memories of earlier releases work as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragcommon.contract.code import TraceStep
from ragmemory.code.files import CodeFiles
from ragmemory.code.tracing import MAX_STEPS, Located, Tracer, location_of
from ragmemory.types.code import Direction, Symbol

if TYPE_CHECKING:
    from ragmemory.stores.store import Store


class CodeMemory:
    """The source code in one memory."""

    def __init__(self, store: Store) -> None:
        self._files = CodeFiles(store.code)
        self.languages = store.code.counts

    async def symbols(self, name: str) -> tuple[list[Symbol], list[str]]:
        """The definitions of a name, which may be qualified, and their source. Raises BadArgument."""
        tracer = Tracer(self._files, name)
        found = await tracer.definitions()
        return [_symbol(one) for one in found], tracer.notices()

    async def trace(
        self, name: str, direction: Direction, depth: int
    ) -> tuple[list[Symbol], list[TraceStep], list[str]]:
        """The definitions of a symbol, its relations in one direction or all, and why there may be more.

        `depth`: the number of calls to follow. Raises BadArgument.
        """
        tracer = Tracer(self._files, name)
        found = await tracer.definitions()
        steps: list[TraceStep] = []
        if direction in ("references", "all", "importers"):
            steps += await tracer.uses(direction)
        if direction in ("callers", "all"):
            steps += await tracer.callers(depth)
        if direction in ("callees", "all"):
            steps += await tracer.callees(found, depth)
        return [_symbol(one) for one in found], steps[:MAX_STEPS], tracer.notices()


def _symbol(found: Located) -> Symbol:
    code, definition = found.code, found.definition
    start, end = definition.start, definition.end
    return Symbol(
        name=code.qualified(definition.names),
        kind=definition.kind,
        language=code.language.name,
        location=location_of(found),
        uri=found.file.uri,
        start_line=code.line_at(start),
        end_line=code.line_at(max(start, end - 1)),
        text=code.data[start:end].decode(errors="replace"),
    )
