"""/good, /bad, /stale: judge the last answer, and list past ones whose documents have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragchat.formatting import local
from ragchat.sanitize import one_line

if TYPE_CHECKING:
    from ragchat.evaluation.cases import Verdict
    from ragchat.ui.context import ChatContext


async def good(context: ChatContext, place: str) -> None:
    await _save(context, "good", place)


async def bad(context: ChatContext, place: str) -> None:
    await _save(context, "bad", place)


async def _save(context: ChatContext, verdict: Verdict, place: str) -> None:
    from ragchat.evaluation.cases import confirmation
    from ragchat.evaluation.store import save_verdict

    case = await save_verdict(context.conversation, context.last_turn.turn_id, verdict, place)
    context.screen.note(confirmation(case))


async def stale(context: ChatContext, _: str) -> None:
    from rich.text import Text

    from ragchat.evaluation.stale import NONE_STALE, stale_turns

    rows = [
        (
            one.session_id,
            local(one.created_at),
            Text.assemble(one_line(one.question), "\n", (one_line(", ".join(one.places)), "notice")),
        )
        async for one in stale_turns(context.conversation.sessions, context.memory)
    ]
    if not context.screen.listing(rows):
        context.screen.note(NONE_STALE)
