"""The interactive chat. The prompt is drawn first; everything else is loaded while the user types."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from prompt_toolkit.application import create_app_session, get_app_or_none
from prompt_toolkit.utils import is_dumb_terminal

from ragchat.sanitize import one_line
from ragchat.ui.chat.background import Background, OpenConversation
from ragchat.ui.dialog import Dialog
from ragchat.ui.interrupt import Interrupts, kill_servers_on_interrupt
from ragchat.ui.prompt.session import above_prompt, make_prompt
from ragchat.ui.prompt.toolbar import Status
from ragchat.ui.prompt.type_ahead import echo_disabled, echo_disabled_again, mark_pastes
from ragchat.ui.slash.completer import SlashCompleter

if TYPE_CHECKING:
    from ragchat.conversation import Conversation
    from ragchat.ui.context import ChatContext

# If servers take longer to end, the user sees their names.
NOTICE_AFTER_SECONDS = 0.5


async def run(state: Path, open_conversation: OpenConversation) -> int:
    """Chat at the terminal until the user leaves; returns the exit code.

    `state` is the folder of the history. `open_conversation` is entered after the prompt is drawn.
    Raises what entering it raises.
    """
    with _session_of_terminal():
        await Chat(state, open_conversation).run()
    return 0


def _session_of_terminal() -> AbstractContextManager[object]:
    """Plain output on a dumb terminal, which would show even the sequence that makes the cursor visible."""
    if not is_dumb_terminal():
        return nullcontext()
    from prompt_toolkit.output.plain_text import PlainTextOutput

    return create_app_session(output=PlainTextOutput(sys.stdout))


class Chat:
    """The loop: read a message, handle it, read the next."""

    def __init__(
        self,
        state: Path,
        open_conversation: OpenConversation,
        *,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
    ) -> None:
        self._state = state
        self._stdout = stdout or sys.stdout
        self._stderr = stderr or sys.stderr
        self._status = Status()
        self._interrupts = Interrupts(self._stop)
        self._dialog: Dialog | None = None
        self._handling = asyncio.Lock()
        self._background = Background(
            open_conversation, self._make_context, partial(above_prompt, self._stdout)
        )
        completer = SlashCompleter(lambda: self._background.context)
        self.prompt = make_prompt(self._state, self._status, completer, self._stdout)

    async def run(self) -> None:
        # The task starts when the prompt waits for a key, and so after the prompt is drawn.
        opening = asyncio.create_task(self._background.stay_open())
        opening.add_done_callback(self._end_prompt)
        try:
            with echo_disabled(), self._interrupts:
                while (text := await self._read()) is not None:
                    mark_pastes()
                    # Not at the prompt, where an editor may have the terminal.
                    with echo_disabled_again():
                        await self._handle(text)
                    if opening.done() or self._is_leaving():
                        break
        finally:
            mark_pastes(on=False)
            await self._close(opening)

    async def _close(self, opening: asyncio.Task[None]) -> None:
        """Stop everything. If a server takes long to end, the user sees which, and Ctrl-C ends it."""
        self._background.close()
        notice = asyncio.get_running_loop().call_later(NOTICE_AFTER_SECONDS, self._show_running)
        try:
            with kill_servers_on_interrupt():
                await opening
        finally:
            notice.cancel()

    def _show_running(self) -> None:
        context = self._background.context
        if context is not None and context.conversation.servers.running:
            names = one_line(", ".join(context.conversation.servers.running))
            context.screen.note(f"Waiting for {names} to end. Ctrl-C ends it at once.")

    async def _read(self) -> str | None:
        """The next message; None when the user leaves."""
        if self._dialog is not None:  # A server may be asking the user since the last answer.
            await self._dialog.finished()
        with suppress(EOFError):
            return await self.prompt.prompt_async()
        return None

    async def _handle(self, text: str) -> None:
        async with self._handling:
            finished = await self._interrupts.run(self._background.handle(text))
            if (context := self._background.context) is not None:
                if not finished:
                    context.screen.note("(stopped)")
                    self._background.refresh()
                context.screen.show("")

    def _stop(self) -> bool:
        context = self._background.context
        return context is not None and context.conversation.stop()

    def _is_leaving(self) -> bool:
        context = self._background.context
        return context is not None and context.leaving

    def _make_context(self, conversation: Conversation) -> ChatContext:
        from ragchat.servers.asking import User
        from ragchat.ui.approval import Approvals
        from ragchat.ui.context import YES, ChatContext
        from ragchat.ui.elicitation import Elicitation
        from ragchat.ui.render.screen import Screen
        from ragchat.ui.sampling import Sampling

        context = ChatContext(
            conversation, Screen.open(self._stdout, self._stderr), self._status, interactive=True
        )
        show = context.screen.note
        self._dialog = dialog = Dialog(context.held)

        async def confirm(question: str) -> bool:
            return (await dialog.read(f"{question} [y/N] ") or "").strip().lower() in YES

        context.confirm, context.read = confirm, dialog.read
        context.in_background, context.above_prompt = self._background.start, self._between_messages
        context.refresh = self._background.refresh
        permissions = conversation.servers.permissions
        width, stop = lambda: context.screen.err.width, self._interrupts.interrupt
        approvals = Approvals(permissions, dialog, show, width, stop)
        context.approve = approvals.approve
        sampling = Sampling(dialog, permissions, conversation.model.find, show)
        elicitation = Elicitation(dialog, show)
        conversation.servers.user = User(
            elicitation.answer, elicitation.visit, sampling.answer, context.show_progress
        )
        return context

    @asynccontextmanager
    async def _between_messages(self) -> AsyncIterator[None]:
        """Print above the prompt, once no message is being handled."""
        async with self._handling, above_prompt(self._stdout):
            yield

    def _end_prompt(self, _: asyncio.Task[None]) -> None:
        """Opening failed or ended: leave the prompt."""
        # The running application, because on a dumb terminal it is not the prompt's own.
        if (app := get_app_or_none()) is not None and app.is_running:
            app.exit(exception=EOFError)
