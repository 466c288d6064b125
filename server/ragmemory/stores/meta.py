"""The table `meta`: the memory's identity, and whose embeddings it holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from ragmemory.errors import EmbedderMismatch

if TYPE_CHECKING:
    from ragmemory.stores.engine import Connection

# The tables of embeddings: those in use; and the next or the previous ones, see `stores.reembedding`.
Table = Literal["embeddings", "other_embeddings"]
# Keys about embeddings that no index is derived from.
_NOT_OF_INDEX = ("next_", "kept_")


def fingerprint(values: Mapping[str, str]) -> str:
    """Identifies what an index is derived from: the memory, its embedder, and the last reembedding."""
    found = sorted(values.items())
    return " ".join(f"{key}={value}" for key, value in found if not key.startswith(_NOT_OF_INDEX))


async def require_embedder(connection: Connection, identity: str, dimensions: int) -> Table:
    """The table for the embeddings of an embedder, which the first ones record.

    Raises EmbedderMismatch if the memory was embedded with another one, and is not being reembedded with it.
    """
    stored = embedders(await values(connection))
    if not stored:
        await put(connection, {"embedder": identity, "dimensions": str(dimensions)})
        return "embeddings"
    current = next(iter(stored.items()))
    if current == (identity, dimensions):
        return "embeddings"
    if identity == current[0] or stored.get(identity) not in (0, dimensions):
        raise EmbedderMismatch(*current, identity, dimensions)
    await put(connection, {"next_dimensions": str(dimensions)})
    return "other_embeddings"


async def embedder(connection: Connection) -> tuple[str, int] | None:
    """Identity and dimensions of the embedder that filled this memory; None before the first embedding."""
    return next(iter(embedders(await values(connection)).items()), None)


def embedders(values: Mapping[str, str]) -> dict[str, int]:
    """Identities and dimensions: of the embedder that filled this memory, and of one that is to replace it.

    The dimensions of the second are 0 until they are known. Empty before the first embedding.
    """
    if "embedder" not in values:
        return {}
    current = {values["embedder"]: int(values["dimensions"])}  # the first one
    coming = values.get("next_embedder")
    if coming is not None and coming not in current:
        current[coming] = int(values["next_dimensions"])
    return current


async def values(connection: Connection) -> dict[str, str]:
    """The whole table."""
    return {row[0]: row[1] for row in await connection.execute_fetchall("SELECT key, value FROM meta")}


async def put(connection: Connection, new: Mapping[str, str | None]) -> None:
    """Set some values; None removes one. With the write lock held."""
    await connection.executemany("DELETE FROM meta WHERE key = ?", [(key,) for key in new])
    rows = [(key, value) for key, value in new.items() if value is not None]
    await connection.executemany("INSERT INTO meta(key, value) VALUES(?, ?)", rows)
