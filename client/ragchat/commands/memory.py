"""`ragchat memory`: what is stored, its versions and undo, copies, and the state of the memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ragchat.arguments.memory import LAST
from ragchat.commands.invocation import Invocation
from ragchat.commands.removal import remove_each
from ragchat.commands.serve import replace_process
from ragchat.commands.stdin import confirm
from ragchat.console import Failure, is_styled
from ragchat.errors import MemoryRefused, NotConfirmed
from ragchat.formatting import local
from ragchat.memory.history import (
    can_restore,
    new_group,
    next_sync,
    removed,
    restored,
    sentences,
    size,
    what,
    writer,
)
from ragchat.memory.matching import about_one, about_past, forget, listed, to_remove
from ragchat.sanitize import sanitize
from ragchat.servers.memory.process import environment, program
from ragchat.uris import short_uri
from ragcommon.contract.maintenance import Repaired
from ragcommon.text.rules import counted
from ragconfig.home import user_path
from ragconfig.settings import is_database

# By the beginnings of lines, the longer ones first.
DIFF_STYLES = {"---": "bold", "+++": "bold", "@@": "cyan", "-": "red", "+": "green"}


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


async def versions(run: Invocation) -> None:
    async with run.memory() as memory:
        found = await about_past(
            memory, run.arguments.document, lambda document: memory.versions(document, run.arguments.limit)
        )
    rows = [
        (
            one.number,
            local(one.at),
            f"{one.action} (current)" if one.current else one.action,
            one.origin.client,
            size(one),
        )
        for one in found.versions
    ]
    run.console.listing(found, ("version", "at", "what", "by", "characters"), rows)


async def diff(run: Invocation) -> None:
    arguments = run.arguments
    async with run.memory() as memory:
        found = await about_past(
            memory,
            arguments.document,
            lambda document: memory.difference(document, arguments.before, arguments.after),
        )
    if run.console.json:
        run.console.document(found)
    elif found.diff:
        _print_diff(run, found.diff)
    else:
        run.console.note("The two versions are equal.")


def _print_diff(run: Invocation, diff: str) -> None:
    """Print a unified diff, on a terminal in colours."""
    if not is_styled(run.console.stdout):
        run.console.print(diff)
        return
    from rich.text import Text

    from ragchat.ui.render.screen import make_console

    console = make_console(run.console.stdout)
    for line in sanitize(diff).split("\n"):
        style = next((style for start, style in DIFF_STYLES.items() if line.startswith(start)), "")
        console.print(Text(line, style), soft_wrap=True)


async def restore(run: Invocation) -> None:
    async with run.memory() as memory:
        done = await about_past(
            memory, run.arguments.document, lambda document: memory.restore(document, run.arguments.version)
        )
        advice = await next_sync(memory, done) if done.next_sync and not run.console.json else ""
    notes = ["`ragchat memory undo` takes it back."] if can_restore(run.settings) else []
    notes += [advice] if advice else []
    run.console.result(done, restored(done), notes=notes if done.status != "unchanged" else ())


async def undo(run: Invocation) -> None:
    console, arguments = run.console, run.arguments
    async with run.memory() as memory:
        with run.progress("Undoing") as on_progress:
            undone = await memory.undo(
                on_progress,
                numbers=[number for number in arguments.writes if number != LAST],
                origin=arguments.origin or "",
                since=arguments.since or "",
            )
    console.result(undone, *sentences(undone))


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
