"""The state of a running chat, at a terminal or on a pipe: the conversation, its memory, the screen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ragchat.sanitize import one_line

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer

    from ragchat.conversation import Conversation
    from ragchat.memory.client import MemoryClient
    from ragchat.turn.approval import Approve
    from ragchat.turn.events import Emit
    from ragchat.turn.types import Turn
    from ragchat.ui.prompt.toolbar import Status
    from ragchat.ui.render.answer import AnswerView
    from ragchat.ui.render.screen import Screen

# Replies that confirm.
YES = frozenset({"y", "yes"})


def no_background(_: Coroutine[Any, Any, None]) -> None:
    raise RuntimeError("work in the background needs a terminal")


@dataclass
class ChatContext:
    """`readme_offered`: "y" loads the README while memory is empty. `leaving`: this message is the last."""

    conversation: Conversation
    screen: Screen
    status: Status
    interactive: bool = False
    approve: Approve | None = None
    # Ask the user to confirm something. Like `read` it is None without a terminal.
    confirm: Callable[[str], Awaitable[bool]] | None = None
    # Read a value with completion; it returns None where the user cancels.
    read: Callable[[str, Completer], Awaitable[str | None]] | None = None
    # Start work that ends with the chat at the latest, and print its output above the prompt.
    in_background: Callable[[Coroutine[Any, Any, None]], None] = no_background
    above_prompt: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    refresh: Callable[[], None] = lambda: None  # update the toolbar in the background
    indexing: list[str] = field(default_factory=list)  # the paths that /index is loading
    readme_offered: bool = False
    leaving: bool = False
    shows_reasoning: bool = False
    failures: int = field(default=0, init=False)
    first_system_prompt: str = field(init=False)
    _view: AnswerView | None = field(default=None, init=False)
    # How many cards of the last answer are on the screen, by the id of its turn.
    _shown_cards: dict[str, int] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.first_system_prompt = self.conversation.system_prompt

    @property
    def memory(self) -> MemoryClient:
        """The conversation's memory."""
        return self.conversation.memory

    @property
    def last_turn(self) -> Turn:
        """The last turn, for the commands that the table allows only then."""
        turn = self.conversation.last_turn
        assert turn is not None
        return turn

    async def answer(self, take_turn: Callable[[Emit], Awaitable[Turn]]) -> None:
        """Take a turn and show it. Raises what the turn raises."""
        from ragchat.ui.render.answer import AnswerView

        self._view = AnswerView(self.screen, shows_reasoning=self.shows_reasoning, in_chat=True)
        turn = await self._view.show(take_turn)
        self._shown_cards = {turn.turn_id: self._view.shown}
        self.update_session_status()
        if self._view.has_called_tools:  # they may have written to memory
            self.refresh()

    async def await_server(self, is_meant: Callable[[str], bool]) -> None:
        """Wait for the server of that name to start, and say so. Without a model, none is started.

        Raises ModelError, and as `ServerManager.start`.
        """

        if await self.conversation.model.find() is None:
            return
        # The first message may come before the chat has warmed up.
        if not self.conversation.servers.connections:
            self.conversation.servers.start()
        if starting := [one.name for one in self.conversation.servers.starting() if is_meant(one.name)]:
            self.screen.note(f"Waiting for {one_line(', '.join(starting))} to start.")
            await self.conversation.servers.wait_started(is_meant)

    @property
    def reasoning(self) -> str:
        """What the model thought before its last answer, "" if it did not say."""
        return self._view.reasoning if self._view is not None else ""

    def show_more(self) -> bool:
        """Show the next cards of the last answer, or all of its only one; False if there are none."""
        from ragchat.highlight import Highlight
        from ragchat.offline.windows import SHOWN
        from ragchat.ui.render.cards import show_cards

        turn = self.conversation.last_turn
        if turn is None:
            return False
        shown = self._shown_cards.get(turn.turn_id, len(turn.answer.cards))
        if shown >= len(turn.answer.cards):
            turn = self.conversation.more_cards(SHOWN) or turn
        next_ones = turn.answer.cards[shown : shown + SHOWN]
        highlight = Highlight(turn.trace.query)
        more, _ = show_cards(self.screen, next_ones, turn.answer, highlight, is_whole=not shown)
        self._shown_cards = {turn.turn_id: shown + more}
        return bool(next_ones)

    def show_progress(self, text: str) -> None:
        """Show the current step of the answer that the user waits for."""
        if self._view is not None:
            self._view.show_progress(text)

    def held(self) -> AbstractContextManager[None]:
        """Draw nothing while the block runs, so that the user can be asked."""
        return self._view.held() if self._view is not None else nullcontext()

    def update_session_status(self) -> None:
        """Update the session, the model and the scope in the toolbar."""
        conversation, status = self.conversation, self.status
        status.model = conversation.model.name
        status.notebook, scope = conversation.notebook_name, conversation.scope
        status.scope = "" if scope.name == scope.whole else scope.name or "all documents"
        turns = conversation.session.turns
        status.tokens = sum(sum(turn.answer.usage.best) for turn in turns)
        status.tokens_reported = all(turn.answer.usage.is_reported for turn in turns)
        status.history = conversation.history_tokens / conversation.context_tokens
        status.left_out = turns[-1].answer.dropped_turns if turns else 0

    async def update_memory_status(self) -> None:
        """Update memory in the toolbar. Raises RagChatError."""
        stats = await self.memory.stats()
        self.status.documents, self.status.chunks = stats.documents, stats.chunks
