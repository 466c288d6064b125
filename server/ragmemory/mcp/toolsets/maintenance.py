"""The toolset `maintenance`: statistics, verification, reembedding, backups, export and import."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from ragcommon.contract.maintenance import (
    Backup,
    EmbedderModels,
    ExportPage,
    Imported,
    PortableDocument,
    Prepared,
    Reembedded,
    Repaired,
    Stats,
    Verified,
)
from ragmcp.server.call import Call
from ragmcp.server.tools import Tool, tool
from ragmemory.limits import MAX_IMPORTED_DOCUMENTS, MAX_URI_LENGTH
from ragmemory.mcp.errors import Memory, origin_of
from ragmemory.mcp.toolsets.memory import Group
from ragmemory.mcp.toolsets.paging import NumberCursor, first_of

File = Annotated[
    str,
    Meta(
        description="A file on the server's machine, in a folder of memory.roots.",
        max_length=MAX_URI_LENGTH,
    ),
]
Force = Annotated[bool, Meta(description="Replace the file if it is a memory that no program has open.")]
Vectors = Annotated[
    bool,
    Meta(description="With the embeddings: import_documents into a memory of the same embedder uses them."),
]
Switch = Annotated[
    bool, Meta(description="False: only collect the new embeddings; the next call that may switches to them.")
]
_Uris = Annotated[list[str], Meta(max_length=MAX_IMPORTED_DOCUMENTS)]
Uris = Annotated[_Uris | None, Meta(description="Only the documents with these uris.")]
Documents = Annotated[
    list[PortableDocument],
    Meta(
        description="Documents as export_documents returns them; only `text` is needed.",
        max_length=MAX_IMPORTED_DOCUMENTS,
    ),
]


def maintenance_tools(memory: Memory) -> list[Tool]:
    """The toolset `maintenance`."""
    return [*_care_tools(memory), *_copying_tools(memory)]


def _care_tools(memory: Memory) -> list[Tool]:
    @tool(read_only=True)
    async def get_memory_stats(call: Call) -> Stats:
        """Return the size of memory, its path, and the embedder that filled it."""
        return await (await memory()).maintenance.stats()

    @tool(read_only=True)
    async def verify_memory(call: Call) -> Verified:
        """Check the memory's file for damage; report each problem and its remedy."""
        found = await (await memory()).maintenance.verify(call.progress)
        problems, more = first_of(found.problems)
        return replace(found, problems=problems, more_problems=more)

    @tool(destructive=True, idempotent=True, background=True)
    async def repair_memory(call: Call) -> Repaired:
        """Check the memory's file; repair full text, embeddings and index from the texts, after a backup.

        What cannot be repaired is named with its document, and left as it is.
        """
        await call.background()
        done = await (await memory()).maintenance.repair(call.progress)
        problems, more_problems = first_of(done.problems)
        repaired, more_repaired = first_of(done.repaired)
        return replace(
            done,
            problems=problems,
            repaired=repaired,
            more_problems=more_problems,
            more_repaired=more_repaired,
        )

    @tool(read_only=True)
    async def list_embedders(call: Call) -> EmbedderModels:
        """List the models that can embed on the machine of the memory: size, languages, licence."""
        return await (await memory()).maintenance.embedder_models()

    @tool(idempotent=True, background=True)
    async def prepare_embedder(call: Call) -> Prepared:
        """Embed a word with the configured embedder; its model is downloaded if need be."""
        await call.background()
        return await (await memory()).maintenance.prepare_embedder(call.progress)

    @tool(idempotent=True, background=True)
    async def reembed_memory(call: Call, switch: Switch = True) -> Reembedded:
        """Recompute all embeddings with the configured embedder, which may differ from the previous one.

        Memory is searched with the old embeddings until all new ones are there. A call that was cut short is
        continued by the next. The old ones are kept: going back to their embedder recomputes what is newer.
        """
        await call.background()
        return await (await memory()).maintenance.reembed(call.progress, switch=switch)

    @tool(destructive=True, idempotent=True)
    async def discard_embeddings(call: Call) -> Stats:
        """Delete the embeddings that a reembedding has kept, or those of one that was not completed."""
        return await (await memory()).maintenance.discard_embeddings()

    return [
        *(get_memory_stats, verify_memory, repair_memory),
        *(list_embedders, prepare_embedder, reembed_memory, discard_embeddings),
    ]


def _copying_tools(memory: Memory) -> list[Tool]:
    @tool(destructive=True, background=True)
    async def backup_memory(call: Call, path: File, force: Force = False) -> Backup:
        """Write a consistent copy of the whole memory to a file, also while others write to the memory."""
        await call.background()
        return await (await memory()).maintenance.backup(path, call.progress, force=force)

    @tool(read_only=True)
    async def export_documents(
        call: Call, cursor: NumberCursor = "", vectors: Vectors = False, uris: Uris = None
    ) -> ExportPage:
        """Return whole documents with metadata, times and earlier versions: about 1 MB, and a cursor."""
        service = await memory()
        return await service.maintenance.export(int(cursor or 0), vectors=vectors, uris=uris or ())

    @tool(idempotent=True, background=True)
    async def import_documents(call: Call, documents: Documents, group: Group = "") -> Imported:
        """Store exported documents with metadata and times; a document with the same uri is replaced.

        Earlier versions are stored of documents that memory has never had.
        """
        await call.background()
        return Imported(
            await (await memory()).maintenance.import_documents(documents, origin_of(call, group))
        )

    return [backup_memory, export_documents, import_documents]
