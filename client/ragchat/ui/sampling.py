"""Let a server use the model: the user allows each request, and sees the reply before it is sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ragchat.llm.client import Model
from ragchat.sanitize import one_line
from ragchat.servers.permissions import Permissions
from ragchat.servers.sampling import ModelRequest
from ragchat.ui.dialog import Dialog, choose
from ragmcp.protocol.schema.input import Sample, SamplingResult

CHOICES = "[y]es, [s]ession, ne[v]er, [N]o"
SENDING = "[Y]es, [n]o"
# Characters of each message that are shown.
MAX_SHOWN = 2_000


@dataclass(eq=False)
class Sampling:
    """`find_model` gives the model in use, None without one; `show` prints a line."""

    _dialog: Dialog
    _permissions: Permissions
    _find_model: Callable[[], Awaitable[Model | None]]
    _show: Callable[..., None]

    async def answer(self, server: str, request: Sample) -> SamplingResult:
        """The model's reply, if the user allows the request. Raises InputDeclined."""
        asked = await ModelRequest.of(server, request, self._permissions, self._find_model)
        async with self._dialog.exclusive() as read:
            self._show(
                f"{server} wants to ask {asked.model.name}, for at most {asked.max_tokens:,} tokens:", "name"
            )
            for message in asked.messages:
                self._show(f"  {message['role']}: {_shown(message['content'])}")
            if not asked.is_allowed:
                choice = await choose(read, self._show, "Let it ask?", CHOICES)
                asked.decide("once" if choice == "yes" else choice or "no")
            completion = await asked.complete()
            self._show(f"{asked.model.name} replied:\n{_shown(completion.text)}")
            may_send = (
                asked.is_allowed
                or await choose(read, self._show, f"Send this to {one_line(server)}?", SENDING) == "yes"
            )
        return asked.result(completion, may_send=may_send)


def _shown(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… ({len(text):,} characters)"
