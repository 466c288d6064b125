"""The conversation behind every front end: interactive, piped, `ask`, `run`.

It holds the current session, the model and the system prompt, and takes one turn for each question. It opens
the model's client and the sessions at first use, so that start-up is fast.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING

import anyio

from ragchat.errors import EmptyQuestion, NothingToResume, NothingToRetry, RagChatError, SessionError
from ragchat.formatting import utc_now
from ragchat.llm import tokens
from ragchat.llm.discovery import with_near_names
from ragchat.llm.errors import UnknownModel
from ragchat.llm.selection import ModelSelection
from ragchat.memory.types import DocumentText
from ragchat.sanitize import one_line
from ragchat.sessions.store import SessionStore, session_title, sessions_path
from ragchat.settings import (
    ModelSettings,
    ResearchSettings,
    RetrievalSettings,
    ServerSettings,
    ToolSettings,
)
from ragchat.turn.approval import Approve
from ragchat.turn.conversation import newest_that_fit, turn_tokens
from ragchat.turn.limits import Budget, RetrievalLimits, TurnLimits
from ragchat.turn.passages import ATTACHED, attached
from ragchat.turn.prompt import load_prompts
from ragchat.turn.scope import Scope
from ragchat.turn.tools import Toolbox
from ragchat.types import Candidate, Emit, Notice, Session, Turn, ignore
from ragconfig.settings import Settings

if TYPE_CHECKING:
    from ragchat.memory.client import MemoryClient
    from ragchat.research.research import Report
    from ragchat.servers.manager import ServerManager


IMAGES_NOT_SAVED = (
    "The images of this question are not sent: conversations are saved without them. "
    "To attach them again, type the question."
)
# Seconds after which a script names the servers that it waits for.
NOTICED_SECONDS = 1.0


class Keeps(Enum):
    """How the turns of an `App` are saved."""

    CONVERSATION = "conversation"
    ONE_SHOT = "one shot"  # a new session of theirs is not offered for continuing in the chat
    NOTHING = "nothing"


@dataclass(frozen=True)
class _Question:
    """What the user asks, with what is attached to it: `about` and `images`; `foreign` as for `App.ask`."""

    text: str = ""
    about: Sequence[Candidate] = ()
    foreign: Sequence[str] = ()
    images: Sequence[str] = ()


_NO_QUESTION = _Question()


class App:
    """`model` is the model in use, `session` the current session, `sessions` the store of all.

    `scope` is the part of `memory` that is asked, `keeps` how turns are saved.

    The caller opens and closes `memory` and `servers`; the others of these start once there is a model. With
    `believe_all` every server's word that a tool only reads is believed.
    Raises SettingsError and PromptUnreadable for bad settings.
    """

    def __init__(
        self,
        settings: Settings,
        memory: MemoryClient,
        servers: ServerManager,
        environ: Mapping[str, str] = os.environ,
        *,
        believe_all: bool = False,
    ) -> None:
        self.settings = settings
        self.memory = memory
        self.scope = Scope(memory)
        self.sessions = SessionStore(sessions_path(settings))
        self.session = _new_session()
        self.keeps = Keeps.CONVERSATION
        model, tools = settings.table("model", ModelSettings), settings.table("tools", ToolSettings)
        self.model = ModelSelection(model, environ)
        self._all_limits = _limits(model, settings.table("retrieval", RetrievalSettings), tools)
        self._prompts = load_prompts(settings)
        self.servers = servers
        self.permissions = servers.permissions
        self.toolbox = Toolbox(
            self.scope,
            tools.offered,
            tools.timeout_seconds,
            servers,
            budget=tools.description_tokens,
            believe_all=believe_all,
        )
        # The last question and what was attached to it, when its turn failed or was stopped.
        self._unanswered = _NO_QUESTION
        # The images of the question of `last_turn`; turns are saved without them.
        self._images: Sequence[str] = ()

    async def __aenter__(self) -> App:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.model.aclose()
        finally:
            await self.sessions.__aexit__(kind, error, trace)

    async def warm_up(self) -> None:
        """Load what a turn needs, and find the model, while the user types.

        Raises ModelError when there is no such model; the next question raises it again.
        """
        await anyio.to_thread.run_sync(import_module, "ragchat.turn.turn")
        if model := await self.model.find():
            self._start_servers(ignore)
            await model.load()

    def _start_servers(self, emit: Emit) -> None:
        """Start the other servers in the background; only a model can call their tools."""
        if self.servers.connections:
            return
        try:
            self.servers.start()
        except RagChatError as error:
            emit(Notice(f"{error} {error.hint}".rstrip()))

    async def _await_servers(self, emit: Emit) -> None:
        """Start the other servers. A script waits for all of them; the chat only before it asks the model."""
        self._start_servers(emit)
        if self.servers.user is not None:
            return
        with anyio.move_on_after(NOTICED_SECONDS):
            await self.servers.ready()
        if starting := self.servers.starting():
            names = one_line(", ".join(one.name for one in starting))
            limit = self.settings.table("servers", ServerSettings).start_seconds
            emit(Notice(f"Waiting for {names} to start, for at most {limit:g} s."))
        await self.servers.ready()

    async def use_memory(self, settings: Settings) -> None:
        """Go on with the memory that these settings name. Raises SettingsError."""
        self.memory, self.settings = await self.servers.open_memory(settings), settings
        self.scope.use(self.memory)

    # The prompt

    @property
    def system_prompt(self) -> str:
        return self._prompts.system

    @system_prompt.setter
    def system_prompt(self, text: str) -> None:
        self._prompts = replace(self._prompts, system=text)

    @property
    def _limits(self) -> TurnLimits:
        return self._all_limits.within(self.model.context)

    @property
    def context_tokens(self) -> int:
        """The size of the model's context, in tokens: as set, or as the server says if that is less."""
        return self._limits.budget.context

    @property
    def history_tokens(self) -> int:
        """How many of them the history takes at most, as estimated for budgets."""
        room = self.context_tokens - self._limits.budget.answer - tokens.at_most(self._prompts.system)
        return sum(map(turn_tokens, newest_that_fit(self.session.turns, room)))

    # The session

    @property
    def last_turn(self) -> Turn | None:
        """The turn that /why and /sources show."""
        return self.session.turns[-1] if self.session.turns else None

    def more_cards(self) -> Turn | None:
        """The last turn, with all cards that were found for it; None if it has no more of them."""
        turn = self.last_turn
        if turn is None or turn.trace.further is None:
            return None
        self.session.turns[-1] = turn.with_further()
        return self.session.turns[-1]

    def new_session(self) -> Session:
        """Start a session. It is stored with its first turn."""
        self._begin(_new_session())
        return self.session

    def _begin(self, session: Session) -> None:
        self.session, self._unanswered, self._images = session, _NO_QUESTION, ()

    async def resume(self, session_id: str | None = None) -> Session:
        """Continue a past session, given by a prefix of its id. Raises SessionError.

        None: the session used last, apart from the current one; a one-shot question only in a one-shot run.
        """
        store, here = self.sessions, self.session.session_id
        if session_id is None:
            session = await store.load_last(but=here, one_shots=self.keeps is Keeps.ONE_SHOT)
        else:
            session = await store.load(session_id)
        self._begin(session)
        return session

    async def ask(
        self,
        question: str,
        emit: Emit = ignore,
        approve: Approve | None = None,
        documents: Sequence[DocumentText] = (),
        foreign: Sequence[str] = (),
    ) -> Turn:
        """Answer a question; `emit` gets the events of the turn. The turn is saved as `keeps` says.

        With `documents`, it is about these and nothing else of memory. `foreign` names what in the question
        is not the user's own text. Raises RagChatError.
        """
        images = [one.image for one in documents if one.image]
        asked = _Question(question, attached(documents), foreign, images)
        return await self._take_turn(asked, emit, approve, replaced=None)

    async def retry(self, emit: Emit = ignore, approve: Approve | None = None) -> Turn:
        """Ask the last question again. Raises NothingToRetry, and what `ask` raises.

        The new answer replaces the first one. A question whose turn failed or was stopped is simply asked: it
        has no answer.
        """
        asked, replaced = self._unanswered, None
        if not asked.text and self.last_turn:
            replaced, trace = self.last_turn, self.last_turn.trace
            about = [one for one in trace.candidates if one.reason.startswith(ATTACHED)]
            asked = _Question(replaced.question, about, trace.foreign, self._images)
            if trace.images and not self._images:
                emit(Notice(IMAGES_NOT_SAVED))
        if not asked.text:
            raise NothingToRetry
        return await self._take_turn(asked, emit, approve, replaced)

    async def _take_turn(
        self,
        asked: _Question,
        emit: Emit,
        approve: Approve | None,
        replaced: Turn | None,
    ) -> Turn:
        from ragchat.turn.generation import Answerer
        from ragchat.turn.turn import take_turn

        asked = replace(asked, text=asked.text.strip())
        if not asked.text:
            raise EmptyQuestion
        self._unanswered = asked
        session = self.session
        history = [turn for turn in session.turns if turn is not replaced]
        if model := await self.model.find():
            await self._await_servers(emit)
        try:
            turn = await take_turn(
                asked.text,
                session_id=session.session_id,
                history=history,
                memory=self.scope,
                answerer=(
                    Answerer(model, self._prompts, self.toolbox, approve, asked.foreign, asked.images)
                    if model
                    else None
                ),
                limits=self._limits,
                emit=emit,
                attached=asked.about,
            )
        except UnknownModel as error:
            raise await with_near_names(error, model) if model else error from error
        await self._add(turn, session, history, emit, replaced)
        self._images = asked.images
        return turn

    async def research(self, question: str, emit: Emit = ignore, approve: Approve | None = None) -> Report:
        """Write a report on a question, from memory and the other servers; it is a turn of the session.

        What was found is kept until then: after a stop or a kill, the same question goes on from there.
        `question` "": the one that was stopped last. Raises RagChatError.
        """
        from ragchat.research.research import Means, Research
        from ragchat.research.state import State, StateFile, last_question, remove_old

        folder, place = self.settings.home.state / "research", self._place
        with suppress(OSError):
            await anyio.to_thread.run_sync(remove_old, folder)
        question = question.strip() or await anyio.to_thread.run_sync(last_question, folder, place)
        if not question:
            raise NothingToResume
        if model := await self.model.find():
            await self._await_servers(emit)
        means = Means(
            self.scope,
            self.toolbox,
            self._prompts,
            self._limits,
            self.settings.table("research", ResearchSettings),
            model,
            approve,
        )
        file = StateFile(folder, question, place)
        state = file.load() or State(question, place)
        session = self.session
        try:
            report = await Research(state, file, means, emit).run(session.session_id)
        except UnknownModel as error:
            raise await with_near_names(error, model) if model else error from error
        await self._add(report.turn, session, session.turns, emit)
        file.remove()
        return report

    @property
    def _place(self) -> str:
        """The documents that are asked."""
        server = self.settings.tables["memory_server"]["url"]
        return f"{server or self.settings.memory_path} {self.scope.name}".strip()

    async def _add(
        self,
        turn: Turn,
        session: Session,
        history: Sequence[Turn],
        emit: Emit,
        replaced: Turn | None = None,
    ) -> None:
        """Add a turn to a session, and save it as `keeps` says."""
        session.turns = [*history, turn]
        session.title = session.title or session_title(turn.question)
        self._unanswered, self._images = _NO_QUESTION, ()
        if self.keeps is Keeps.NOTHING:
            return
        try:
            await self.sessions.save_turn(
                turn,
                replaces=replaced.turn_id if replaced else None,
                one_shot=self.keeps is Keeps.ONE_SHOT,
            )
        except SessionError as error:  # the answer is not withheld because the disk is full
            emit(Notice(f"This turn was not saved. {error}"))


def _new_session() -> Session:
    return Session(secrets.token_hex(6), created_at=utc_now())


def _limits(model: ModelSettings, retrieval: RetrievalSettings, tools: ToolSettings) -> TurnLimits:
    return TurnLimits(
        RetrievalLimits(retrieval.top_k, retrieval.min_score, retrieval.deadline_seconds),
        Budget(model.context_tokens, model.answer_tokens, retrieval.passage_tokens),
        tools.rounds,
        tools.turn_seconds,
        model.turn_seconds,
        retrieval.rewrite_seconds if retrieval.rewrite == "when_weak" else 0.0,
    )
