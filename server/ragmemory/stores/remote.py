"""How far the remote index of this memory is, and the statistics of what it holds.

A memory has one remote index at a time; only the holder of its lease changes these tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ragmemory.stores.engine import Connection, StorePart
from ragmemory.types.changes import Checkpoint


class RemoteState(Struct, frozen=True):
    """What a remote index holds. `name` identifies what it is derived from, and how."""

    name: str
    checkpoint: Checkpoint = Checkpoint()
    chunks: int = 0
    length: float = 0.0  # the sum of the lengths of all chunks, in weighted terms
    vector_sum: bytes = b""  # (d,) float64, of all chunks; empty: zeros


class RemoteStore(StorePart):
    """The records of one memory about its remote index."""

    async def state(self, name: str, terms: Sequence[int] = ()) -> tuple[RemoteState | None, dict[int, int]]:
        """The state of the index `name`, if there is one, and how many of its chunks contain each term.

        Both are from one snapshot. Terms in no chunk are left out.
        """
        condition, parameters = self._engine.dialect.among("term", terms)
        rows = await self._engine.read(
            "SELECT chunk_id, removal, entry, entry_at, chunks, length, total, term, holding"
            f" FROM remote_index LEFT JOIN remote_terms ON {condition} WHERE name = ?",
            [*parameters, name],
        )
        if not rows:
            return None, {}
        *place, chunks, length, vector_sum = rows[0][:7]
        state = RemoteState(name, Checkpoint(*place), chunks, length, vector_sum)
        return state, {row[7]: row[8] for row in rows if row[7] is not None and row[8] > 0}


async def put(connection: Connection, state: RemoteState, terms: Mapping[int, int]) -> None:
    """Replace the state; `terms` are added to the numbers of chunks that contain them."""
    await connection.execute("DELETE FROM remote_index")
    await connection.execute(
        "INSERT INTO remote_index(name, chunk_id, removal, entry, entry_at, chunks, length, total)"
        " VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
        [
            state.name,
            *(state.checkpoint.chunk_id, state.checkpoint.removal),
            *(state.checkpoint.entry, state.checkpoint.entry_at),
            *(state.chunks, state.length, state.vector_sum),
        ],
    )
    # Through a table: PostgreSQL updates 4,000 rows a second one by one.
    await connection.insert_many("remote_changes", ("term", "holding"), terms.items())
    await connection.execute(
        "INSERT INTO remote_terms(term, holding) SELECT term, holding FROM remote_changes WHERE TRUE"
        " ON CONFLICT(term) DO UPDATE SET holding = remote_terms.holding + excluded.holding"
    )
    await connection.execute("DELETE FROM remote_changes")


async def clear(connection: Connection, name: str) -> None:
    """Begin a new, empty index."""
    await connection.execute("DELETE FROM remote_terms")
    await put(connection, RemoteState(name), {})
