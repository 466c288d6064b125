"""`ragchat replay`: ask a past question again with other settings or models, and compare the answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ragchat.commands.invocation import Invocation
from ragchat.console import Failure, describe
from ragchat.conversation import SaveMode
from ragchat.errors import RagChatError
from ragchat.evaluation.replaying import Replayed, ask_again, replayed
from ragchat.formatting import listed, seconds
from ragchat.settings import ModelSettings

HEADER = ("", "grounded", "prompt tokens", "answer tokens", "time", "cost", "citations")


async def replay(run: Invocation) -> int:
    """Exit code 1 if a model did not answer; the answers of the others are shown."""
    prices = run.settings.table("model", ModelSettings).prices
    async with run.conversation(SaveMode.NOTHING) as conversation:
        session = await conversation.sessions.load_until(run.arguments.turn or "")
        await conversation.use_notebook_of(session)
        if run.arguments.scope:
            await conversation.scope.narrow(run.arguments.scope)
        then = session.turns[-1]
        before = replayed(then, prices)
        # The first answer would take longer than the others.
        await conversation.warm_up()
        await conversation.memory.query(then.question, 1)
        models, now = run.arguments.models or [conversation.model.selected], []
        failures = list[Failure]()
        for model in models:
            try:
                turn = await ask_again(conversation, session, model, run.note_event)
                now.append(replayed(turn, prices, then))
            except RagChatError as error:
                if len(models) == 1:
                    raise
                found = describe(error)
                failures.append(Failure(found.code, f"{model} did not answer: {found.message}", found.hint))
                run.console.failure(failures[-1])
    rows = [_row("then", before), *(_row("now", one) for one in now)]
    lines = [f"> {then.question}\n", *run.console.aligned(HEADER, rows)]
    for one in now:
        lines += [f"\n{one.model} now:", *(f"  {line}" for line in _differences(one)), f"\n{one.answer}"]
    document = {"turn_id": then.turn_id, "question": then.question, "before": before, "now": now}
    every = " ".join(one.message for one in failures)
    failure = replace(failures[0], message=every) if failures else None
    return run.console.result(document, *lines, failure=failure)


def _row(when: str, one: Replayed) -> tuple[str, ...]:
    return (
        f"{when}: {one.model}",
        "yes" if one.grounded else "no",
        _tokens(one.prompt_tokens, one),
        _tokens(one.answer_tokens, one),
        seconds(one.seconds),
        "-" if one.cost is None else f"{one.cost:.6f}",
        listed(one.citations) or "none",
    )


def _differences(one: Replayed) -> Iterator[str]:
    named = {
        "no longer cited": one.citations_gone,
        "newly cited": one.citations_new,
        "facts that are gone": one.facts_gone,
        "new facts": one.facts_new,
    }
    yield from (f"{name}: {listed(texts)}" for name, texts in named.items() if texts)
    if not any(named.values()):
        yield "the same citations and facts"


def _tokens(count: int, one: Replayed) -> str:
    return f"{'' if one.reported else 'about '}{count:,}" if count else "-"
