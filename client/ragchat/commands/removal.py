"""Removing several things by name: the others are removed even if one does not exist."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ragchat.commands.invocation import Invocation
from ragchat.console import Failure, describe
from ragchat.errors import RagChatError

T = TypeVar("T")


async def remove_each(
    run: Invocation,
    names: Sequence[str],
    remove: Callable[[str], Awaitable[T]],
    *,
    kind: str,
    expected: tuple[type[RagChatError], ...],
    sentence: Callable[[T], str],
    hint: str = "",
) -> int:
    """The exit code: 1 if `remove` raised an `expected` error. `kind` is the key of a name in JSON."""
    removed, failed = [], []
    failure: Failure | None = None
    for name in dict.fromkeys(names):
        try:
            removed.append(await remove(name))
        except expected as error:
            failed.append({kind: name, "error": str(error), "hint": error.hint})
            run.console.failure(described := describe(error))
            failure = failure or described
    document, notes = {"removed": removed, "failed": failed}, [hint] if removed and hint else []
    return run.console.result(document, *map(sentence, removed), notes=notes, failure=failure)
