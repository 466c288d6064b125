"""`ragchat memory export` and `import`: documents from one memory to another."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING

from anyio import to_thread
from msgspec import UnsetType

from ragchat.commands.invocation import Invocation
from ragchat.console import Failure
from ragchat.formatting import counted
from ragchat.memory.history import new_group
from ragchat.memory.transfer import FORMAT, VERSION, Header, batches, line_of, new_file
from ragchat.ui.render.progress import counting_bar
from ragconfig.home import user_path

if TYPE_CHECKING:
    from ragchat.memory.client import MemoryClient
    from ragmcp.client.features import OnProgress

# Refused lines beyond this number are only counted; --json lists them all.
MAX_LISTED = 20


async def export(run: Invocation) -> int:
    console, name = run.console, run.arguments.file
    to_stdout = name == "-"
    path = user_path(name)
    with ExitStack() as stack:
        file = sys.stdout.buffer if to_stdout else stack.enter_context(new_file(path))
        shown = not (console.json or to_stdout)
        async with run.memory() as memory:
            with counting_bar(console.stderr, "Exporting", shown=shown) as on_progress:
                documents = await _write(memory, file, on_progress, vectors=run.arguments.vectors)
    if not to_stdout:
        sentence = f"Exported {counted(documents, 'document')} to {path}."
        console.result({"path": str(path), "documents": documents}, sentence)
    return 0


async def _write(
    memory: MemoryClient, file: IO[bytes], on_progress: OnProgress | None, *, vectors: bool
) -> int:
    """Write the lines of an export; return the number of documents."""
    cursor: str | UnsetType = ""
    documents = 0
    while True:
        page = await memory.export(cursor or "", vectors=vectors)
        if not cursor:
            file.write(line_of(Header(FORMAT, VERSION, page.embedder, page.dimensions)))
        file.writelines(map(line_of, page.documents))
        documents, cursor = documents + len(page.documents), page.next_cursor
        if on_progress:
            on_progress(documents, max(documents, page.total), None)
        if not cursor:
            file.flush()
            return documents


async def import_(run: Invocation) -> int:
    """Exit code 1 if a line was refused; the others are stored."""
    console, name = run.console, run.arguments.file
    with ExitStack() as stack:
        file: IO[bytes] = sys.stdin.buffer
        size = None
        if name != "-":
            path = user_path(name)
            file = stack.enter_context(path.open("rb"))
            size = path.stat().st_size
        async with run.memory() as memory:
            with counting_bar(console.stderr, "Importing", shown=not console.json) as on_progress:
                statuses, errors, embedder = await _read(memory, name, file, size, on_progress)
            used = (await memory.stats()).embedder if embedder else ""
    if used != embedder:
        console.note(f"The vectors of the file are of {embedder}: its texts were embedded again with {used}.")
    _show(run, statuses, errors)
    return 1 if errors else 0


async def _read(
    memory: MemoryClient, name: str, file: IO[bytes], size: int | None, on_progress: OnProgress | None
) -> tuple[Counter[str], dict[int, str], str]:
    """Import the lines of an export.

    Returns how often each status occurred, the errors by line, and the embedder of the vectors.
    """
    statuses: Counter[str] = Counter()
    errors: dict[int, str] = {}
    embedder = ""
    group = new_group()
    rest = batches("stdin" if name == "-" else name, file)
    while batch := await to_thread.run_sync(next, rest, None, abandon_on_cancel=True):
        errors |= batch.errors
        embedder = batch.embedder
        outcomes = await memory.import_documents(list(batch.documents.values()), group)
        for number, outcome in zip(batch.documents, outcomes, strict=True):
            statuses[outcome.status] += 1
            if outcome.status == "failed":
                errors[number] = outcome.error
        if on_progress:
            on_progress(batch.bytes, size, None)
    return statuses, dict(sorted(errors.items())), embedder


def _show(run: Invocation, statuses: Counter[str], errors: dict[int, str]) -> None:
    console = run.console
    counts = {status: statuses[status] for status in ("added", "updated", "unchanged")}
    refused = [f"Line {number} was refused: {error}" for number, error in errors.items()]
    if console.json:
        failed = [{"line": number, "error": error} for number, error in errors.items()]
        failure = Failure("IMPORT_FAILED", refused[0]) if refused else None
        console.document({**counts, "failed": failed}, failure)
        return
    for sentence in refused[:MAX_LISTED]:
        console.note(sentence)
    if len(refused) > MAX_LISTED:
        console.note(f"{counted(len(refused) - MAX_LISTED, 'more line')} refused; --json lists them all.")
    parts = ", ".join(f"{count:,} {status}" for status, count in counts.items())
    console.print(f"Imported {counted(sum(counts.values()), 'document')}: {parts}.")
