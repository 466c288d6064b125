"""`ragchat memory`: list, show, remove, check and restore what is stored."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ragchat.commands.invocation import Invocation
from ragchat.commands.removal import remove_each
from ragchat.commands.serve import replace_process
from ragchat.commands.stdin import confirm
from ragchat.console import Failure
from ragchat.errors import MemoryRefused, NotConfirmed
from ragchat.formatting import local
from ragchat.memory.history import can_restore, new_group, removed, what, writer
from ragchat.memory.matching import about_one, forget, listed, to_remove
from ragchat.servers.memory.process import environment, program
from ragchat.uris import short_uri
from ragcommon.contract.maintenance import Repaired
from ragcommon.text.rules import counted
from ragconfig.home import user_path
from ragconfig.settings import is_database


async def ls(run: Invocation) -> None:
    arguments = run.arguments
    async with run.memory() as memory:
        if arguments.uri is not None:
            page = await memory.documents(arguments.limit, {"uri": arguments.uri})
        else:
            page = await listed(memory, arguments.documents, arguments.limit)
    rows = [
        (short_uri(info.uri, info.title), info.chunks, local(info.updated_at), info.document_id, info.title)
        for info in page.documents
    ]
    is_whole = arguments.uri is None and not arguments.documents
    empty = "Memory is empty." if is_whole else "No document matches."
    more = [f"{len(rows):,} of {page.total:,} documents; -n N prints more."] if page.total > len(rows) else []
    run.console.listing(page, ("document", "chunks", "changed", "id", "title"), rows, empty, more)


async def show(run: Invocation) -> None:
    async with run.memory() as memory:
        document = await about_one(memory, run.arguments.document, memory.show)
    run.console.result(document, document.text.removesuffix("\n"))


async def rm(run: Invocation) -> int:
    """Remove documents. Before it removes what a glob matches, it asks, unless it is one document."""
    async with run.memory() as memory:
        names: list[str] = []
        for words in run.arguments.documents:
            names += _confirmed(run, words, await to_remove(memory, words))
        return await remove_each(
            run,
            names,
            partial(forget, memory, group=new_group()),
            kind="document",
            expected=(MemoryRefused,),
            sentence=removed,
            hint="`ragchat memory undo` restores what was removed." if can_restore(run.settings) else "",
        )


def _confirmed(run: Invocation, words: str, names: list[str]) -> list[str]:
    """The names, none if the user refuses. Raises NotConfirmed without a terminal."""
    if len(names) == 1 or run.arguments.yes:
        return names
    if not run.can_ask:
        raise NotConfirmed(len(names), words)
    return names if confirm(f"Remove {len(names):,} documents?") else []


async def log(run: Invocation) -> None:
    async with run.memory() as memory:
        entries = await memory.journal(run.arguments.limit)
    rows = [
        (
            entry.seq,
            local(entry.at),
            f"{what(entry)} (undone)" if entry.undone else what(entry),
            writer(entry.origin),
            entry.origin.session,
            entry.origin.group,
            short_uri(entry.uri),
        )
        for entry in entries
    ]
    header = ("no.", "at", "what", "by", "session", "group", "document")
    run.console.listing({"entries": entries}, header, rows, "Nothing has been stored yet.")


async def backup(run: Invocation) -> None:
    console = run.console
    file = str(user_path(run.arguments.file))
    async with run.memory() as memory:
        with run.progress("Copying") as on_progress:
            done = await memory.backup(file, on_progress, force=run.arguments.force)
    documents = counted(done.documents, "document")
    console.result(done, f"Copied the memory to {done.path} ({documents}, {done.bytes:,} bytes).")


def copy(run: Invocation) -> int:
    """Returns the exit code of `ragmemory copy`."""
    arguments = run.arguments
    words = [*program(run.settings), "copy"]
    words += ["--json"] if arguments.json else []
    places = [  # Absolute also where it is empty, which would mean the default memory.
        place if is_database(place) else str(user_path(place))
        for place in (arguments.source, arguments.destination)
    ]
    return replace_process([*words, "--", *places], environment(run.settings, databases=True))


async def reembed(run: Invocation) -> None:
    console = run.console
    async with run.memory() as memory:
        if run.arguments.discard:
            stats = await memory.discard_embeddings()
            left = f"Only the embeddings of {stats.embedder} are left." if stats.embedder else "Done."
            console.result(stats, left)
            return
        with run.progress("Embedding") as on_progress:
            done = await memory.reembed(on_progress)
    kept = done.chunks - done.computed
    others = f"; {kept:,} had embeddings of it already" if kept > 0 else ""
    advice = (
        f"The old embeddings of {done.kept_embedder} are kept ({done.kept_bytes:,} bytes). To go back, "
        "set that embedder and run this command again: it embeds only newer chunks. "
        "`ragchat memory reembed --discard` deletes them."
    )
    sentence = f"Embedded {counted(done.computed, 'chunk')} with {done.embedder}{others}."
    console.result(done, sentence, notes=[advice] if done.kept_embedder else [])


async def verify(run: Invocation) -> int:
    """Exit code 1 if something is damaged, or with --repair, if damage remains."""
    console, label = run.console, "Repairing" if run.arguments.repair else "Checking"
    async with run.memory() as memory:
        with run.progress(label) as on_progress:
            check = memory.repair if run.arguments.repair else memory.verify
            found = await check(on_progress)
    lines: list[str] = []
    if isinstance(found, Repaired):
        if found.backup and not console.json:
            console.note(f"The file as it was is in {found.backup}.")
        lines += _listed([f"Repaired: {problem}" for problem in found.repaired], found.more_repaired)
    lines += _listed(found.problems, found.more_problems)
    if found.ok:
        return console.result(found, *lines, "The memory is intact.")
    return console.result(found, *lines, failure=Failure("MEMORY_DAMAGED", found.problems[0]))


def _listed(problems: Sequence[str], more: int) -> list[str]:
    return [*problems, *([f"… and {more:,} more of this kind."] if more else [])]


async def stats(run: Invocation) -> None:
    async with run.memory() as memory:
        found = await memory.stats()
    embedder = f"{found.embedder} ({found.dimensions} dimensions)" if found.embedder else "not chosen yet"
    rows = [
        ("file", found.path),
        ("documents", f"{found.documents:,}"),
        ("chunks", f"{found.chunks:,}"),
        ("characters", f"{found.characters:,}"),
        ("bytes on disk", f"{found.bytes:,}"),
        ("embedder", embedder),
    ]
    if found.next_embedder:
        rows.append(("being embedded with", found.next_embedder))
    if found.kept_embedder:
        rows.append(("embeddings kept", f"{found.kept_embedder} ({found.kept_bytes:,} bytes)"))
    run.console.listing(found, ("memory", ""), rows)
