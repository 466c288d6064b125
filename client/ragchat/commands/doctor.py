"""`ragchat doctor`: check everything; exit code 1 on a fault."""

from __future__ import annotations

from ragchat.commands import Run
from ragchat.doctor import Check, examine


async def doctor(run: Run) -> int:
    checks = []
    async for check in examine(run.settings, run.config_file):
        checks.append(check)
        if not run.console.json:
            show(run, check)
    if run.console.json:
        run.console.document({"checks": checks})
    return 1 if any(check.status == "fault" for check in checks) else 0


def show(run: Run, check: Check) -> None:
    run.console.print(f"{check.status:<7}  {check.name:<13}  {check.detail}")
    if check.hint:
        run.console.print(f"{'':<24}{check.hint}")
