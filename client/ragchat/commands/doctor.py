"""`ragchat doctor`: print the checks of everything that ragchat needs."""

from __future__ import annotations

import shutil
import sys
from collections.abc import AsyncIterator, Sequence

from ragchat.commands.invocation import Invocation
from ragchat.console import Failure, is_styled, is_unicode
from ragchat.setup.checks import Check, examine


async def doctor(run: Invocation) -> int:
    """Exit code 1 on a fault."""
    checks = []
    async for check in _all(run):
        checks.append(check)
        if not run.console.json:
            _show(run, check)
    return run.console.result({"checks": checks}, failure=_first_fault(checks))


async def _all(run: Invocation) -> AsyncIterator[Check]:
    async for check in examine(run.settings):
        yield check
    yield terminal()


def _first_fault(checks: Sequence[Check]) -> Failure | None:
    for check in checks:
        if check.status == "fault":
            return Failure("CHECK_FAILED", f"{check.name}: {check.detail}", check.hint)
    return None


def _show(run: Invocation, check: Check) -> None:
    run.console.print(f"{check.status:<7}  {check.name:<13}  {check.detail}")
    if check.hint:
        run.console.print(f"{'':<24}{check.hint}")


def terminal() -> Check:
    size = shutil.get_terminal_size()
    parts = [
        f"{size.columns} x {size.lines}" if sys.stdout.isatty() else "no terminal",
        "colours" if is_styled(sys.stdout) else "no colours",
        "Unicode" if is_unicode(sys.stdout) else f"{sys.stdout.encoding}, no Unicode",
    ]
    return Check("terminal", "ok", ", ".join(parts))
