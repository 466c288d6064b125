"""/index: loads a repository, or other files and folders, in the background."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from ragchat.errors import CommandNotPossible, NotInARepository, RagChatError

if TYPE_CHECKING:
    from ragchat.ingest.report import Progress
    from ragchat.ui.context import ChatContext

log = logging.getLogger("ragchat")


async def index(context: ChatContext, argument: str) -> None:
    """Begin to load the repository of the working folder, or what the user names.

    A whole repository is loaded into its own memory, which then answers. While files are being loaded, this
    shows how far that is. Raises NotInARepository, CommandNotPossible, SettingsError.
    """
    from ragchat.servers.memory.repository import with_own_memory
    from ragchat.ui.slash.documents import refuse_options, split_paths
    from ragconfig.repository import find_repository

    settings = context.conversation.settings
    paths = split_paths(argument) if argument else []
    refuse_options("index", paths)
    if not argument and (root := find_repository(Path(), settings.home)) is not None:
        paths = [str(root)]
    if not paths:
        raise NotInARepository(str(Path.cwd()))
    if context.indexing:
        if paths != context.indexing:
            raise CommandNotPossible("index", f"{' '.join(context.indexing)} is being loaded")
        context.screen.note(f"{context.status.loading.capitalize()}.")
        return
    settings, made = with_own_memory(settings, paths)
    if made:
        context.screen.note(made)
    if settings.memory_path != context.conversation.settings.memory_path:
        await context.conversation.use_memory(settings)
        context.update_session_status()
    context.indexing = paths
    context.status.loading = "loading"
    context.in_background(_index(context, paths))
    context.screen.note("Loading in the background; /index shows how far it is.")


async def _index(context: ChatContext, paths: list[str]) -> None:
    """Load the paths and report on it."""
    try:
        await _load(context, paths)
    except Exception as error:
        log.error("/index failed", exc_info=error)
        async with context.above_prompt():
            context.screen.error(error)
    finally:
        context.indexing, context.status.loading = [], ""
        _redraw()


async def _load(context: ChatContext, paths: list[str]) -> None:
    from ragchat.ingest.loading import load_files
    from ragchat.ingest.report import InjectReport
    from ragchat.ui.slash.documents import show_report

    def on_progress(state: Progress) -> None:
        context.status.loading = f"loading {state.done_files:,} of {state.files:,} files"
        _redraw()

    report, failure = InjectReport(), ""
    try:
        await load_files(context.memory, paths, on_progress, report)
    except RagChatError as error:
        if not report.begun:
            raise
        failure = str(error)
    except asyncio.CancelledError:  # The chat ends; there is no prompt to write above.
        if report.begun:
            show_report(context, report)
        context.screen.note("The load was not finished. In the next chat, the same /index continues it.")
        raise
    async with context.above_prompt():
        show_report(context, report, failure)
        context.screen.show("")
    await context.update_memory_status()


def _redraw() -> None:
    from prompt_toolkit.application import get_app

    get_app().invalidate()
