"""The conversation behind every front end: interactive, piped, `ask`, `run`.

It holds the current session, the model and the system prompt, and takes one turn for each question. It opens
the model's client and the sessions at first use, so that start-up is fast.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING

import anyio
from msgspec import structs

from ragchat.answer import Candidate
from ragchat.errors import (
    EmptyQuestion,
    NothingToResume,
    NothingToRetry,
    RagChatError,
    SessionError,
    UnknownNotebook,
)
from ragchat.formatting import utc_now
from ragchat.llm import tokens
from ragchat.llm.discovery import with_near_names
from ragchat.llm.errors import UnknownModel
from ragchat.llm.selection import ModelSelection
from ragchat.memory.types import DocumentText
from ragchat.notebooks.definitions import Notebook, folder_of, load
from ragchat.sanitize import one_line
from ragchat.sessions.store import SessionStore, session_title, sessions_path
from ragchat.sessions.types import Session
from ragchat.settings import (
    ModelSettings,
    ResearchSettings,
    RetrievalSettings,
    ServerSettings,
    ToolSettings,
)
from ragchat.turn.approval import Approve
from ragchat.turn.events import Emit, Notice, ignore
from ragchat.turn.limits import Budget, RetrievalLimits, TurnLimits
from ragchat.turn.passages import ATTACHED, attached
from ragchat.turn.past_turns import newest_that_fit, turn_tokens
from ragchat.turn.prompt import Prompts, instructed, load_prompts, load_role
from ragchat.turn.scope import EVERYTHING, Scope
from ragchat.turn.tools import Toolbox
from ragchat.turn.types import Turn
from ragconfig.settings import COMMAND_LINE, Settings

if TYPE_CHECKING:
    from ragchat.llm.client import Model
    from ragchat.memory.client import MemoryClient
    from ragchat.research.research import Report
    from ragchat.servers.manager import ServerManager
    from ragchat.turn.rounds import Stopping


CHOSEN = (
    "{model} answers, the first of {number} chat models of the server. Set model.name to choose another one."
)
IMAGES_NOT_SAVED = (
    "The images of this question are not sent: conversations are saved without them. "
    "To attach them again, type the question."
)
# Seconds after which a script names the servers that it waits for.
NOTICE_AFTER_SECONDS = 1.0


class SaveMode(Enum):
    """How the turns of a `Conversation` are saved."""

    CONVERSATION = "conversation"
    ONE_SHOT = "one shot"  # not offered by /resume
    NOTHING = "nothing"


@dataclass(frozen=True)
class Attached:
    """The attachments of a question: `passages`, which replace a search, and `images` as data URLs.

    `untrusted` names the parts of the question that are not the user's own text. `instructions` are those of
    another program, for a model only.
    """

    passages: Sequence[Candidate] = ()
    images: Sequence[str] = ()
    untrusted: Sequence[str] = ()
    instructions: str = ""

    @classmethod
    def of(cls, documents: Sequence[DocumentText], untrusted: Sequence[str] = ()) -> Attached:
        return cls(attached(documents), [one.image for one in documents if one.image], untrusted)


NO_ATTACHMENTS = Attached()


class Conversation:
    """`model` is the model in use, `session` the current session, `sessions` the store of all.

    `scope` is the part of `memory` that is searched, `save_mode` how turns are saved. `notebook` is the one
    that new sessions belong to, and whose scope, instructions and model are used; None: none. `role` is the
    name of the role in use, "" for none.

    The caller opens and closes `memory` and `servers`; the other servers start once a model is found. With
    `trust_read_only_hints`, tools that any server declares read-only run without asking.
    Raises SettingsError and PromptUnreadable for bad settings.
    """

    def __init__(
        self,
        settings: Settings,
        memory: MemoryClient,
        servers: ServerManager,
        environ: Mapping[str, str] = os.environ,
        *,
        notebook: Notebook | None = None,
        trust_read_only_hints: bool = False,
    ) -> None:
        self.settings = settings
        self.notebook = notebook
        self.memory = memory
        self.scope = Scope(memory)
        self.sessions = SessionStore(sessions_path(settings))
        self.session = _new_session(notebook)
        self.save_mode = SaveMode.CONVERSATION
        model, tools = settings.table("model", ModelSettings), settings.table("tools", ToolSettings)
        self.model = ModelSelection(structs.replace(model, name=self.configured_model), environ)
        self._all_limits = _limits(model, settings.table("retrieval", RetrievalSettings), tools)
        self._prompts = load_prompts(settings)
        self.role = ""
        self.servers = servers
        self.toolbox = Toolbox(
            self.scope,
            tools.offered,
            tools.timeout_seconds,
            servers,
            budget=tools.description_tokens,
            trust_read_only_hints=trust_read_only_hints,
        )
        # The notebook of a session whose file was found to be gone, until the next question says so.
        self._gone = ""
        # The last question and what was attached to it, when its turn failed or was stopped.
        self._unanswered = "", NO_ATTACHMENTS
        # The question of a report that failed or was stopped, if nothing was asked since.
        self.unfinished_report = ""
        # The ids of turns that are not saved.
        self.unsaved: set[str] = set()
        # Stops the answer that is being written.
        self._stopping: Stopping | None = None
        # The images of the last question; turns are saved without them.
        self._images: Sequence[str] = ()

    async def __aenter__(self) -> Conversation:
        if self.notebook is not None:
            await self._narrow(self.notebook)
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.model.aclose()
        finally:
            await self.sessions.aclose()

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

    async def ready_model(self, emit: Emit) -> Model | None:
        """The model, with its other servers; None: offline.

        A script waits for all of them to start; the chat only before it asks the model.
        """
        model = await self.model.find()
        if model is None:
            return None
        if model.others:
            emit(Notice(CHOSEN.format(model=one_line(model.name), number=model.others + 1)))
            model.others = 0
        self._start_servers(emit)
        if self.servers.user is not None:
            return model
        with anyio.move_on_after(NOTICE_AFTER_SECONDS):
            await self.servers.ready()
        if starting := self.servers.starting():
            names = one_line(", ".join(one.name for one in starting))
            limit = self.settings.table("servers", ServerSettings).start_seconds
            emit(Notice(f"Waiting for {names} to start, for at most {limit:g} s."))
        await self.servers.ready()
        return model

    async def use_memory(self, settings: Settings) -> None:
        """Switch to the memory that these settings name. Raises RagChatError."""
        self.memory, self.settings = await self.servers.open_memory(settings), settings
        self.scope.use(self.memory)
        await self.scope.narrow(EVERYTHING)

    # The notebook

    @property
    def notebook_name(self) -> str:
        """The name of the notebook, "" without one."""
        return self.notebook.name if self.notebook else ""

    @property
    def configured_model(self) -> str:
        """The model that is used unless the user selects another one in this conversation."""
        return self._model_of(self.notebook)

    def _model_of(self, notebook: Notebook | None) -> str:
        configured = self.settings.table("model", ModelSettings).name
        if notebook is None or self.settings.origins.get("model.name") == COMMAND_LINE:
            return configured
        return notebook.model or configured

    async def use_notebook(self, notebook: Notebook | None) -> None:
        """Use the scope, instructions and model of a notebook from now on; the session does not change.

        Raises ModelError, SeveralDocumentsMatch.
        """
        if notebook == self.notebook:
            return
        model = self._model_of(notebook)
        with self.scope.unchanged_on_error():
            await self._narrow(notebook)
            if model != self.configured_model:
                await self.model.select(model)
        self.notebook = notebook

    async def _narrow(self, notebook: Notebook | None) -> None:
        self.scope.whole = notebook.scope if notebook else ""
        await self.scope.narrow(EVERYTHING)

    # The prompt

    @property
    def _instructed(self) -> Prompts:
        return instructed(self._prompts, self.notebook.instructions if self.notebook else "")

    @property
    def instructions(self) -> str:
        """What the system role says: the system prompt, the instructions of the notebook, the role."""
        return self._instructed.instructions

    @property
    def system_prompt(self) -> str:
        return self._prompts.system

    @system_prompt.setter
    def system_prompt(self, text: str) -> None:
        self._prompts = replace(self._prompts, system=text)

    def use_role(self, name: str) -> None:
        """Let the text of a role follow the system prompt; "": none. Raises UnknownRole, PromptUnreadable."""
        self._prompts = replace(self._prompts, role=load_role(name, self.settings) if name else "")
        self.role = name

    @property
    def limits(self) -> TurnLimits:
        return self._all_limits.within(self.model.context)

    @property
    def context_tokens(self) -> int:
        """The size of the model's context, in tokens: as set, or as the server says if that is less."""
        return self.limits.budget.context

    @property
    def history_tokens(self) -> int:
        """How many tokens of the context the history takes at most, by the estimate that budgets use."""
        room = self.context_tokens - self.limits.budget.answer - tokens.at_most(self.instructions)
        return sum(map(turn_tokens, newest_that_fit(self.session.turns, room)))

    # The session

    @property
    def last_turn(self) -> Turn | None:
        """The turn that /why and /sources show. Earlier ones have passages only if they are not saved."""
        return self.session.turns[-1] if self.session.turns else None

    @property
    def unanswered(self) -> str:
        """The last question, if it got no answer: it failed, or was stopped before its first word."""
        return self.unfinished_report or self._unanswered[0]

    def more_cards(self, count: int) -> Turn | None:
        """The last turn with `count` more of the cards found for it; None if there are no more of them."""
        turn = self.last_turn
        if turn is None or turn.answer.further is None:
            return None
        self.session.turns[-1] = structs.replace(turn, answer=turn.answer.with_further(count))
        return self.session.turns[-1]

    def new_session(self) -> Session:
        """Start a session. It is stored with its first turn."""
        self._begin(_new_session(self.notebook))
        return self.session

    def _begin(self, session: Session) -> None:
        session.turns[:-1] = self._as_history(session.turns[:-1])
        self.session, self.unfinished_report = session, ""
        self._unanswered, self._images = ("", NO_ATTACHMENTS), ()

    def _as_history(self, turns: Sequence[Turn]) -> list[Turn]:
        """The turns, without the passages that can be read from the store."""
        return [turn if turn.turn_id in self.unsaved else turn.without_passages() for turn in turns]

    async def resume(self, session_id: str | None = None) -> Session:
        """Continue a past session, given by a prefix of its id, in its notebook. Raises RagChatError.

        None: the session used last, apart from the current one, with a notebook the last one of it; a
        one-shot question only in a one-shot run.
        """
        store, here = self.sessions, self.session.session_id
        if session_id is None:
            one_shots = self.save_mode is SaveMode.ONE_SHOT
            session = await store.load_last(here, one_shots=one_shots, notebook=self.notebook_name)
        else:
            session = await store.load(session_id)
        await self.use_notebook_of(session)
        self._begin(session)
        return session

    async def use_notebook_of(self, session: Session) -> None:
        """Use the notebook of a session as its file has it now. Raises RagChatError.

        If the file is gone, the sessions of the notebook become ordinary ones.
        """
        notebook = None
        if session.notebook:
            try:
                notebook = load(folder_of(self.settings), session.notebook)
            except UnknownNotebook:
                await self.sessions.release(session.notebook)
                self._gone, session.notebook = session.notebook, ""
        await self.use_notebook(notebook)

    async def ask(
        self,
        question: str,
        emit: Emit = ignore,
        approve: Approve | None = None,
        attached: Attached = NO_ATTACHMENTS,
        *,
        replaced: Turn | None = None,
    ) -> Turn:
        """Answer a question; `emit` gets the events of the turn. The turn is saved as `save_mode` says.

        It takes the place of the turn `replaced`, if there is one. Raises RagChatError.
        """
        from ragchat.turn.rounds import Answerer
        from ragchat.turn.turn import take_turn

        question = question.strip()
        if not question:
            raise EmptyQuestion
        self._unanswered, self.unfinished_report = (question, attached), ""
        session = self.session
        if self._gone:
            emit(Notice(f"The notebook {self._gone} is gone: all documents are asked."))
            self._gone = ""
        history = [turn for turn in session.turns if turn is not replaced]
        answerer = None
        if model := await self.ready_model(emit):
            answerer = Answerer(
                *(model, self._instructed, self.toolbox, approve),
                *(attached.untrusted, attached.images, attached.instructions),
            )
            self._stopping = answerer.stopping
        elif self.role and not session.turns:
            emit(Notice(f"Without a language model, the role {self.role} has no effect."))
        try:
            async with _suggesting_models(model):
                turn = await take_turn(
                    question,
                    session_id=session.session_id,
                    history=history,
                    memory=self.scope.searched,
                    answerer=answerer,
                    limits=self.limits,
                    emit=emit,
                    attached=attached.passages,
                )
            await self._add(turn, session, history, emit, replaced)
        finally:
            self._stopping = None
        self._images = attached.images
        return turn

    def stop(self) -> bool:
        """Stop the answer that a model is writing: the turn ends with what was written, and is kept.

        Returns False if nothing was.
        """
        return self._stopping is not None and self._stopping.stop()

    async def retry(
        self, emit: Emit = ignore, approve: Approve | None = None, *, answered: bool = False
    ) -> Turn:
        """Ask the last question again. Raises NothingToRetry, and what `ask` raises.

        The new answer replaces the first one, except a report. A question whose turn failed or was stopped is
        simply asked: it has no answer. `answered`: the last one that has an answer.
        """
        question, attached = self._unanswered
        if question and not answered:
            return await self.ask(question, emit, approve, attached)
        if (last := self.last_turn) is None:
            raise NothingToRetry
        if last.trace.images and not self._images:
            emit(Notice(IMAGES_NOT_SAVED))
        passages = [one for one in last.answer.candidates if one.reason.startswith(ATTACHED)]
        attached = Attached(passages, self._images, last.answer.untrusted)
        replaced = None if last.trace.is_report else last
        return await self.ask(last.question, emit, approve, attached, replaced=replaced)

    async def research(self, question: str, emit: Emit = ignore, approve: Approve | None = None) -> Report:
        """Write a report on a question, from memory and the other servers; it is a turn of the session.

        Findings are kept until then: after a stop or a kill, the same question continues from there.
        `question` "": the one that was stopped last. Raises RagChatError.
        """
        from ragchat.research.context import ResearchContext
        from ragchat.research.research import Research
        from ragchat.research.state import ResearchState, StateFile, last_question, remove_old

        folder, documents = self.settings.home.state / "research", self._documents
        with suppress(OSError):
            await anyio.to_thread.run_sync(remove_old, folder)
        question = question.strip() or await anyio.to_thread.run_sync(last_question, folder, documents)
        if not question:
            raise NothingToResume
        self.unfinished_report = question
        model = await self.ready_model(emit)  # It bounds the limits.
        context = ResearchContext(
            self.scope.searched,
            self.toolbox,
            self._instructed,
            self.limits,
            self.settings.table("research", ResearchSettings),
            model,
            approve,
        )
        file = StateFile(folder, question, documents)
        state = file.load() or ResearchState(question, documents)
        session = self.session
        async with _suggesting_models(model):
            report = await Research(state, file, context, emit).run(session.session_id)
        await self._add(report.turn, session, session.turns, emit)
        file.remove()
        return report

    @property
    def _documents(self) -> str:
        """Identifies the documents that are searched: the memory and the scope."""
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
        """Add a turn to a session, and save it as `save_mode` says."""
        session.turns = [*self._as_history(history), turn]
        session.title = session.title or session_title(turn.question)
        self._unanswered, self._images, self.unfinished_report = ("", NO_ATTACHMENTS), (), ""
        self.unsaved.add(turn.turn_id)
        if self.save_mode is SaveMode.NOTHING:
            return
        try:
            await self.sessions.save_turn(
                turn,
                replaces=replaced.turn_id if replaced else None,
                one_shot=self.save_mode is SaveMode.ONE_SHOT,
                notebook=session.notebook,
            )
            self.unsaved.remove(turn.turn_id)
        except SessionError as error:  # the answer is not withheld because the disk is full
            emit(Notice(f"This turn was not saved. {error}"))


@asynccontextmanager
async def _suggesting_models(model: Model | None) -> AsyncIterator[None]:
    """Add similar model names of the server to the error of an unknown model."""
    try:
        yield
    except UnknownModel as error:
        raise await with_near_names(error, model) if model else error from error


def _new_session(notebook: Notebook | None) -> Session:
    return Session(secrets.token_hex(6), created_at=utc_now(), notebook=notebook.name if notebook else "")


def _limits(model: ModelSettings, retrieval: RetrievalSettings, tools: ToolSettings) -> TurnLimits:
    return TurnLimits(
        RetrievalLimits(retrieval.top_k, retrieval.min_score, retrieval.deadline_seconds),
        Budget.of(model.context_tokens, model.answer_tokens, retrieval.passage_tokens),
        tools.rounds,
        tools.turn_seconds,
        model.turn_seconds,
        retrieval.rewrite_seconds if retrieval.rewrite == "when_weak" else 0.0,
    )
