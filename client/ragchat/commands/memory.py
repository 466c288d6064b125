"""`ragchat memory`: what memory holds, and what was done to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ragchat.commands import Run
from ragchat.commands.removal import take_out
from ragchat.console import Console, is_styled
from ragchat.errors import MemoryRefused
from ragchat.formatting import counted, local
from ragchat.memory.types import Entry
from ragchat.uris import short_uri

if TYPE_CHECKING:
    from ragmcp.client.client import OnProgress


async def ls(run: Run) -> int:
    arguments = run.arguments
    async with run.memory() as memory:
        page = await memory.documents(limit=arguments.limit, uri_glob=arguments.uri)
    if run.console.json:
        run.console.document(page)
    elif not page.documents:
        run.console.note("Memory is empty." if arguments.uri is None else "There is no such document.")
    else:
        rows = [
            (
                short_uri(info.uri, info.title),
                info.chunks,
                local(info.updated_at),
                info.document_id,
                info.title,
            )
            for info in page.documents
        ]
        run.console.table(("document", "chunks", "changed", "id", "title"), rows)
        if page.total > len(page.documents):
            run.console.note(f"{len(page.documents):,} of {page.total:,} documents; -n shows more.")
    return 0


async def show(run: Run) -> int:
    async with run.memory() as memory:
        document = await memory.show(run.arguments.document)
    if run.console.json:
        run.console.document(document)
    else:
        run.console.print(document.text.removesuffix("\n"))
    return 0


async def rm(run: Run) -> int:
    async with run.memory() as memory:
        return await take_out(
            run,
            run.arguments.documents,
            memory.forget,
            kind="document",
            missing=(MemoryRefused,),
            say=lambda gone: f"Removed {short_uri(gone.uri)} ({counted(gone.chunks, 'chunk')}).",
            hint="`ragchat memory undo` takes the last removal back.",
        )


async def log(run: Run) -> int:
    async with run.memory() as memory:
        entries = await memory.journal(run.arguments.limit)
    if run.console.json:
        run.console.document({"entries": entries})
    elif not entries:
        run.console.note("Nothing was ever written.")
    else:
        rows = [
            (entry.seq, local(entry.at), _action(entry), entry.origin.client, short_uri(entry.uri))
            for entry in entries
        ]
        run.console.table(("no.", "at", "what", "by", "document"), rows)
    return 0


def _action(entry: Entry) -> str:
    return f"{entry.action} (undone)" if entry.undone else entry.action


async def undo(run: Run) -> int:
    async with run.memory() as memory:
        entry = await memory.undo()
    if run.console.json:
        run.console.document({"entry": entry})
    else:
        run.console.print(f"{short_uri(entry.uri)} is as it was before it was {entry.action}.")
    return 0


async def reembed(run: Run) -> int:
    console = run.console
    async with run.memory() as memory:
        with _bar(console, "Embedding") as on_progress:
            done = await memory.reembed(on_progress)
    if console.json:
        console.document(done)
    else:
        console.print(f"{done.chunks:,} chunks are now embedded with {done.embedder}.")
    return 0


@contextmanager
def _bar(console: Console, what: str) -> Iterator[OnProgress | None]:
    """A bar on stderr, where there is a terminal to draw it on."""
    if console.json or not is_styled(console.stderr):
        yield None
        return
    from rich.progress import Progress

    from ragchat.ui.render.screen import Screen

    with Progress(console=Screen.open().err, transient=True) as bar:
        task = bar.add_task(what, total=None)

        def on_progress(done: float, total: float | None, _: str | None) -> None:
            bar.update(task, completed=done, total=total)

        yield on_progress


async def verify(run: Run) -> int:
    """Exit code 1 when something is damaged."""
    console = run.console
    async with run.memory() as memory:
        with _bar(console, "Checking") as on_progress:
            found = await memory.verify(on_progress)
    if console.json:
        console.document(found)
    elif found.ok:
        console.print("The memory is whole.")
    else:
        for problem in found.problems:
            console.print(problem)
    return 0 if found.ok else 1


async def stats(run: Run) -> int:
    async with run.memory() as memory:
        found = await memory.stats()
    if run.console.json:
        run.console.document(found)
    else:
        embedder = f"{found.embedder} ({found.dimensions} dimensions)" if found.embedder else "not chosen yet"
        rows = [
            ("file", found.path),
            ("documents", f"{found.documents:,}"),
            ("chunks", f"{found.chunks:,}"),
            ("characters", f"{found.characters:,}"),
            ("bytes on disk", f"{found.bytes:,}"),
            ("embedder", embedder),
        ]
        run.console.table(("memory", ""), rows)
    return 0
