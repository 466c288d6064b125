"""/new, /sessions, /resume, /export: this conversation and past ones."""

from __future__ import annotations

import os
from itertools import chain, count
from typing import TYPE_CHECKING

from msgspec import structs

from ragchat.errors import CommandNotPossible, FileAlreadyExists, NoSession, NotWritable, SessionError
from ragchat.formatting import local
from ragchat.sanitize import one_line, sanitize
from ragchat.sessions.export import export_session
from ragchat.sessions.store import session_title
from ragchat.ui.slash.command import unquoted
from ragcommon.text.rules import counted

if TYPE_CHECKING:
    from ragchat.sessions.types import Session
    from ragchat.turn.types import Turn
    from ragchat.ui.context import ChatContext

_SHOWN = 20
# The extensions of files that hold Markdown or plain text; "" is a name without one.
_MARKDOWN = frozenset({".md", ".markdown", ".txt", ""})


async def new(context: ChatContext, _: str) -> None:
    context.conversation.new_session()
    context.update_session_status()
    context.screen.note("A new conversation. /sessions lists the past ones.")


async def show_sessions(context: ChatContext, words: str) -> None:
    from rich.text import Text

    store, current = context.conversation.sessions, context.conversation.session.session_id
    notebook = context.conversation.notebook_name
    rows: list[tuple[str, str, Text]] = []
    if words:
        for match in await store.search(words, _SHOWN, notebook):
            text = Text.assemble(one_line(match.question), "\n", (one_line(match.snippet), "notice"))
            rows.append((match.session_id, local(match.created_at), text))
    else:
        for info in await store.list(_SHOWN, one_shots=False, notebook=notebook):
            name = f"{info.session_id}*" if info.session_id == current else info.session_id
            where = f"  in {info.notebook}" if info.notebook and not notebook else ""
            title = Text.assemble(one_line(info.title), (where, "notice"))
            rows.append((name, local(info.updated_at), title))
    if not context.screen.listing(rows):
        context.screen.note("No conversation matches." if words else "There is no past conversation yet.")


async def resume(context: ChatContext, session_id: str) -> None:
    try:
        await context.conversation.resume(session_id or None)
    except NoSession:
        if context.conversation.last_turn is None:
            raise
        raise CommandNotPossible("resume", "there is no other past conversation") from None
    context.update_session_status()
    show_resumed(context)


def show_resumed(context: ChatContext) -> None:
    """Show the last question and answer of a continued session, as a reminder."""
    from rich.text import Text

    from ragchat.turn.why import marks
    from ragchat.ui.render.markdown import Markdown, is_written_plain

    session = context.conversation.session
    for turn in session.turns[-1:]:
        text = sanitize(turn.answer.text)
        answer = text if is_written_plain(context.screen.out) else Markdown(text)
        context.screen.show(Text(sanitize(turn.question), "name"), "", answer, "")
        for mark in marks(turn):
            context.screen.note(mark)
    place = f" in the notebook {session.notebook}" if session.notebook else ""
    context.screen.note(f"Continuing {session.session_id} ({counted(len(session.turns), 'turn')}){place}.")


def _free_name(session_id: str) -> str:
    """A name in the working folder that no earlier export has."""
    first = f"ragchat-{session_id}"
    names = chain([first], (f"{first}-{number}" for number in count(2)))
    return next(f"{name}.md" for name in names if not os.path.lexists(f"{name}.md"))


async def _whole(context: ChatContext, *, with_passages: bool) -> Session:
    """The conversation, including turns that could not be saved. Raises SessionError if it has none.

    `with_passages`: also tell the user how many turns have lost their passages, which only the store had.
    """
    shown = context.conversation.session
    by_id: dict[str, Turn] = {}
    reason = "They are no longer saved."
    try:
        saved = await context.conversation.sessions.load(shown.session_id)
        # By their ids, as one that /retry replaced is still saved.
        by_id = {turn.turn_id: turn for turn in saved.turns}
        if {turn.turn_id for turn in shown.turns} <= by_id.keys():
            return saved
        shown = structs.replace(shown, turns=[by_id.get(turn.turn_id, turn) for turn in shown.turns])
    except SessionError as error:
        if not shown.turns:
            raise
        reason = str(error)
    lost = {turn.turn_id for turn in shown.turns[:-1]} - by_id.keys() - context.conversation.unsaved
    if with_passages and lost:
        passages = f"The passages of {counted(len(lost), 'earlier turn')}"
        context.screen.note(f"{passages} are not in this export. {reason}")
    first = shown.turns[0]
    title, created = shown.title or session_title(first.question), shown.created_at or first.created_at
    return structs.replace(shown, title=title, created_at=created)


async def export(context: ChatContext, argument: str) -> None:
    """Write the conversation to a file. Raises NotWritable, FileAlreadyExists, OSError."""
    import anyio

    session = context.conversation.session
    path = await anyio.Path(unquoted(argument) or _free_name(session.session_id)).expanduser()
    as_json = path.suffix.lower() == ".json"
    if not as_json and path.suffix.lower() not in _MARKDOWN:
        raise NotWritable(path.suffix, str(path.with_suffix(".md")))
    whole = await _whole(context, with_passages=as_json)
    text = export_session(whole, "json" if as_json else "markdown")
    try:
        async with await path.open("x", encoding="utf-8", newline="\n") as file:
            await file.write(text)
    except FileExistsError:
        raise FileAlreadyExists(str(path)) from None
    context.screen.note(f"Wrote {path}.")
