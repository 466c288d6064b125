"""/prompt: tasks for the model on documents, from the memory server's prompts."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from ragchat.formatting import counted

if TYPE_CHECKING:
    from ragchat.memory.client import MemoryClient
    from ragchat.ui.context import ChatContext
    from ragmcp.protocol.schema.prompts import PromptArgument, PromptInfo

# What these ask for can be quoted without a model.
_OUTLINES = frozenset({"summarize-document", "create-outline"})
_OFFERED = 50


async def prompt(context: ChatContext, words: str) -> None:
    """List the prompts; or fill one in, attach its documents, and ask the model."""
    name, _, given = words.partition(" ")
    known = {info.name: info for info in await context.memory.prompts()}
    if not name:
        _list(context, known.values())
        return
    if name not in known:
        import difflib

        from ragchat.errors import UnknownPrompt

        raise UnknownPrompt(name, difflib.get_close_matches(name, known, n=1))
    offline = await context.app.model.find() is None
    if offline and name not in _OUTLINES:
        from ragchat.errors import CommandNotPossible

        raise CommandNotPossible(f"prompt {name}", "it needs a language model, and none is configured")
    arguments = _arguments(known[name])
    values = await _ask(context, name, arguments, values_in(given, [one.name for one in arguments]))
    if values is None:
        context.screen.note("Nothing is asked.")
        return
    await _answer(context, name, values, offline=offline)


async def _answer(context: ChatContext, name: str, values: Mapping[str, str], *, offline: bool) -> None:
    from ragchat.errors import MemoryRefused
    from ragchat.uris import short_uri

    try:
        filled = await context.memory.fill_in(name, values)
    except MemoryRefused as error:
        error.hint = error.hint or "/memory lists the documents."
        raise
    documents = [await context.memory.show(document) for document in filled.documents] + filled.changes
    for document in documents:
        short = short_uri(document.uri, document.title)
        context.screen.note(f"Attached: {short} ({counted(len(document.text), 'character')})")
    question = filled.text
    if offline and documents:  # a prompt of the user may have none
        question, documents = f"Outline of {short_uri(documents[0].uri, documents[0].title)}", []
    await context.answer(partial(context.app.ask, question, approve=context.approve, documents=documents))


def values_in(text: str, names: Sequence[str]) -> dict[str, str]:
    """The values that follow a prompt's name: `name=value` for each, or the first value alone."""
    if not text.strip() or not names:
        return {}
    first, *rest = re.split(rf"(?:^|\s)({'|'.join(map(re.escape, names))})=", text)
    values = dict(zip(rest[::2], map(str.strip, rest[1::2]), strict=True))
    return {names[0]: first.strip()} | values if first.strip() else values


async def _ask(
    context: ChatContext, name: str, arguments: Sequence[PromptArgument], values: dict[str, str]
) -> dict[str, str] | None:
    """The values with those that the user adds; None if one that is required is not given.

    Without any value all arguments are asked for, else those that are required.
    """
    missing = [one for one in arguments if one.name not in values and (one.required is True or not values)]
    if context.read is None:
        if required := [f"{one.name}=…" for one in missing if one.required is True]:
            from ragchat.errors import ArgumentMissing

            raise ArgumentMissing(f"prompt {name}", " ".join(required))
        return values
    for one in missing:
        context.screen.note(one.description or one.name)
        completer = _ValueCompleter(context.memory, name, one.name, values)
        value = await context.read(f"{one.name}: ", completer)
        if value is None or (one.required is True and not value.strip()):
            return None
        values[one.name] = value.strip()
    return values


def _arguments(info: PromptInfo) -> Sequence[PromptArgument]:
    return info.arguments or []


def _list(context: ChatContext, known: Iterable[PromptInfo]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for info in known:
        table.add_row(Text(info.name, "name"), Text(info.description or ""))
    context.screen.show(table)
    context.screen.note("/prompt NAME asks for the document and what else the prompt needs.")


# Completion


class _ValueCompleter(Completer):
    """Completes the value of an argument."""

    def __init__(self, memory: MemoryClient, prompt: str, argument: str, others: Mapping[str, str]) -> None:
        self._memory = memory
        self._prompt = prompt
        self._argument = argument
        self._others = others

    def get_completions(self, _: Document, __: CompleteEvent) -> Iterable[Completion]:
        """Nothing: memory is asked for the values."""
        return []

    async def get_completions_async(
        self, document: Document, _: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        from ragchat.errors import RagChatError

        try:
            others = dict(self._others)
            async for value in _values(self._memory, self._prompt, self._argument, document.text, others):
                yield value
        except RagChatError:  # The menu stays closed, and the prompt will report the error.
            return


async def complete(context: ChatContext | None, typed: str) -> AsyncIterator[Completion]:
    """Complete the name of a prompt, then the value of its first or last argument."""
    if context is None:
        return
    known = {info.name: info for info in await context.memory.prompts()}
    name, space, given = typed.partition(" ")
    if not space:
        for info in known.values():
            if info.name.startswith(name):
                meta = info.title or ""
                yield Completion(f"{info.name} ", -len(name), display=info.name, display_meta=meta)
    elif name in known and (names := [one.name for one in _arguments(known[name])]):
        *others, (argument, value) = values_in(given, names).items() or [(names[0], "")]
        async for completion in _values(context.memory, name, argument, value, dict(others)):
            yield completion


async def _values(
    memory: MemoryClient, prompt: str, argument: str, typed: str, others: Mapping[str, str]
) -> AsyncIterator[Completion]:
    from ragchat.uris import short_uri

    for value in (await memory.complete_argument(prompt, argument, typed, others))[:_OFFERED]:
        yield Completion(value, -len(typed), display=short_uri(value))
