"""Progress bars on stderr, which disappear when the work is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import IO, TYPE_CHECKING, Any

from ragchat.console import is_styled
from ragchat.sanitize import one_line

if TYPE_CHECKING:
    from ragchat.ingest.report import OnProgress as OnLoading
    from ragchat.ingest.report import Progress
    from ragmcp.client.features import OnProgress


def loading_bar(stderr: IO[str], *, shown: bool = True) -> AbstractContextManager[OnLoading | None]:
    """A bar for loading files, whose rate and remaining time are in bytes. None if it cannot be drawn."""

    def fields(state: Progress) -> dict[str, Any]:
        files = f"{state.done_files:,} of {state.files:,} files"
        if state.scanning:
            files += f" ({one_line(state.scanning)})"
        return {"total": state.bytes, "completed": state.done_bytes, "files": files}

    return _bar(stderr, "", fields, shown=shown, in_bytes=True)


def counting_bar(
    stderr: IO[str], label: str, *, shown: bool = True
) -> AbstractContextManager[OnProgress | None]:
    """A bar for a call of the memory server. None if it cannot be drawn."""
    return _bar(stderr, label, lambda done, total, _: {"completed": done, "total": total}, shown=shown)


@contextmanager
def _bar(
    stderr: IO[str],
    label: str,
    fields: Callable[..., dict[str, Any]],
    *,
    shown: bool,
    in_bytes: bool = False,
) -> Iterator[Callable[..., None] | None]:
    """A bar, as the function that updates it with the arguments of `fields`. None if it cannot be drawn."""
    if not (shown and is_styled(stderr)):
        yield None
        return
    from rich import progress

    from ragchat.ui.render.screen import make_console

    columns = (
        progress.BarColumn(),
        progress.TextColumn("{task.fields[files]}", style="notice"),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
    )
    chosen = columns if in_bytes else progress.Progress.get_default_columns()
    with progress.Progress(*chosen, console=make_console(stderr), transient=True) as bar:
        task = bar.add_task(label, total=None, files="")
        yield lambda *arguments: bar.update(task, **fields(*arguments))
