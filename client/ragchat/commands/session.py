"""`ragchat session`: list, show, search, remove and inject past conversations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from ragchat.commands.inject import load_with_report
from ragchat.commands.invocation import Invocation
from ragchat.commands.removal import remove_each
from ragchat.errors import AmbiguousSession, RagChatError, UnknownSession
from ragchat.evaluation.stale import NONE_STALE, Staleness, stale_turns
from ragchat.formatting import local
from ragchat.ingest.loading import failed, load_text
from ragchat.notebooks.definitions import folder_of, load
from ragchat.sanitize import one_line
from ragchat.sessions.document import as_document
from ragchat.sessions.export import export_session, record_of
from ragcommon.text.rules import counted

if TYPE_CHECKING:
    from ragchat.ingest.report import InjectReport
    from ragchat.memory.client import MemoryClient
    from ragchat.turn.types import Turn


def _notebook(run: Invocation) -> str:
    """The name given with --notebook, "" if none. Raises UnknownNotebook, NotebookUnusable."""
    name = run.arguments.notebook
    return load(folder_of(run.settings), name).name if name else ""


async def ls(run: Invocation) -> None:
    notebook = _notebook(run)
    async with run.sessions() as store:
        sessions = await store.list(run.arguments.limit, notebook=notebook)
    empty = f"The notebook {notebook} has" if notebook else "There are"
    header = ["session", "last used", "turns", "first question"]
    rows: list[Sequence[object]] = [
        (info.session_id, local(info.updated_at), info.turns, info.title) for info in sessions
    ]
    if any(info.notebook for info in sessions):
        header.insert(3, "notebook")
        rows = [(*row[:3], info.notebook, row[3]) for row, info in zip(rows, sessions, strict=True)]
    run.console.listing({"sessions": sessions}, header, rows, f"{empty} no past conversations yet.")


async def show(run: Invocation) -> None:
    async with run.sessions() as store:
        session = await store.load(run.arguments.session_id)
    changed = await _changed(run, session.turns)
    if run.console.json:
        turns = [{**turn.public(), "changed": changed[turn.turn_id]} for turn in session.turns]
        run.console.document({**structs.asdict(session), "turns": turns})
        return
    from ragchat.turn.why import marks
    from ragchat.ui.render.sources import plain_sources

    for turn in session.turns:
        stale = [f"! Changed since: {', '.join(changed[turn.turn_id])}"] if changed[turn.turn_id] else []
        below = [*marks(turn), *plain_sources(turn), *stale]
        run.console.print("\n".join((f"> {turn.question}", "", turn.answer.text, "", *below, "")))


async def _changed(run: Invocation, turns: Sequence[Turn]) -> dict[str, list[str]]:
    """The places of each turn that have changed since; none if memory cannot be asked."""
    changed: dict[str, list[str]] = {turn.turn_id: [] for turn in turns}
    if not any(turn.answer.sources for turn in turns):
        return changed
    try:
        async with run.memory() as memory:
            staleness = Staleness(memory)
            return {turn.turn_id: await staleness.places(turn) for turn in turns}
    except RagChatError as error:
        run.console.note(f"Whether the documents have changed since is not known. {error}")
        return changed


async def stale(run: Invocation) -> None:
    async with run.sessions() as store, run.memory() as memory:
        turns = [turn async for turn in stale_turns(store, memory)]
    rows = [(one.session_id, local(one.created_at), ", ".join(one.places), one.question) for one in turns]
    header = ("session", "asked", "changed since", "question")
    run.console.listing({"turns": turns}, header, rows, NONE_STALE)


async def rm(run: Invocation) -> int:
    async with run.sessions() as store:
        return await remove_each(
            run,
            run.arguments.session_ids,
            store.remove,
            kind="session_id",
            expected=(UnknownSession, AmbiguousSession),
            sentence=lambda session: (
                f"Deleted {session.session_id} ({counted(session.turns, 'turn')}): {session.title}"
            ),
        )


async def export(run: Invocation) -> None:
    """Print Markdown; with --json, the whole session with its traces."""
    async with run.sessions() as store:
        session = await store.load(run.arguments.session_id)
    run.console.result(record_of(session), export_session(session, "markdown").removesuffix("\n"))


async def inject(run: Invocation) -> int:
    """Store each session as a document, which replaces the one of an earlier call.

    With --all, those without an answer are left out: later questions would find nothing in them.
    """
    return await load_with_report(run, _inject)


async def _inject(run: Invocation, memory: MemoryClient, report: InjectReport) -> None:
    named, empty = run.arguments.session_ids, 0
    async with run.sessions() as store:
        for session_id in named or [info.session_id for info in await store.list()]:
            try:
                session = await store.load(session_id)
            except (UnknownSession, AmbiguousSession) as error:
                report.texts.append(failed(session_id, error))
            else:
                if not named and not any(turn.answer.has_content for turn in session.turns):
                    empty += 1
                    continue
                report.texts.append(await load_text(memory, *as_document(session), report.group))
    if empty:
        report.notes.append(f"{counted(empty, 'conversation')} without an answer left out.")


async def search(run: Invocation) -> None:
    text = " ".join(run.arguments.text)
    async with run.sessions() as store:
        matches = await store.search(text, run.arguments.limit, _notebook(run))
    lines = [
        f"{match.session_id}  {local(match.created_at)}  {one_line(match.question)}\n"
        f"    {one_line(match.snippet)}\n"
        for match in matches
    ]
    run.console.result({"query": text, "matches": matches}, *lines, empty="No conversation matches.")
