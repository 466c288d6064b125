"""Completions of the arguments of slash commands. `argument` is the text before the cursor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completion, PathCompleter
from prompt_toolkit.document import Document

from ragchat.uris import short_uri

if TYPE_CHECKING:
    from ragchat.ui.context import ChatContext
    from ragchat.ui.slash.command import Complete, SlashCommand

_MAX_COMPLETIONS = 50
_PATHS = PathCompleter(expanduser=True)


async def commands(argument: str, table: Iterable[SlashCommand]) -> AsyncIterator[Completion]:
    for choice in matching(argument, ((command.name, command.help) for command in table)):
        yield choice


async def paths(_: ChatContext | None, argument: str) -> AsyncIterator[Completion]:
    """Complete the whole argument as one path, which may contain spaces, else its last word."""
    for text in (argument, argument.rpartition(" ")[2]):
        found = list(_PATHS.get_completions(Document(text), CompleteEvent()))
        for completion in found[:_MAX_COMPLETIONS]:
            yield completion
        if found:
            return


async def documents(context: ChatContext | None, argument: str) -> AsyncIterator[Completion]:

    if context is None:
        return
    page = await context.memory.documents(_MAX_COMPLETIONS, {"uri": f"*{_plain_glob(argument)}*"})
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


async def sessions(context: ChatContext | None, argument: str) -> AsyncIterator[Completion]:
    infos = (
        await context.conversation.sessions.list(limit=_MAX_COMPLETIONS, one_shots=False) if context else []
    )
    for choice in matching(argument, ((info.session_id, info.title) for info in infos)):
        yield choice


def one_of(*choices: tuple[str, str]) -> Complete:
    """Some words, each with its meaning."""

    async def complete(_: ChatContext | None, argument: str) -> AsyncIterator[Completion]:
        for choice in matching(argument, choices):
            yield choice

    return complete


def matching(argument: str, choices: Iterable[tuple[str, str]]) -> Iterable[Completion]:
    """The choices that begin with `argument`, each with its meaning."""
    for text, meaning in choices:
        if text.startswith(argument):
            yield Completion(text, -len(argument), display_meta=meaning)


def _plain_glob(text: str) -> str:
    """A glob for the last part of a path: case-insensitive, wildcards escaped, %20 for a space."""
    name = text.replace("\\", "/").rpartition("/")[2]
    return "".join("%20" if character == " " else _either_case(character) for character in name)


def _either_case(character: str) -> str:
    if character.isalpha():
        return f"[{character.lower()}{character.upper()}]"
    return f"[{character}]" if character in "*?[" else character
