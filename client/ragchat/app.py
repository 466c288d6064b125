"""The one object that every front end uses: interactive, piped, `ask`, `run`.

It holds the current session, the model in use and the system prompt, and hands each question to a turn.
Entering it costs nothing: the model's client and the sessions are opened when first needed.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from types import TracebackType

import anyio

from ragchat.errors import EmptyQuestion, NothingToRetry, SessionError, UnknownModel
from ragchat.formatting import utc_now
from ragchat.llm import tokens
from ragchat.llm.client import Model
from ragchat.llm.discovery import AUTO, names_beside, resolve, with_near_names
from ragchat.sessions.store import SessionStore, sessions_path
from ragchat.settings import ModelSettings, RetrievalSettings, ToolSettings
from ragchat.turn.conversation import newest_that_fit, turn_tokens
from ragchat.turn.limits import Budget, RetrievalLimits, TurnLimits
from ragchat.turn.prompt import load_prompts
from ragchat.turn.retrieval import Memory
from ragchat.turn.tools import Approve, Toolbox
from ragchat.types import OFFLINE, Emit, Notice, Session, Turn, ignore
from ragconfig.settings import Settings


class App:
    """A conversation in progress.

    `--model M`, `--offline` and `-k N` are the flags {"model.name": M}, {"model.name": "offline"} and
    {"retrieval.top_k": N} of the settings. The memory is the caller's: it is entered and left outside.
    Raises SettingsError and PromptUnreadable for settings that cannot be used.
    """

    def __init__(self, settings: Settings, memory: Memory, environ: Mapping[str, str] = os.environ) -> None:
        self.settings = settings
        self.memory = memory
        self._environ = environ
        self._model_settings = settings.table("model", ModelSettings)
        self._retrieval = settings.table("retrieval", RetrievalSettings)
        self._tools = settings.table("tools", ToolSettings)
        self._prompts = load_prompts(settings)
        self._toolbox = Toolbox(memory, self._tools.offered, self._tools.timeout_seconds)
        self._wanted = self._model_settings.name
        self._model: Model | None = None
        self._resolved = False
        self._resolving = anyio.Lock()
        self.sessions = SessionStore(sessions_path(settings))
        self.session = _new_session()
        self._unanswered = ""  # the last question, when its turn failed or was stopped

    async def __aenter__(self) -> App:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._model is not None:
            await self._model.aclose()
        await self.sessions.__aexit__(kind, error, trace)

    # The model

    @property
    def model_name(self) -> str:
        """The model in use; "auto" until it is known which one that is."""
        if not self._resolved:
            return self._wanted
        return self._model.name if self._model else OFFLINE

    async def warm_up(self) -> None:
        """Load what a turn needs, find the model and load its client, for the time in which the user types.

        Raises ModelError when the configured model cannot be had; the next question raises it again.
        """
        await anyio.to_thread.run_sync(import_module, "ragchat.turn.turn")
        if model := await self._find_model():
            await model.load()

    async def set_model(self, name: str) -> None:
        """Change the model: "auto", "offline", a name. Raises ModelError, and then nothing has changed."""
        model = await resolve(name, self._model_settings, self._environ)
        if model is not None and name != AUTO:
            names = await model.names()
            if names and model.name not in names:
                error = await with_near_names(UnknownModel(name, model.place.base_url), model)
                await model.aclose()
                raise error
        previous, self._model = self._model, model
        self._wanted, self._resolved = name, True
        if previous is not None:
            await previous.aclose()

    async def models(self) -> list[str]:
        """The names that `set_model` takes here, "offline" and "auto" last. Raises ModelError."""
        model = await self._find_model()
        return [*(await names_beside(model) if model else []), AUTO, OFFLINE]

    async def _find_model(self) -> Model | None:
        if not self._resolved:
            async with self._resolving:
                if not self._resolved:
                    found = await resolve(self._wanted, self._model_settings, self._environ)
                    await self._settle_on(found)
        return self._model

    async def _settle_on(self, found: Model | None) -> None:
        """`found` is the model, unless the user chose another one while it was looked for."""
        if not self._resolved:
            self._model, self._resolved = found, True
        elif found is not None:
            await found.aclose()

    # What the model is told

    @property
    def system_prompt(self) -> str:
        """What the model is told first; it may be set."""
        return self._prompts.system

    @system_prompt.setter
    def system_prompt(self, text: str) -> None:
        self._prompts = replace(self._prompts, system=text)

    @property
    def context_tokens(self) -> int:
        """What the model can hold, in tokens."""
        return self._model_settings.context_tokens

    @property
    def used_tokens(self) -> int:
        """How many of them the system prompt and the history take, by the estimate that budgets go by."""
        system = tokens.at_most(self._prompts.system)
        room = self.context_tokens - self._model_settings.answer_tokens - system
        return system + sum(map(turn_tokens, newest_that_fit(self.session.turns, room)))

    # The session

    @property
    def last_turn(self) -> Turn | None:
        """The turn that /why and /sources are about."""
        return self.session.turns[-1] if self.session.turns else None

    def new_session(self) -> Session:
        """Begin another conversation; it stands in the store once it has a turn."""
        self.session, self._unanswered = _new_session(), ""
        return self.session

    async def resume(self, session_id: str | None = None) -> Session:
        """Go on with a past session, by the beginning of its id; None: the last. Raises SessionError.

        The last is another one than this.
        """
        store, here = self.sessions, self.session.session_id
        self.session = await (store.load_last(but=here) if session_id is None else store.load(session_id))
        self._unanswered = ""
        return self.session

    async def ask(self, question: str, emit: Emit = ignore, approve: Approve | None = None) -> Turn:
        """Answer a question; `emit` gets the events of the turn. The turn is saved. Raises RagChatError."""
        return await self._take_turn(question, emit, approve, replaced=None)

    async def retry(self, emit: Emit = ignore, approve: Approve | None = None) -> Turn:
        """Ask the last question again. Raises NothingToRetry, and what `ask` raises.

        An answered question gets another answer in place of the first; one whose turn failed or was stopped
        is asked as if for the first time.
        """
        question, replaced = self._unanswered, None
        if not question and self.last_turn:
            question, replaced = self.last_turn.question, self.last_turn
        if not question:
            raise NothingToRetry
        return await self._take_turn(question, emit, approve, replaced)

    async def _take_turn(
        self, question: str, emit: Emit, approve: Approve | None, replaced: Turn | None
    ) -> Turn:
        from ragchat.turn.generation import Answerer
        from ragchat.turn.turn import take_turn

        question = question.strip()
        if not question:
            raise EmptyQuestion
        self._unanswered = question
        session = self.session
        history = [turn for turn in session.turns if turn is not replaced]
        model = await self._find_model()
        try:
            turn = await take_turn(
                question,
                session_id=session.session_id,
                history=history,
                memory=self.memory,
                answerer=Answerer(model, self._prompts, self._toolbox, approve) if model else None,
                limits=self._limits(),
                emit=emit,
            )
        except UnknownModel as error:
            raise await with_near_names(error, model) if model else error from error
        session.turns = [*history, turn]
        session.title = session.title or turn.question
        self._unanswered = ""
        try:
            await self.sessions.save_turn(turn, replaces=replaced.turn_id if replaced else None)
        except SessionError as error:  # the answer is not withheld because the disk is full
            emit(Notice(f"This turn was not saved. {error}"))
        return turn

    def _limits(self) -> TurnLimits:
        model, retrieval = self._model_settings, self._retrieval
        return TurnLimits(
            RetrievalLimits(retrieval.top_k, retrieval.min_score, retrieval.deadline_seconds),
            Budget(model.context_tokens, model.answer_tokens, retrieval.passage_tokens),
            self._tools.rounds,
        )


def _new_session() -> Session:
    return Session(secrets.token_hex(6), created_at=utc_now())
