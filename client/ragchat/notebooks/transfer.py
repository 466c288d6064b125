"""The file that a notebook is shared as: its settings, its conversations, then an export of its documents.

One JSON value a line: a header, each conversation, and the lines of `memory.transfer`. What such a file says
is text from others: it is checked here, and shown to the user before it is used.
"""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from typing import IO, Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct, field, structs

from ragchat.errors import NotANotebook
from ragchat.memory.transfer import HEADER_BYTES, FirstLine, as_lines, read_header
from ragchat.notebooks.definitions import Notebook, checked_name, flaw_of
from ragchat.sessions.types import Session
from ragchat.turn.types import Turn
from ragcommon.errors import DECODE_ERRORS, decode_reason

FORMAT, VERSION = "ragchat-notebook", 1
# The longest conversation.
_SESSION_BYTES = 1 << 26

# They are parts of addresses on the page.
_Id = Annotated[str, Meta(pattern="^[0-9a-f]{1,64}$")]


class _Header(FirstLine, frozen=True):
    """`sessions` of the next lines are conversations."""

    name: str = ""
    scope: str = field(name="in", default="")
    instructions: str = ""
    model: str = ""
    sessions: Annotated[int, Meta(ge=0)] = 0


class _Session(Struct, frozen=True):
    session_id: _Id
    title: str
    created_at: str
    turns: list[msgspec.Raw]


class _Ids(Struct, frozen=True):
    turn_id: _Id


class Shared(NamedTuple):
    notebook: Notebook
    sessions: list[Session]
    lines: int  # before the documents


def head(notebook: Notebook, sessions: list[dict[str, Any]]) -> bytes:
    """The lines before the documents; `sessions` are records of `sessions.export`."""
    header = {"format": FORMAT, "version": VERSION, "name": notebook.name, **notebook.values}
    return as_lines([{**header, "sessions": len(sessions)}, *sessions])


def read_head(path: str, file: IO[bytes], name: str = "") -> Shared:
    """Read the lines before the documents, for a notebook called `name` if given.

    Blocking. Raises NotANotebook, NotebookNameRefused, OSError.
    """
    line = file.readline(HEADER_BYTES)
    header = read_header(line, _Header, FORMAT, VERSION, partial(NotANotebook, path))
    own = checked_name(header.name)
    notebook = Notebook(checked_name(name or own), header.scope, header.instructions, header.model)
    if reason := flaw_of(notebook):
        raise NotANotebook(path, reason)
    sessions = []
    for number in range(2, header.sessions + 2):
        try:
            session = msgspec.json.decode(file.readline(_SESSION_BYTES), type=_Session)
            sessions.append(_session(session, notebook.name, is_copy=notebook.name != own))
        except DECODE_ERRORS as error:
            raise NotANotebook(
                path, f"its line {number} is not a conversation ({decode_reason(error)})"
            ) from None
    return Shared(notebook, sessions, header.sessions + 1)


def _session(line: _Session, notebook: str, *, is_copy: bool) -> Session:
    """The conversation for a notebook of this memory. Raises msgspec.DecodeError.

    Under another name, it gets other ids, the same each time: both notebooks may be in one memory.
    """

    def id_of(id: str) -> str:
        return sha256(f"{notebook} {id}".encode()).hexdigest()[:12] if is_copy else id

    session = Session(id_of(line.session_id), line.title, line.created_at, notebook=notebook)
    for record in line.turns:
        turn_id = msgspec.json.decode(record, type=_Ids).turn_id
        turn = Turn.of_record(bytes(record))
        # Others wrote it: tools are not called without asking once a model has read it.
        untrusted = [*dict.fromkeys([*turn.answer.untrusted, f"the imported notebook {notebook}"])]
        session.turns.append(
            structs.replace(
                turn,
                turn_id=id_of(turn_id),
                session_id=session.session_id,
                answer=structs.replace(turn.answer, untrusted=untrusted),
            )
        )
    return session
