"""Progress bars on stderr, which disappear when the work is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from ragchat.console import is_styled

if TYPE_CHECKING:
    from ragchat.ingest.loading import OnProgress as OnLoading
    from ragchat.ingest.loading import Progress
    from ragmcp.client.features import OnProgress


@contextmanager
def loading_bar(stderr: IO[str], *, shown: bool = True) -> Iterator[OnLoading | None]:
    """A bar for loading files, whose rate and remaining time are in bytes. None if it cannot be drawn."""
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
    with progress.Progress(*columns, console=make_console(stderr), transient=True) as bar:
        task = bar.add_task("", total=None, files="")

        def on_progress(state: Progress) -> None:
            files = f"{state.done_files:,} of {state.files:,} files"
            bar.update(task, total=state.bytes, completed=state.done_bytes, files=files)

        yield on_progress


@contextmanager
def counting_bar(stderr: IO[str], label: str, *, shown: bool = True) -> Iterator[OnProgress | None]:
    """A bar for a call of the memory server. None if it cannot be drawn."""
    if not (shown and is_styled(stderr)):
        yield None
        return
    from rich import progress

    from ragchat.ui.render.screen import make_console

    with progress.Progress(console=make_console(stderr), transient=True) as bar:
        task = bar.add_task(label, total=None)

        def on_progress(done: float, total: float | None, _: str | None) -> None:
            bar.update(task, completed=done, total=total)

        yield on_progress
