"""Taking out several things by name: each one that is there goes, also when another is not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ragchat.commands import Run
from ragchat.console import describe
from ragchat.errors import RagChatError

T = TypeVar("T")


async def take_out(
    run: Run,
    names: Sequence[str],
    remove: Callable[[str], Awaitable[T]],
    *,
    kind: str,
    missing: tuple[type[RagChatError], ...],
    say: Callable[[T], str],
    hint: str = "",
) -> int:
    """The exit code: 1 if one of them was `missing`. `kind` is what a name is called in JSON."""
    removed, failed = [], []
    for name in names:
        try:
            removed.append(await remove(name))
        except missing as error:
            failed.append({kind: name, "error": str(error), "hint": error.hint})
            run.console.failure(describe(error))
    if run.console.json:
        run.console.document({"removed": removed, "failed": failed})
    else:
        for one in removed:
            run.console.print(say(one))
        if removed and hint:
            run.console.note(hint)
    return 1 if failed else 0
