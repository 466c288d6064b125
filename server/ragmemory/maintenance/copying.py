"""`ragmemory copy`: a memory with everything in it, to another file or database."""

from __future__ import annotations

import json
import sys
from contextlib import AsyncExitStack
from typing import Any

import anyio

from ragcommon.text.rules import counted
from ragmemory.errors import CopyFailed
from ragmemory.stores.copying import Copying
from ragmemory.stores.engine import EXISTS, Engine


def run(source: Engine, target: Engine, *, as_json: bool) -> None:
    """Copy one memory to a place where there is none, and print what was copied. Raises RagMemoryErrors."""
    copied = anyio.run(_copy, source, target)
    if as_json:
        sys.stdout.write(json.dumps(copied) + "\n")
        return
    documents, chunks = counted(copied["documents"], "document"), counted(copied["chunks"], "chunk")
    sentence = f"Copied {documents} ({chunks}) to {copied['target']}."
    if replaced := copied["replaced"]:
        sentence += (
            f" The text of {replaced:,} had U+0000, which no database stores: it is U+FFFD in the copy."
        )
    sys.stdout.write(sentence + "\n")


async def _copy(source: Engine, target: Engine) -> dict[str, Any]:
    if not await source.exists():
        raise CopyFailed(target.place, f"there is no memory {source.place}", "Check the name of the memory.")
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(target.filling())
        if await target.exists():
            raise CopyFailed(target.place, EXISTS)
        copy = target.unfinished()
        for engine in (source, copy):
            stack.push_async_callback(engine.close)
        copying = Copying(source, copy, _show if sys.stderr.isatty() else _nothing)
        await copying.run()
        [(documents, chunks)] = await copy.read(
            "SELECT count(*), CAST(coalesce(sum(chunks), 0) AS BIGINT) FROM documents WHERE hidden = 0"
        )
        await target.take(copy)
    counts = {"documents": documents, "chunks": chunks, "replaced": copying.replaced}
    return {"source": source.place, "target": target.place, **counts}


async def _show(done: float, total: float | None, table: str | None) -> None:
    sys.stderr.write(f"\r\x1b[KCopying {table}: {done / (total or 1):.0%}\r")
    sys.stderr.flush()


async def _nothing(*_: object) -> None:
    pass
