"""`ragchat run SCRIPT`: run a scripted session and check each step."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio

from ragchat.commands.invocation import Invocation
from ragchat.console import Failure
from ragchat.conversation import Conversation
from ragchat.sanitize import one_line
from ragchat.scripts.runner import ScriptReport, StepReport, run_script
from ragchat.scripts.script import FRESH, load_script
from ragchat.settings import temporary_memory
from ragcommon.text.rules import counted

# So much of the answer is shown if a step fails.
MAX_SHOWN_LINES = 20


async def run(run: Invocation) -> int:
    """Exit code 1 if a step fails. A script has its own sessions, and its own memory unless it names one."""
    path = Path(run.arguments.script)
    script = load_script(path)
    report = ScriptReport(script.script.name)
    with tempfile.TemporaryDirectory(prefix="ragchat-run-", ignore_cleanup_errors=True) as own:
        names_memory = not run.names_memory
        is_fresh = script.script.memory == FRESH and names_memory
        changed = {
            "sessions.path": str(Path(own) / "sessions.db"),
            **script.script.overrides(path.parent, names_memory=names_memory),
        }
        if is_fresh:
            changed |= temporary_memory(Path(own) / "memory.db")
        own_run = replace(run, overrides=changed)
        settings = own_run.settings
        with nullcontext() if is_fresh else own_run.noting_a_missing_memory():
            async with own_run.servers(only_memory=True) as servers:
                memory = await servers.open_memory(settings)
                on_step = None if run.console.json else partial(show, run)
                async with Conversation(settings, memory, servers) as conversation:
                    try:
                        await run_script(script, path.parent, conversation, memory, on_step, report)
                    except anyio.get_cancelled_exc_class():
                        if run.console.json and report.steps:
                            run.console.document(report.public(), Failure("STOPPED", "Stopped."))
                        raise
    failed = not all(step.passed for step in report.steps)
    failure = Failure("STEPS_FAILED", summary(report)) if failed else None
    return run.console.result(report.public(), summary(report), failure=failure)


def show(run: Invocation, step: StepReport) -> None:
    """Print a step's line of the table as soon as it is done; below it its failures and what it answered."""
    verdict = "ok" if step.passed else "FAILED"
    title = one_line(step.title)
    run.console.line(f"{step.step:>3}  {verdict:<6}  {step.seconds:>7.2f} s  {step.kind:<6}  {title}")
    for failure in step.failures:
        run.console.print(f"       {failure}")
    if step.failures:
        for notice in step.notices:
            run.console.print(f"       ! {notice}")
        for line in shown_lines(step.text):
            run.console.print(f"       | {line}".rstrip())


def shown_lines(text: str) -> list[str]:
    """The lines of an answer that are shown; of a long one the first."""
    lines = text.strip().splitlines()
    if len(lines) <= MAX_SHOWN_LINES:
        return lines
    return [
        *lines[:MAX_SHOWN_LINES],
        f"… {counted(len(lines) - MAX_SHOWN_LINES, 'more line')}; --json has them all",
    ]


def summary(report: ScriptReport) -> str:
    passed = sum(step.passed for step in report.steps)
    name = f"{report.name}: " if report.name else ""
    return f"{name}{passed} of {counted(len(report.steps), 'step')} passed."
