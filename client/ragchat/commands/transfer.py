"""`ragchat memory export` and `import`: documents from one memory to another."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from io import BufferedReader, FileIO
from typing import IO, TYPE_CHECKING

import anyio

from ragchat.commands.invocation import Invocation
from ragchat.console import Failure
from ragchat.errors import MemoryRefused
from ragchat.memory.history import new_group
from ragchat.memory.transfer import FORMAT, VERSION, Header, as_lines, batches, existing_file, new_file
from ragcommon.concurrency import in_daemon_thread
from ragcommon.text.rules import counted
from ragconfig.home import user_path

if TYPE_CHECKING:
    from ragchat.memory.client import MemoryClient
    from ragmcp.client.features import OnProgress

# Documents that are named in one call.
PART = 1_000
# Refused lines beyond this number are only counted; --json lists them all.
MAX_LISTED = 20


async def export(run: Invocation) -> None:
    console, name = run.console, run.arguments.file
    to_stdout = name == "-"
    path = user_path(name)
    with nullcontext(sys.stdout.buffer) if to_stdout else new_file(path) as file:
        async with run.memory() as memory:
            with run.progress("Exporting", shown=not to_stdout) as on_progress:
                documents = await write(memory, file, on_progress, vectors=run.arguments.vectors)
    if not to_stdout:
        sentence = f"Exported {counted(documents, 'document')} to {path}."
        console.result({"path": str(path), "documents": documents}, sentence)


async def write(
    memory: MemoryClient,
    file: IO[bytes],
    on_progress: OnProgress | None,
    uris: Sequence[str] | None = None,
    *,
    vectors: bool = False,
) -> int:
    """Write the lines of an export, with `uris` of these documents only; return the number of documents."""
    documents = 0
    header: Header | None = None
    parts = [()] if uris is None else [uris[at : at + PART] for at in range(0, len(uris), PART)]
    for part in parts:
        async for page in memory.export(vectors=vectors, uris=part):
            if header is None:
                header = Header(FORMAT, VERSION, page.embedder, page.dimensions)
                file.write(as_lines([header]))
            file.write(as_lines(page.documents))
            documents += len(page.documents)
            if on_progress:
                on_progress(documents, max(documents, page.total if uris is None else len(uris)), None)
    if header is None:  # of no documents
        file.write(as_lines([Header(FORMAT, VERSION)]))
    file.flush()
    return documents


async def import_(run: Invocation) -> int:
    """Exit code 1 if a line was refused; the others are stored."""
    console, name = run.console, run.arguments.file
    with ExitStack() as stack:
        if name == "-":
            # A thread reads it: neither a close nor the exit may need the lock of the file, so it is not
            # `sys.stdin`.
            file: IO[bytes] = BufferedReader(FileIO(sys.stdin.fileno(), closefd=False))
            size = None
        else:
            path = user_path(name)
            file = stack.enter_context(existing_file(path))
            size = path.stat().st_size
        async with run.memory() as memory:
            statuses, errors, embedder = await read(run, memory, name, file, size)
            is_stored = statuses["added"] or statuses["updated"]
            used = (await memory.stats()).embedder if embedder and is_stored else embedder
    if used != embedder:
        console.note(f"The vectors of the file are of {embedder}: its texts were embedded again with {used}.")
    show(run, statuses, errors)
    return 1 if errors else 0


async def read(
    run: Invocation, memory: MemoryClient, name: str, file: IO[bytes], size: int | None, before: int = 0
) -> tuple[Counter[str], dict[int, str], str]:
    """Import the lines of an export, which `before` other lines precede; say how far it came if stopped.

    Returns how often each status occurred, the errors by line, and the embedder of the vectors.
    """
    statuses: Counter[str] = Counter()
    errors: dict[int, str] = {}
    embedder = ""
    group = new_group()
    rest = batches("stdin" if name == "-" else name, file, before)
    begun = 0
    try:
        with run.progress("Importing") as on_progress:
            while batch := await in_daemon_thread(lambda: next(rest, None)):
                errors |= batch.errors
                embedder = batch.embedder
                begun += len(batch.documents)
                outcomes = await memory.import_documents(list(batch.documents.values()), group)
                for number, outcome in zip(batch.documents, outcomes, strict=True):
                    statuses[outcome.status] += 1
                    if outcome.status == "failed":
                        errors[number] = outcome.error
                if on_progress:
                    on_progress(batch.bytes, size, None)
    except (anyio.get_cancelled_exc_class(), MemoryRefused):
        done = statuses.total()
        run.console.note(
            f"Interrupted: {counted(done - statuses['failed'], 'document')} imported, {begun - done:,} more "
            "may be stored. Run the same command again to continue."
        )
        raise
    return statuses, dict(sorted(errors.items())), embedder


def show(run: Invocation, statuses: Counter[str], errors: dict[int, str], **more: object) -> None:
    """Print what was imported; with --json `more` as well."""
    console = run.console
    counts = {status: statuses[status] for status in ("added", "updated", "unchanged")}
    refused = [f"Line {number} was refused: {error}" for number, error in errors.items()]
    if console.json:
        failed = [{"line": number, "error": error} for number, error in errors.items()]
        failure = Failure("IMPORT_FAILED", refused[0]) if refused else None
        console.document({**more, **counts, "failed": failed}, failure)
        return
    for sentence in refused[:MAX_LISTED]:
        console.note(sentence)
    if len(refused) > MAX_LISTED:
        console.note(f"{counted(len(refused) - MAX_LISTED, 'more line')} refused; --json lists them all.")
    parts = ", ".join(f"{count:,} {status}" for status, count in counts.items())
    console.print(f"Imported {counted(sum(counts.values()), 'document')}: {parts}.")
