"""`ragchat notebook`: create, list, change and remove notebooks, and carry them between memories."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from msgspec import structs

from ragchat.commands import transfer
from ragchat.commands.invocation import Invocation
from ragchat.commands.removal import remove_each
from ragchat.commands.stdin import confirm
from ragchat.console import describe
from ragchat.errors import (
    NoDocumentMatches,
    NotebookExists,
    NotebookNameRefused,
    NotebookNotConfirmed,
    UnknownNotebook,
)
from ragchat.formatting import local
from ragchat.memory.matching import filter_of
from ragchat.memory.transfer import existing_file, new_file
from ragchat.notebooks.definitions import (
    Notebook,
    checked_name,
    create,
    folder_of,
    listed,
    load,
    notebook_path,
    remove,
    save,
    unknown,
)
from ragchat.notebooks.transfer import Shared, head, read_head
from ragchat.sanitize import visible
from ragchat.sessions.export import record_of
from ragchat.turn.scope import EVERYTHING
from ragchat.uris import absolute_scope
from ragcommon.text.rules import counted
from ragconfig.home import user_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragchat.memory.client import MemoryClient
    from ragchat.sessions.store import SessionStore
    from ragchat.sessions.types import SessionInfo


def _given(run: Invocation, notebook: Notebook) -> Notebook:
    """The notebook with the values of the command line."""
    arguments = run.arguments
    scope = "" if arguments.scope == EVERYTHING else arguments.scope and absolute_scope(arguments.scope)
    given = {"scope": scope, "instructions": arguments.instructions, "model": arguments.model}
    return structs.replace(notebook, **{key: value for key, value in given.items() if value is not None})


async def new(run: Invocation) -> None:
    notebook = _given(run, Notebook(checked_name(run.arguments.name)))
    await _check_scope(run, notebook)
    path = create(folder_of(run.settings), notebook)
    sentence = f"Created the notebook {notebook.name}. `ragchat --notebook {notebook.name}` asks in it."
    run.console.result({**_document(notebook), "path": str(path)}, sentence)


async def _check_scope(run: Invocation, notebook: Notebook) -> None:
    """Say so if no document matches its scope yet. Raises SeveralDocumentsMatch."""
    if not notebook.scope:
        return
    async with run.memory() as memory:
        if await _filter(memory, notebook) is None:
            run.console.note(
                f"No document in memory matches {notebook.scope} yet; `ragchat inject PATH` loads it."
            )


async def _filter(memory: MemoryClient, notebook: Notebook) -> dict[str, Any] | None:
    """The filter of its documents, {} for all; None: no document matches. Raises SeveralDocumentsMatch."""
    try:
        return await filter_of(memory, notebook.scope) if notebook.scope else {}
    except NoDocumentMatches:
        return None


def _portable(notebook: Notebook, filter: dict[str, Any] | None) -> Notebook:
    """The notebook with its filter as the scope: a URI or a tag does not depend on the machine."""
    scope = filter.get("uri") or filter["tags"][0] if filter else notebook.scope
    return structs.replace(notebook, scope=scope)


def _document(notebook: Notebook) -> dict[str, str]:
    return {"name": notebook.name, **notebook.values}


async def ls(run: Invocation) -> int:
    """Exit code 1 if one of them cannot be used."""
    found = [*listed(folder_of(run.settings))]
    notebooks = [one for one in found if isinstance(one, Notebook)]
    errors = [one for one in found if not isinstance(one, Notebook)]
    async with run.sessions() as store:
        counts = Counter(info.notebook for info in await store.list())
    documents = [{**_document(one), "sessions": counts[one.name]} for one in notebooks]
    rows = [(one.name, one.scope or "all documents", one.model, counts[one.name]) for one in notebooks]
    header = ("notebook", "in", "model", "conversations")
    empty = (
        "No notebook can be used."
        if errors
        else "There are no notebooks yet. `ragchat notebook new NAME` creates one."
    )
    return run.console.listing(
        {"notebooks": documents, "failed": [{"error": str(error), "hint": error.hint} for error in errors]},
        header,
        rows,
        empty,
        [f"{error} {error.hint}".rstrip() for error in errors],
        describe(errors[0]) if errors else None,
    )


async def show(run: Invocation) -> None:
    notebook = load(folder_of(run.settings), run.arguments.name)
    async with run.sessions() as store:
        sessions = await store.list(notebook=notebook.name)
    path = notebook_path(folder_of(run.settings), notebook.name)
    lines = [*_lines(notebook), f"file: {path}", *_session_lines(sessions)]
    run.console.result({**_document(notebook), "path": str(path), "sessions": sessions}, *lines)


def _lines(notebook: Notebook) -> list[str]:
    lines = [f"notebook: {notebook.name}", f"in: {notebook.scope or 'all documents'}"]
    lines += [f"model: {notebook.model}"] if notebook.model else []
    instructions = [f"  {line}" for line in notebook.instructions.splitlines()]
    return [*lines, *(["instructions:", *instructions] if instructions else ["instructions: none"])]


def _session_lines(sessions: Sequence[SessionInfo]) -> list[str]:
    lines = [f"  {one.session_id}  {local(one.updated_at)}  {one.title}" for one in sessions]
    return ["conversations:", *lines] if lines else ["conversations: none"]


async def edit(run: Invocation) -> None:
    """Change the values that are given. Raises SeveralDocumentsMatch."""
    folder = folder_of(run.settings)
    notebook = _given(run, load(folder, run.arguments.name))
    if run.arguments.scope:
        await _check_scope(run, notebook)
    path = save(folder, notebook)
    run.console.result({**_document(notebook), "path": str(path)}, *_lines(notebook))


async def rm(run: Invocation) -> int:
    async with run.sessions() as store:
        return await remove_each(
            run,
            run.arguments.names,
            partial(_remove, run, store),
            kind="notebook",
            expected=(UnknownNotebook, NotebookNameRefused),
            sentence=lambda removed: (
                f"Removed the notebook {removed['name']}. Its documents stay in memory, and "
                f"{counted(removed['sessions'], 'conversation')} in `ragchat session ls`; these ask all "
                "documents from now on."
            ),
        )


async def _remove(run: Invocation, store: SessionStore, name: str) -> dict[str, Any]:
    folder, found = folder_of(run.settings), checked_name(name)
    if not notebook_path(folder, found).exists():
        raise unknown(folder, name)
    # Before the file: if this fails, the notebook is as it was, and no later one of that name gets them.
    released = await store.release(found)
    remove(folder, found)
    return {"name": found, "sessions": released}


async def export(run: Invocation) -> None:
    console, name = run.console, run.arguments.output
    notebook = load(folder_of(run.settings), run.arguments.name)
    path = user_path(name)
    with nullcontext(sys.stdout.buffer) if name == "-" else new_file(path) as file:
        async with run.memory() as memory, run.sessions() as store:
            infos = await store.list(notebook=notebook.name)
            sessions = [record_of(await store.load(info.session_id)) for info in reversed(infos)]
            filter = await _filter(memory, notebook)
            uris = None
            if filter != {}:
                page = await memory.documents(None, filter) if filter else None
                uris = [document.uri for document in page.documents] if page else []
            file.write(head(_portable(notebook, filter), sessions))
            with run.progress("Exporting", shown=name != "-") as on_progress:
                documents = await transfer.write(memory, file, on_progress, uris)
    if name != "-":
        sentence = (
            f"Exported the notebook {notebook.name} with {counted(documents, 'document')} and "
            f"{counted(len(sessions), 'conversation')} to {path}."
        )
        console.result({"path": str(path), "documents": documents, "sessions": len(sessions)}, sentence)


async def import_(run: Invocation) -> int:
    """Exit code 1 if a document was refused; the others are stored."""
    console, folder = run.console, folder_of(run.settings)
    path = user_path(run.arguments.file)
    with existing_file(path) as file:
        shared = await to_thread.run_sync(read_head, str(path), file, run.arguments.other_name or "")
        notebook = shared.notebook
        _confirm(run, shared)
        async with run.memory() as memory, run.sessions() as store:
            try:
                known = load(folder, notebook.name)
            except UnknownNotebook:
                save(folder, notebook)
            else:
                if notebook not in (known, _portable(known, await _filter(memory, known))):
                    raise NotebookExists(notebook.name, "Import it under another name: --as NAME.")
            turns = sum([await store.add(session) for session in shared.sessions])
            size = path.stat().st_size
            statuses, errors, _ = await transfer.read(run, memory, str(path), file, size, before=shared.lines)
    if not console.json:
        console.print(
            f"Imported the notebook {notebook.name} with {counted(len(shared.sessions), 'conversation')} "
            f"({counted(turns, 'new answer')})."
        )
    transfer.show(run, statuses, errors, name=notebook.name, sessions=len(shared.sessions), added_turns=turns)
    return 1 if errors else 0


def _confirm(run: Invocation, shared: Shared) -> None:
    """Show what the file says, and ask. Raises NotebookNotConfirmed."""
    for line in _lines(shared.notebook):
        run.console.note(visible(line))
    run.console.note(
        f"{counted(len(shared.sessions), 'conversation')}. The instructions go to the model with every "
        "question. A document of the file replaces one of the same URI in memory."
    )
    if not run.arguments.yes and not (run.can_ask and confirm("Import it?")):
        raise NotebookNotConfirmed(shared.notebook.name)
