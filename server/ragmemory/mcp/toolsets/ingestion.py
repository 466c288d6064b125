"""The toolset `ingestion`: background jobs that load files and folders, and the sources of memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import anyio
from msgspec import Meta

from ragcommon.contract.files import (
    AddedSources,
    Ingestion,
    IngestionList,
    IngestionStatus,
    RemovedSource,
    SourcePage,
)
from ragmcp.errors import InvalidArguments
from ragmcp.server.call import Call
from ragmcp.server.tools import Tool, tool
from ragmemory.limits import MAX_OFFSET, MAX_PATHS, MAX_URI_LENGTH
from ragmemory.mcp.errors import Memory, origin_of
from ragmemory.mcp.toolsets.memory import Group
from ragmemory.mcp.toolsets.paging import DEFAULT_TOKENS, Cursor, MaxTokens, page_of

if TYPE_CHECKING:
    from ragmemory.files.ingestions import Ingestions

Path = Annotated[str, Meta(description="A file or folder on this machine.", max_length=MAX_URI_LENGTH)]
Uri = Annotated[str, Meta(description="The same as a file:// URI.", max_length=MAX_URI_LENGTH)]
_Paths = Annotated[list[str], Meta(max_length=MAX_PATHS)]
Paths = Annotated[_Paths | None, Meta(description="Several files and folders, as paths or URIs.")]
RequiredPaths = Annotated[
    list[str], Meta(description="Files and folders, as paths or URIs.", max_length=MAX_PATHS)
]
Within = Annotated[
    _Paths | None, Meta(description="Only these files and folders, as paths or URIs, of the folders.")
]
SourceName = Annotated[str, Meta(description="A source, as path or URI.", max_length=MAX_URI_LENGTH)]
Machine = Annotated[str, Meta(description="The machine of the source, if another one.", max_length=100)]
Forget = Annotated[
    bool, Meta(description="Remove its documents from memory, too. undo_writes brings them back.")
]
Prune = Annotated[
    bool,
    Meta(
        description="Remove the documents of these folders whose files no longer exist, hold no text any "
        "more, or are now excluded by .gitignore."
    ),
]
JobId = Annotated[str, Meta(description="The job_id that start_ingestion returned.", max_length=100)]
After = Annotated[int, Meta(description="How many outcomes of files to skip.", ge=0, le=MAX_OFFSET)]
Wait = Annotated[float, Meta(description="Wait so many seconds for the end of the job.", ge=0, le=60)]
Newest = Annotated[int, Meta(description="How many at most, on all pages.", ge=1, le=1000)]

# The longest time, in seconds, between two progress notifications.
STEP_SECONDS = 0.5
# How long a cancelled task waits for the end of its job.
CANCEL_SECONDS = 5.0


async def _followed(
    call: Call, ingestions: Ingestions, job_id: str, after: int = 0, seconds: float = math.inf
) -> IngestionStatus:
    """The job when it has ended, or after some seconds. Reports its progress meanwhile."""
    until = anyio.current_time() + seconds
    reported = -1
    while True:
        left = until - anyio.current_time()
        wait_seconds = max(min(left, STEP_SECONDS), 0)
        job, outcomes = await ingestions.status(job_id, after, wait_seconds=wait_seconds)
        if job.status != "running" or left <= STEP_SECONDS:
            return IngestionStatus(job, outcomes)
        if job.done > reported:  # the protocol forbids the same number twice
            reported = job.done
            await call.progress(job.done, job.files, f"{job.done:,} of {job.files:,} files")


async def _as_task(call: Call, ingestions: Ingestions, job: Ingestion) -> Ingestion:
    """The job now; for a client with tasks, when it has ended. Cancelling the task cancels the job."""
    if call.go_to_background is None:
        return job
    try:
        await call.background()
        return (await _followed(call, ingestions, job.job_id)).job
    except anyio.get_cancelled_exc_class():
        if call.is_cancelled:  # If the server is ending, the next one resumes the job.
            with anyio.move_on_after(CANCEL_SECONDS, shield=True):
                await ingestions.cancel(job.job_id)
        raise


def ingestion_tools(memory: Memory) -> list[Tool]:
    """The toolset `ingestion`."""
    return [*_job_tools(memory), *_source_tools(memory)]


def _job_tools(memory: Memory) -> list[Tool]:
    @tool(destructive=True, idempotent=True, background=True)
    async def start_ingestion(
        call: Call,
        path: Path = "",
        uri: Uri = "",
        paths: Paths = None,
        prune: Prune = False,
        group: Group = "",
    ) -> Ingestion:
        """Load a file, or all files of a folder, into memory in the background.

        Returns at once with a job_id for get_ingestion_status. The same paths again are the same job while it
        runs; files that have not changed since are not read again.
        """
        named = [*filter(None, (path, uri)), *(paths or [])]
        if not named:
            raise InvalidArguments("$", "names no file: give path, uri or paths")
        ingestions = (await memory()).ingestions
        job = await ingestions.start(named, prune=prune, origin=origin_of(call, group))
        return await _as_task(call, ingestions, job)

    @tool(read_only=True)
    async def get_ingestion_status(
        call: Call, job_id: JobId, after: After = 0, wait_seconds: Wait = 0.0
    ) -> IngestionStatus:
        """Return how far an ingestion is: files found and done, failures with their reasons, time left."""
        return await _followed(call, (await memory()).ingestions, job_id, after, wait_seconds)

    @tool(idempotent=True)
    async def cancel_ingestion(call: Call, job_id: JobId) -> Ingestion:
        """End an ingestion. What it has stored stays stored."""
        return await (await memory()).ingestions.cancel(job_id)

    @tool(read_only=True)
    async def list_ingestions(
        call: Call, limit: Newest = 20, max_tokens: MaxTokens = DEFAULT_TOKENS, cursor: Cursor = ""
    ) -> IngestionList:
        """List the last ingestions, the newest first.

        A running one with more than 60 `silent_seconds` was probably killed, or its computer sleeps.
        """
        found = await (await memory()).ingestions.newest(limit)
        return IngestionList(*page_of(found, cursor, max_tokens))

    return [start_ingestion, get_ingestion_status, cancel_ingestion, list_ingestions]


def _source_tools(memory: Memory) -> list[Tool]:
    @tool(idempotent=True)
    async def add_sources(call: Call, paths: RequiredPaths) -> AddedSources:
        """Register files and folders that memory is kept in step with. sync_sources loads them."""
        return AddedSources(await (await memory()).sources.add(paths))

    @tool(read_only=True)
    async def list_sources(
        call: Call, max_tokens: MaxTokens = DEFAULT_TOKENS, cursor: Cursor = ""
    ) -> SourcePage:
        """List the registered files and folders, with their last sync."""
        found = await (await memory()).sources.listed()
        return SourcePage(*page_of(found, cursor, max_tokens))

    @tool(destructive=True)
    async def remove_source(
        call: Call, source: SourceName, forget: Forget = False, group: Group = "", machine: Machine = ""
    ) -> RemovedSource:
        """Take a file or folder off the list of sources. Its documents stay in memory by default."""
        sources = (await memory()).sources
        return await sources.remove(source, origin_of(call, group), forget=forget, machine=machine)

    @tool(destructive=True, idempotent=True, background=True)
    async def sync_sources(
        call: Call, paths: Paths = None, within: Within = None, group: Group = ""
    ) -> Ingestion:
        """Bring memory in step with all sources, or with the given paths, in the background.

        Loads new and changed files, and removes the documents whose files are gone, hold no text any more or
        are now excluded by .gitignore, unless the whole folder is missing or empty. A file that cannot be
        read now keeps its document. Returns at once with a job_id for get_ingestion_status.
        """
        service = await memory()
        job = await service.sources.sync(paths or [], origin_of(call, group), within or [])
        return await _as_task(call, service.ingestions, job)

    return [add_sources, list_sources, remove_source, sync_sources]
