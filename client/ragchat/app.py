"""The one object that every front end uses: interactive, piped, `ask`, `run`.

It holds the current session, the model in use and the system prompt, and hands each question to a turn.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from types import TracebackType

from msgspec import Struct

from ragchat.errors import EmptyQuestion, NothingToRetry
from ragchat.sessions import SessionStore, utc_now
from ragchat.turn import Approve, Memory, take_turn
from ragchat.types import OFFLINE, Event, Finished, Session, Turn
from ragmcp.settings import Settings


class SessionSettings(Struct):
    path: str


class RetrievalSettings(Struct):
    top_k: int
    min_score: float
    deadline_seconds: float
    passage_tokens: int


class App:
    """A conversation in progress. `--model` and `--offline` are the flags {"model.name": …} of the settings,
    `-k` is {"retrieval.top_k": …}.

    The memory is the caller's: it is entered and left outside.
    """

    def __init__(self, settings: Settings, memory: Memory) -> None:
        self.settings = settings
        self.memory = memory
        self._retrieval = settings.table("retrieval", RetrievalSettings)
        path = settings.table("sessions", SessionSettings).path
        self.sessions = SessionStore(Path(path).expanduser() if path else settings.home.data / "sessions.db")
        self.session = _new_session()
        self.model_name = OFFLINE
        self.system_prompt = ""

    async def __aenter__(self) -> App:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.sessions.__aexit__(kind, error, trace)

    @property
    def last_turn(self) -> Turn | None:
        """The turn that /why and /sources are about."""
        return self.session.turns[-1] if self.session.turns else None

    @property
    def context_tokens(self) -> int:
        """What the model can hold, in tokens."""
        return 16_384

    @property
    def used_tokens(self) -> int:
        """About how many of them the next prompt takes before its question and passages."""
        return 0

    async def warm_up(self) -> None:
        """Load what the first question needs (the model's client); for the time in which the user types.

        Raises ModelError when the configured model cannot be had; the next question raises it again.
        """

    async def models(self) -> list[str]:
        """The names that `set_model` takes, "offline" among them."""
        return [OFFLINE]

    async def set_model(self, name: str) -> None:
        """Change the model ("auto", "offline", a name). Raises ModelError, and nothing has changed then."""
        self.model_name = name

    def new_session(self) -> Session:
        """Begin another conversation; it stands in the store once it has a turn."""
        self.session = _new_session()
        return self.session

    async def resume(self, session_id: str | None = None) -> Session:
        """Go on with a past session, by the beginning of its id; None: the last used. Raises SessionError."""
        store = self.sessions
        self.session = await (store.load_last() if session_id is None else store.load(session_id))
        return self.session

    async def ask(self, question: str, *, approve: Approve | None = None) -> AsyncGenerator[Event, None]:
        """One turn. The turn is in the store before Finished comes. Raises RagChatError."""
        async for event in self._turn(question, approve, None):
            yield event

    async def retry(self, *, approve: Approve | None = None) -> AsyncGenerator[Event, None]:
        """The last question again; the new turn takes the old one's place. Raises NothingToRetry."""
        last = self.last_turn
        if last is None:
            raise NothingToRetry
        async for event in self._turn(last.question, approve, last):
            yield event

    async def _turn(
        self, question: str, approve: Approve | None, replaces: Turn | None
    ) -> AsyncIterator[Event]:
        question = question.strip()
        if not question:
            raise EmptyQuestion
        session = self.session
        history = [turn for turn in session.turns if turn is not replaces]
        async for event in take_turn(
            question,
            session_id=session.session_id,
            history=history,
            memory=self.memory,
            top_k=self._retrieval.top_k,
            min_score=self._retrieval.min_score,
            deadline_seconds=self._retrieval.deadline_seconds,
            created_at=utc_now(),
        ):
            if isinstance(event, Finished):
                await self.sessions.save_turn(event.turn, replaces=replaces.turn_id if replaces else None)
                session.turns = [*history, event.turn]
                session.title = session.title or question
            yield event


def _new_session() -> Session:
    return Session(secrets.token_hex(6), created_at=utc_now())
