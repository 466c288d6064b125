"""`ragchat inject PATH…`: files, folders and web pages into memory."""

from __future__ import annotations

import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import anyio

from ragchat.commands.invocation import Invocation
from ragchat.commands.stdin import read_stdin
from ragchat.console import Failure, describe
from ragchat.errors import AddressesUnusable, RagChatError, StdinUnusable
from ragchat.ingest.loading import failed, load_files, load_text
from ragchat.ingest.report import InjectReport
from ragchat.ui.render.progress import loading_bar
from ragcommon.errors import os_reason
from ragcommon.files.decoding import NotText, decode
from ragcommon.files.safe_open import read_regular
from ragcommon.files.uris import is_address
from ragcommon.text.rules import counted
from ragconfig.home import user_path

if TYPE_CHECKING:
    from ragchat.memory.client import MemoryClient

# Skipped and failed files beyond this number are only counted, without -v or --json.
MAX_LISTED = 20
# The error code of a sync of all sources when there are none: nothing was begun.
NO_SOURCES = "NO_SOURCES"
MAX_ADDRESSES_BYTES = 1 << 20
CONTINUE = "Run the same command again to continue."
# Loads documents into memory, and fills the report.
Load = Callable[[Invocation, "MemoryClient", InjectReport], Awaitable[None]]


async def inject(run: Invocation) -> int:
    """Exit code 1 if a file failed."""
    report = InjectReport()
    if run.arguments.addresses:
        addresses = _addresses(run.arguments.addresses, report.notes.append)
        run.arguments.paths = [*run.arguments.paths, *addresses]
    run.use_own_memory(run.arguments.paths)
    remove = "`ragchat memory rm`" if run.arguments.prune else "--prune"
    code = await load_with_report(run, _inject, remove, report)
    if report.count("added") and run.can_ask and run.console.stdout.isatty() and not os.environ.get("CI"):
        await _begin(run, report.count("added"))
    return code


async def _begin(run: Invocation, added: int) -> None:
    """Show where to begin, if memory was empty before."""
    from ragchat.commands.ask import show_turn
    from ragchat.conversation import Attached, SaveMode
    from ragchat.ingest.beginning import where_to_begin
    from ragconfig.settings import packaged_text

    run = replace(run, arguments=Namespace(**{**vars(run.arguments), "no_tools": True}))
    try:
        async with run.conversation(SaveMode.NOTHING) as conversation:
            if (await conversation.memory.stats()).documents != added:
                return
            found = await where_to_begin(conversation.memory, conversation.limits.retrieval)
            if found.documents and not run.console.json and (model := await conversation.model.find()):
                run.console.note(f"\nAn overview by {model.name}:")
                beginnings = Attached.of(found.beginnings)
                asked = packaged_text("prompts/overview.md")
                await show_turn(run, lambda emit: conversation.ask(asked, emit, attached=beginnings))
                found.groups.clear()
    except RagChatError as error:  # The documents are loaded all the same.
        run.log(error)
        run.console.note(describe(error).message)
        return
    for line in found.lines(shutil.get_terminal_size().columns):
        run.console.note(line)


def _addresses(file: str, note: Callable[[str], None]) -> list[str]:
    """The addresses in a file, one a line; `#` begins a comment. Raises AddressesUnusable, StdinUnusable."""
    try:
        text = read_stdin(note, most=MAX_ADDRESSES_BYTES) if file == "-" else _text(file, note)
    except (OSError, NotText) as error:
        raise AddressesUnusable(file, os_reason(error)) from None
    found = []
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if line and not line.startswith("#"):
            if not is_address(line):
                raise AddressesUnusable(file, f"line {number} is not an address: {line[:80]!r}")
            found.append(line)
    return found


def _text(file: str, note: Callable[[str], None]) -> str:
    text = decode(read_regular(user_path(file), MAX_ADDRESSES_BYTES))
    if text.note:
        note(f"{file} {text.note}.")
    return text.text


async def load_with_report(
    run: Invocation, load: Load, remove: str = "--prune", report: InjectReport | None = None
) -> int:
    """Exit code 1 if a document failed. The report is printed even if loading was stopped.

    `remove` is the command that removes a document.
    """
    report = report or InjectReport()
    show = partial(_show, run, report, remove)
    try:
        async with run.memory(pages=True) as memory:
            await load(run, memory, report)
    except anyio.get_cancelled_exc_class():
        show("you stopped it.")
        raise
    except RagChatError as error:
        if describe(error).code == NO_SOURCES:
            raise
        run.log(error)
        failure = describe(error)
        show(failure.message, failure)
        return 1
    show()
    return 1 if report.count("failed") else 0


async def _inject(run: Invocation, memory: MemoryClient, report: InjectReport) -> None:
    paths = run.arguments.paths
    if "-" in paths:
        await _inject_stdin(memory, run.arguments.uri, report)
    with loading_bar(run.console.stderr, shown=not run.console.json) as on_progress:
        files = [path for path in paths if path != "-"]
        await load_files(memory, files, on_progress, report, prune=run.arguments.prune)


async def _inject_stdin(memory: MemoryClient, uri: str | None, report: InjectReport) -> None:
    try:
        text = read_stdin(report.notes.append)
        document = await load_text(memory, text, {"uri": uri} if uri else {}, report.group)
    except RagChatError as error:
        report.texts.append(failed(uri or "-", error))
        if not isinstance(error, StdinUnusable):
            raise
    else:
        report.texts.append(document)


def _first_failure(report: InjectReport, stopped: str) -> Failure | None:
    """The first failed file, for a report that no other error ended. None: everything is loaded."""
    if stopped:
        return Failure("STOPPED", "Stopped.", f"{report.unfinished()} {CONTINUE}".lstrip())
    errors = [document.error for document in report.documents if document.error]
    if not errors:
        return None
    others = f" {counted(len(errors) - 1, 'other document')} failed as well." if errors[1:] else ""
    return Failure("INJECT_FAILED", errors[0] + others)


def _show(
    run: Invocation,
    report: InjectReport,
    remove: str,
    stopped: str = "",
    failure: Failure | None = None,
) -> None:
    """Print the report. `stopped` is the reason why loading did not finish."""
    if run.console.json:
        run.console.document(report.public(), failure or _first_failure(report, stopped))
        return
    listed = sys.maxsize if run.arguments.verbose else MAX_LISTED
    lines = [
        *report.failures(listed, failure.message if failure else ""),
        *report.remarks(listed, remove),
    ]
    for line in lines:
        run.console.note(line)
    if report.longest_list > listed:
        run.console.note("The option -v lists them all.")
    begun = bool(report.outcomes or report.texts)
    if stopped:
        run.console.note(f"Not finished: {stopped}")
        if failure and failure.hint:
            run.console.note(f"  {failure.hint}")
        if unfinished := report.unfinished():
            run.console.note(f"  {unfinished}")
        if begun or not failure:
            run.console.note(f"  {CONTINUE}")
    if begun or not stopped:
        run.console.print(report.summary())
