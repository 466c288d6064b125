"""`ragchat memory`: the versions of documents, and undo."""

from __future__ import annotations

from ragchat.arguments.memory import LAST
from ragchat.commands.invocation import Invocation
from ragchat.console import is_styled
from ragchat.formatting import local
from ragchat.memory.history import can_restore, next_sync, restored, sentences, size
from ragchat.memory.matching import about_past
from ragchat.sanitize import sanitize

# By the beginnings of lines, the longer ones first.
DIFF_STYLES = {"---": "bold", "+++": "bold", "@@": "cyan", "-": "red", "+": "green"}


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
