"""`ragchat run SCRIPT`: run a scripted session and check each step."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

from ragchat.app import App
from ragchat.commands import Run
from ragchat.scripts.runner import ScriptReport, StepReport, run_script
from ragchat.scripts.script import FRESH, Header, load_script


async def run(run: Run) -> int:
    """Exit code 1 if a step fails. A script has its own sessions, and its own memory unless it names one."""
    path = Path(run.arguments.script)
    script = load_script(path)
    with tempfile.TemporaryDirectory(prefix="ragchat-run-", ignore_cleanup_errors=True) as own:
        own_run = replace(run, overrides=overrides(script.script, path.parent, Path(own)))
        async with own_run.memory() as memory, App(own_run.settings, memory) as app:
            on_step = None if run.console.json else partial(show, run)
            report = await run_script(script, path.parent, app, memory, on_step)
    if run.console.json:
        run.console.document(report.public())
    else:
        run.console.print(summary(report))
    return 0 if all(step.passed for step in report.steps) else 1


def overrides(header: Header, folder: Path, own: Path) -> dict[str, str]:
    """The settings that the script's header makes; `own` is the folder of a fresh memory and the sessions."""
    memory = own / "memory.db" if header.memory == FRESH else folder / header.memory
    flags = {"sessions.path": str(own / "sessions.db"), "memory.path": str(memory.absolute())}
    return {**flags, "model.name": header.model} if header.model else flags


def show(run: Run, step: StepReport) -> None:
    """Print a step's line of the table as soon as it is done, and its failures below it."""
    verdict = "ok" if step.passed else "FAILED"
    run.console.line(f"{step.step:>3}  {verdict:<6}  {step.seconds:>7.2f} s  {step.kind:<6}  {step.title}")
    for failure in step.failures:
        run.console.print(f"       {failure}")


def summary(report: ScriptReport) -> str:
    passed = sum(step.passed for step in report.steps)
    name = f"{report.name}: " if report.name else ""
    return f"{name}{passed} of {len(report.steps)} steps passed."
