"""/inject, /sync, /query, /memory, /forget, /undo: the documents in memory."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ragchat.errors import ArgumentMissing, NotConfirmed, UnexpectedArgument
from ragchat.formatting import local
from ragchat.memory.history import can_restore, new_group, removed, sentences
from ragchat.ui.slash.command import unquoted
from ragchat.uris import short_uri
from ragcommon.text.rules import counted

if TYPE_CHECKING:
    from ragchat.ingest.report import InjectReport, OnProgress
    from ragchat.memory.client import MemoryClient
    from ragchat.ui.context import ChatContext

PRUNE = "--prune"
_PRUNE = re.compile(rf"(?<!\S){PRUNE}(?!\S)")
_SHOWN = 50
_MAX_LISTED = 10  # failed and skipped files each


async def inject(context: ChatContext, argument: str) -> None:
    """Load files and folders. After Ctrl-C, what is stored stays stored, and is reported.

    With `--prune`, the documents of the folders whose files are gone are removed. Raises UnexpectedArgument.
    """
    import anyio

    from ragchat.ingest.loading import load_files
    from ragchat.ui.welcome import load_readme

    prune = _PRUNE.search(argument) is not None
    argument = _PRUNE.sub("", argument).strip()
    if not argument:
        raise ArgumentMissing("inject", "files or folders")
    paths = split_paths(argument)
    refuse_options("inject", paths, f"; {PRUNE} removes documents whose files are gone")
    if argument == "readme" and not await anyio.Path(argument).exists():
        await load_readme(context)
        return
    await _load(context, paths, partial(load_files, prune=prune))


async def sync(context: ChatContext, argument: str) -> None:
    """Bring memory in step with the sources, or with files and folders. After Ctrl-C like `inject`."""
    from ragchat.ingest.loading import sync_files

    paths = split_paths(argument) if argument else []
    refuse_options("sync", paths)
    await _load(context, paths, sync_files)


async def _load(
    context: ChatContext,
    paths: Sequence[str],
    load: Callable[[MemoryClient, Sequence[str], OnProgress | None, InjectReport], Awaitable[object]],
) -> None:
    """Run `load` with a bar, and report on it, even if it was stopped."""
    from ragchat.ingest.report import InjectReport
    from ragchat.ui.render.progress import loading_bar

    report = InjectReport()
    try:
        with loading_bar(context.screen.err.file) as on_progress:
            conversation = context.conversation
            loader = conversation.servers.loader(context.memory, conversation.settings, paths)
            async with loader as memory:
                await load(memory, paths, on_progress, report)
    except BaseException as error:
        if report.begun:
            show_report(context, report, str(error))
        raise
    show_report(context, report)
    await context.update_memory_status()


async def query(context: ChatContext, text: str) -> None:
    from ragchat.ui.render.sources import passage

    if not text:
        raise ArgumentMissing("query", "words to search for")
    found = await context.conversation.scope.query(text)
    for index, hit in enumerate(found.hits):
        context.screen.show(*([""] if index else []), *passage(hit))
    if found.notice:
        context.screen.note(found.notice)
    if not found.hits:
        context.screen.note("No passage matches.")


async def narrow(context: ChatContext, documents: str) -> None:
    """Ask only some documents from now on; without an argument, show which."""
    from ragchat.memory.matching import listed

    scope = context.conversation.scope
    if documents:
        await scope.narrow(unquoted(documents))
        context.update_session_status()
    if not scope.name:
        context.screen.note("All documents are asked. /in with a folder, glob, tag or name asks only some.")
        return
    total = (await listed(context.memory, scope.name, 1)).total
    wider = (
        "/notebook - leaves the notebook." if scope.name == scope.whole else "/in * asks all documents again."
    )
    context.screen.note(f"Only {scope.name} is asked ({counted(total, 'document')}). {wider}")


async def show_memory(context: ChatContext, words: str) -> None:
    """List the documents, all or those that `words` mean, and the totals."""
    from rich.table import Table
    from rich.text import Text

    from ragchat.memory.matching import listed

    page = await listed(context.memory, words, _SHOWN)
    table = Table.grid(padding=(0, 2))
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    for document in page.documents:
        name = Text(short_uri(document.uri, document.title))
        table.add_row(name, f"{document.chunks:,}", Text(local(document.updated_at), "notice"))
    if page.documents:
        context.screen.show(table)
    elif words:
        context.screen.note(f"No document matches {words}.")
    if page.total > len(page.documents):
        context.screen.note(f"… and {page.total - len(page.documents):,} more; /memory NAME narrows it down.")
    stats = await context.memory.stats()
    context.screen.note(
        f"{counted(stats.documents, 'document')}, {counted(stats.chunks, 'chunk')}, "
        f"{stats.bytes / 1e6:.1f} MB in {stats.path}"
    )


async def forget(context: ChatContext, document: str) -> None:
    """Remove a document without asking for confirmation: /undo restores it. Several are confirmed first."""
    from ragchat.memory import matching

    if not document:
        raise ArgumentMissing("forget", "a document: its path, URI or id, or a glob")
    names = await matching.to_remove(context.memory, document)
    if len(names) > 1:
        if context.confirm is None:
            raise NotConfirmed(len(names), document)
        if not await context.confirm(f"Remove {len(names):,} documents?"):
            context.screen.note("Nothing is removed.")
            return
    group = new_group()
    gone = [await matching.forget(context.memory, name, group) for name in names]
    done, them = (removed(*gone), "it") if len(gone) == 1 else (f"Removed {len(gone):,} documents.", "them")
    hint = f" /undo restores {them}." if can_restore(context.conversation.settings) else ""
    context.screen.note(done + hint, "done")
    await context.update_memory_status()


async def undo(context: ChatContext, _: str) -> None:
    from ragchat.ui.render.progress import counting_bar

    with counting_bar(context.screen.err.file, "Undoing") as on_progress:
        undone = await context.memory.undo(on_progress)
    for sentence in sentences(undone):
        context.screen.note(sentence, "done")
    await context.update_memory_status()


def split_paths(argument: str) -> list[str]:
    """Split paths like a shell. An existing path with spaces needs no quotes."""
    with suppress(OSError):  # Several paths may be too long for one name.
        if Path(argument).expanduser().exists():
            return [argument]
    lexer = shlex.shlex(argument, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    if os.name == "nt":
        lexer.escape = ""  # a backslash separates folders there
    try:
        return list(lexer)
    except ValueError:  # an apostrophe in a name, not a quotation mark
        return [argument]


def refuse_options(command: str, words: Sequence[str], known: str = "") -> None:
    """Raise UnexpectedArgument for a word that looks like an option, unless a file is called so."""
    for word in words:
        # Not `Path.exists`, which raises OSError for a name that is too long.
        if word.startswith("-") and len(word) > 1 and not os.path.lexists(word):
            raise UnexpectedArgument(command, f"no option {word}{known}")


def show_report(context: ChatContext, report: InjectReport, final: str = "") -> None:
    failed = list(report.failures(_MAX_LISTED, final))
    for line in failed:
        context.screen.note(line, "warning")
    for line in report.remarks(_MAX_LISTED, "/forget"):
        context.screen.note(line)
    if report.longest_list > _MAX_LISTED:
        context.screen.note("In a shell, `ragchat inject -v PATH` and `ragchat sync -v` list them all.")
    context.screen.note(report.summary(), "warning" if failed else "done")
    if unfinished := report.unfinished():
        context.screen.note(unfinished, "warning")
    context.failures += bool(failed)
