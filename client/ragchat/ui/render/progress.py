"""The progress bar of a loading, on stderr; nothing where a line cannot be drawn twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragchat.ingest.loading import OnProgress, Progress
    from ragchat.ui.render.screen import Screen


@contextmanager
def progress_bar(screen: Screen) -> Iterator[OnProgress | None]:
    """Gives the function to call with every progress; rate and time left are counted in bytes."""
    if not (screen.animated and screen.err.is_terminal):
        yield None
        return
    from rich import progress as bars

    columns = (
        bars.BarColumn(),
        bars.TextColumn("{task.fields[files]}", style="notice"),
        bars.TransferSpeedColumn(),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=screen.err, transient=True) as bar:
        task = bar.add_task("", total=None, files="")

        def on_progress(state: Progress) -> None:
            files = f"{state.done_files:,} of {state.files:,} files"
            bar.update(task, total=state.bytes, completed=state.done_bytes, files=files)

        yield on_progress
