"""Completions of the arguments of slash commands. `argument` is the text before the cursor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completion, PathCompleter
from prompt_toolkit.document import Document

from ragchat.uris import part_globs, short_uri
from ragconfig.prompt_files import ROLES, role_files

if TYPE_CHECKING:
    from ragchat.sessions.types import SessionInfo
    from ragchat.ui.context import ChatContext
    from ragchat.ui.slash.command import Complete

MAX_COMPLETIONS = 50
PATHS = PathCompleter(expanduser=True)


async def paths(_: ChatContext | None, argument: str) -> AsyncIterator[Completion]:
    """Complete the whole argument as one path, which may contain spaces, else its last word."""
    for text in (argument, argument.rpartition(" ")[2]):
        found = list(PATHS.get_completions(Document(text), CompleteEvent()))
        for completion in found[:MAX_COMPLETIONS]:
            yield completion
        if found:
            return


async def documents(context: ChatContext | None, argument: str) -> AsyncIterator[Completion]:
    if context is None:
        return
    name = argument.replace("\\", "/").rpartition("/")[2]
    page = await context.memory.documents(MAX_COMPLETIONS, {"uri": part_globs(name)[0]})
    for document in page.documents:
        short = short_uri(document.uri)
        if argument.lower() not in short.lower():
            continue  # it occurs only in the part of the path that is not shown
        text = short if document.uri.startswith("file://") else document.uri
        yield Completion(text, -len(argument), display=short, display_meta=document.title)


async def models(context: ChatContext | None, argument: str) -> AsyncIterator[Completion]:
    for name in await context.conversation.model.choices() if context else ():
        if argument.lower() in name.lower():
            yield Completion(name, -len(argument))


def roles(context: ChatContext | None, argument: str) -> AsyncIterator[Completion]:
    known = role_files(context.conversation.settings.home.config / ROLES) if context else ()
    return matching(argument, [("reset", "no role"), *((name, "") for name in known)])


async def sessions(context: ChatContext | None, argument: str) -> AsyncIterator[Completion]:
    infos: Sequence[SessionInfo] = ()
    if context:
        chat = context.conversation
        infos = await chat.sessions.list(MAX_COMPLETIONS, one_shots=False, notebook=chat.notebook_name)
    async for choice in matching(argument, ((info.session_id, info.title) for info in infos)):
        yield choice


def one_of(*choices: tuple[str, str]) -> Complete:
    """Some words, each with its meaning."""
    return lambda _, argument: matching(argument, choices)


async def matching(argument: str, choices: Iterable[tuple[str, str]]) -> AsyncIterator[Completion]:
    """The choices that begin with `argument`, each with its meaning."""
    for text, meaning in choices:
        if text.startswith(argument):
            yield Completion(text, -len(argument), display_meta=meaning)
