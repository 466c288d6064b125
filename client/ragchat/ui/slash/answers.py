"""/research, /more, /sources, /why, /reasoning, /retry, /copy, /good, /bad, /stale.

A report; the last answer and the user's verdict on it; past answers whose documents have changed.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ragchat.errors import ArgumentMissing, CommandNotPossible, UnexpectedArgument
from ragchat.formatting import local
from ragchat.sanitize import one_line

if TYPE_CHECKING:
    from ragchat.evaluation.cases import Verdict
    from ragchat.turn.events import Emit
    from ragchat.turn.types import Turn
    from ragchat.ui.context import ChatContext

# On a narrower screen, and for a screen reader, /why prints a reason below its place, not beside it.
_WHY_COLUMNS = 60


async def research(context: ChatContext, question: str) -> None:
    """Write a report, and store it in memory if the user wants that."""
    if not question:
        raise ArgumentMissing("research", "a question")

    async def report(emit: Emit) -> Turn:
        return (await context.conversation.research(question, emit, context.approve)).turn

    await context.answer(report)
    if context.confirm is None or not context.last_turn.answer.citations:
        return
    if await context.confirm("Store the report in memory?"):
        from ragchat.ingest.loading import load_text
        from ragchat.sessions.document import report_as_document

        stored = await load_text(context.memory, *report_as_document(context.last_turn))
        context.screen.note(stored.error or f"Stored as {stored.uri}. /undo removes it.")
        await context.update_memory_status()


async def show_sources(context: ChatContext, argument: str) -> None:
    """Show the cited passages, or passage N, in full."""
    from ragchat.ui.render.sources import passage

    turn = context.last_turn
    cited: dict[int, set[int]] = {}
    for citation in turn.answer.sources:
        cited.setdefault(citation.chunk_id, set()).add(citation.n)
    shown = []
    for candidate in turn.answer.candidates:
        own = cited.get(candidate.hit.chunk_id, set())
        numbers = sorted({candidate.n, *own} - {0})
        if argument.strip("[]") in map(str, numbers) if argument else own:
            shown.append((candidate.hit, numbers))
    if not shown:
        missing = (
            f"the last answer has no passage {argument}" if argument else "the last answer cites nothing"
        )
        raise CommandNotPossible("sources", missing)
    for index, (hit, numbers) in enumerate(sorted(shown, key=lambda pair: pair[1])):
        context.screen.show(*([""] if index else []), *passage(hit, numbers))


async def show_more(context: ChatContext, _: str) -> None:
    """Show the next cards of the last answer."""
    if not context.show_more():
        raise CommandNotPossible("more", "the last answer has no further cards")


async def show_why(context: ChatContext, _: str) -> None:
    from ragchat.ui.render.why import why

    out = context.screen.out
    is_narrow = out.width < _WHY_COLUMNS or out.is_dumb_terminal
    context.screen.show(*why(context.last_turn, is_narrow=is_narrow))


async def reasoning(context: ChatContext, argument: str) -> None:
    """Show the reasoning behind the last answer, or switch whether it is shown as it arrives."""
    if argument in ("on", "off"):
        context.shows_reasoning = argument == "on"
        context.screen.note(
            f"The reasoning of the model is {'' if argument == 'on' else 'not '}shown from now on."
        )
    elif argument:
        raise UnexpectedArgument("reasoning", "on, off or nothing")
    elif not context.reasoning.strip():
        raise CommandNotPossible("reasoning", "no reasoning came with the last answer")
    else:
        context.screen.show(context.reasoning.strip())


async def retry(context: ChatContext, _: str) -> None:
    """Ask the last question again, or go on with its report."""
    if question := context.conversation.unfinished_report:
        await research(context, question)
    else:
        await context.answer(partial(context.conversation.retry, approve=context.approve))


async def copy(context: ChatContext, _: str) -> None:
    from ragchat.ui import clipboard

    method = await clipboard.copy(context.last_turn.answer.text, context.screen.out)
    context.screen.note(f"Copied the answer to the clipboard with {method}.")


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
