"""`ragchat eval` and `ragchat case`: ask saved questions again; list and remove them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio

from ragchat.commands.invocation import Invocation
from ragchat.commands.removal import remove_each
from ragchat.console import Failure, describe
from ragchat.conversation import Conversation
from ragchat.errors import SessionsUnavailable, UnknownCase
from ragchat.evaluation.cases import Case, cases_of_script
from ragchat.evaluation.judging import Outcome
from ragchat.evaluation.runs import run_cases, sentence
from ragchat.evaluation.store import EvaluationStore
from ragchat.formatting import local
from ragchat.sanitize import one_line
from ragchat.scripts.script import load_script
from ragchat.sessions.store import sessions_path
from ragcommon.text.rules import counted

NO_CASES = "There are no cases yet: /good and /bad in the chat save the last answer as one."
MARKS = {True: "yes", False: "no", None: "-"}


async def evaluate(run: Invocation) -> int:
    """Exit code 1 if a case is worse than before or could not be asked, or the run cannot be saved."""
    script, questions = "", list[Case]()
    if run.arguments.set:
        path = Path(await anyio.Path(run.arguments.set).resolve())
        script, loaded = str(path), load_script(path)
        questions = cases_of_script(loaded, path)
        changed = loaded.script.overrides(path.parent, names_memory=not run.names_memory)
        run = replace(run, overrides=changed)
    settings = run.settings
    async with EvaluationStore(sessions_path(settings)) as store:
        cases = questions if script else await store.cases()
        if not cases and not run.console.json:
            run.console.note(NO_CASES)
            return 0
        last = await store.last_run(script)
        async with run.servers(only_memory=True) as servers:
            memory = await servers.open_memory(settings)
            async with Conversation(settings, memory, servers) as conversation:
                if not run.console.json:
                    run.console.print("right  screen  prompt  declined   seconds  question")
                outcomes: list[Outcome] = []

                def on_outcome(one: Outcome) -> None:
                    outcomes.append(one)
                    _show(run, one)

                try:
                    done = await run_cases(conversation, cases, script, last, on_outcome)
                except anyio.get_cancelled_exc_class():
                    if run.console.json and outcomes:
                        run.console.document({"cases": outcomes}, Failure("STOPPED", "Stopped."))
                    raise
        if not done.conditions.documents:
            run.console.note(f"The memory {done.conditions.memory} is empty.")
        failure: Failure | None = None
        try:
            if cases:
                await store.save_run(done)
        except SessionsUnavailable as error:
            found = describe(error)
            failure = Failure(found.code, f"This run was not saved. {found.message}", found.hint)
            run.console.failure(failure)
    if done.worse:
        failure = Failure("CASES_WORSE", f"{counted(len(done.worse), 'case')} became worse.")
    elif failed := done.count("failed"):
        failure = Failure("CASES_NOT_ASKED", f"{counted(failed, 'case')} could not be asked.")
    lines = ("", *map(sentence, done.changes), *done.summary())
    return run.console.result(done.public(), *lines, failure=failure)


def _show(run: Invocation, outcome: Outcome) -> None:
    if run.console.json:
        return
    right, screen, prompt = MARKS[outcome.right], MARKS[outcome.screen], MARKS[outcome.prompt]
    declined = MARKS[outcome.declined]
    run.console.line(
        f"{right:<6} {screen:<7} {prompt:<7} {declined:<8} {outcome.seconds:>7.2f} s  "
        + one_line(outcome.question)
    )
    if outcome.right is not True:
        for line in (*outcome.failures, *(f"! {notice}" for notice in outcome.notices)):
            run.console.line(f"       {one_line(line)}")


async def ls(run: Invocation) -> None:
    async with EvaluationStore(sessions_path(run.settings)) as store:
        cases = await store.cases()
    rows = [(one.case_id, one.verdict, local(one.created_at), one.wanted, one.question) for one in cases]
    header = ("case", "verdict", "judged", "right place", "question")
    run.console.listing({"cases": cases}, header, rows, NO_CASES)


async def rm(run: Invocation) -> int:
    def removed(case: Case) -> str:
        return f"Removed the case {case.case_id}: {one_line(case.question)}"

    async with EvaluationStore(sessions_path(run.settings)) as store:
        return await remove_each(
            run,
            run.arguments.case_ids,
            store.remove_case,
            kind="case_id",
            expected=(UnknownCase,),
            sentence=removed,
        )
