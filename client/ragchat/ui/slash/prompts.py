"""/prompt and /SERVER:PROMPT: tasks for the model, from the prompts of memory and of other servers."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from ragchat.errors import PromptArgumentRefused, PromptIncomplete, RagChatError
from ragchat.sanitize import one_line
from ragchat.servers.prompts import Prompt, as_word, chosen, of_memory, of_servers
from ragchat.ui.slash.command import QUOTED, unquoted
from ragchat.ui.slash.completions import MAX_COMPLETIONS
from ragchat.uris import short_uri
from ragcommon.text.rules import counted
from ragconfig.prompt_files import FOLDER, broken_in
from ragmcp.errors import RagMcpError

if TYPE_CHECKING:
    from ragchat.ui.context import ChatContext

_QUOTES = ('"', "'")


async def prompt(context: ChatContext, words: str) -> None:
    """List the prompts; or fill one in, attach its documents, and ask the model."""
    name, _, given = words.partition(" ")
    servers = context.conversation.servers
    if ":" in name:
        await context.await_server(lambda server: name.startswith(as_word(f"{server}:")))
    found = await of_servers(servers)
    if ":" not in name:  # The prompts of other servers do not need memory.
        found = [*await of_memory(context.memory), *found]
    if not name:
        _list(context, found)
        for problem in broken_in(context.conversation.settings.home.config / FOLDER):
            context.screen.note(problem, "warning")
        return
    offline = await context.conversation.model.find() is None
    one = chosen(name, found, offline=offline)
    values = await _ask(context, one, _parse_values(one, given))
    if values is None:
        context.screen.note("Nothing is asked.")
        return
    await _answer(context, one, values, offline=offline)


async def _answer(context: ChatContext, chosen: Prompt, values: Mapping[str, str], *, offline: bool) -> None:
    try:
        filled = await chosen.fill_in(values, context.memory, offline=offline)
    except PromptArgumentRefused as error:
        if "document" in error.reason and not chosen.server:
            error.hint = "/memory lists the documents."
        raise
    from ragchat.conversation import Attached

    untrusted = []
    if chosen.server:  # Show what the server asks in the user's name.
        untrusted.append(f"the prompt {chosen.name}")
        context.screen.note(filled.question)
    for document in filled.documents:
        short = short_uri(document.uri, document.title)
        context.screen.note(f"Attached: {short} ({counted(len(document.text), 'character')})")
    attached = Attached.of(filled.attached, untrusted)
    ask = partial(context.conversation.ask, filled.question, approve=context.approve, attached=attached)
    await context.answer(ask)


def _parse_values(chosen: Prompt, text: str) -> dict[str, str]:
    """The values that follow a prompt's name. Raises PromptArgumentRefused."""
    values: dict[str, str] = {}
    for name, value in values_in(text, [one.name for one in chosen.arguments]):
        if name in values:
            reason = f"it has two values, {values[name]} and {value}"
            names = ", ".join(one.name for one in chosen.arguments)
            hint = f"Its arguments are {names}. A value that holds one of these with = needs quotation marks."
            raise PromptArgumentRefused(chosen.name, name, reason, hint)
        values[name] = value
    return values


def values_in(text: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """The values by their names: `name=value` for each, or the first value alone.

    A value may stand in quotation marks, which it needs if it holds ` name=` itself.
    """
    return [(name, unquoted(value)) for name, value in _quoted_values(text, names)]


def _quoted_values(text: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """The values with their quotation marks."""
    if not text.strip() or not names:
        return []
    plain = QUOTED.sub(lambda quoted: "_" * len(quoted[0]), text)
    found = [*re.finditer(rf"(?:^|\s)({'|'.join(map(re.escape, names))})=", plain)]
    ends = [*(one.start() for one in found), len(text)]
    values = [(one[1], text[one.end() : end].strip()) for one, end in zip(found, ends[1:], strict=True)]
    first = text[: ends[0]].strip()
    return [(names[0], first), *values] if first else values


async def _ask(context: ChatContext, chosen: Prompt, values: dict[str, str]) -> dict[str, str] | None:
    """The values with those that the user adds; None if one that is required is not given.

    Without any value all arguments are asked for, else those that are required.
    """
    missing = [
        one for one in chosen.arguments if one.name not in values and (one.required is True or not values)
    ]
    if context.read is None:
        if required := chosen.missing(values):
            raise PromptIncomplete(chosen.name, required)
        return values
    for one in missing:
        context.screen.note(one.description or one.name)
        value = await context.read(f"{one.name}: ", _ValueCompleter(chosen, one.name, values))
        if value is None or (one.required is True and not value.strip()):
            return None
        if value.strip():  # Otherwise the server uses its own default.
            values[one.name] = unquoted(value.strip())
    return values


def _list(context: ChatContext, known: Iterable[Prompt]) -> None:
    context.screen.listing((one_line(one.name), one_line(one.info.description or "")) for one in known)
    context.screen.note(
        "/prompt NAME asks for the document and what else the prompt needs. They can also follow the name: "
        '/prompt NAME "my file.md" or /prompt NAME document="my file.md" other=…'
    )


# Completion


async def _values(
    prompt: Prompt, argument: str, typed: str, others: Mapping[str, str]
) -> AsyncIterator[Completion]:
    """Completions of the value of an argument."""
    quote = typed[:1] if typed[:1] in _QUOTES else ""
    bare = typed.strip(quote) if quote else typed
    found = await prompt.source.complete_argument(prompt.info.name, argument, bare, others)
    for value in found[:MAX_COMPLETIONS]:
        yield Completion(f"{quote}{value}{quote}", -len(typed), display=short_uri(value))


class _ValueCompleter(Completer):
    """Completes the value of an argument."""

    def __init__(self, prompt: Prompt, argument: str, others: Mapping[str, str]) -> None:
        self._prompt = prompt
        self._argument = argument
        self._others = others

    def get_completions(self, _: Document, __: CompleteEvent) -> Iterable[Completion]:
        """Nothing: the server is asked for the values."""
        return []

    async def get_completions_async(
        self, document: Document, _: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        try:
            async for value in _values(self._prompt, self._argument, document.text, dict(self._others)):
                yield value
        except (RagChatError, RagMcpError):  # The menu stays closed, and the prompt will report the error.
            return


async def complete(
    context: ChatContext | None, typed: str, *, are_commands: bool = False
) -> AsyncIterator[Completion]:
    """Complete the name of a prompt, then the value of its first or last argument.

    `are_commands`: those of other servers alone.
    """
    if context is None:
        return
    name, space, given = typed.partition(" ")
    own = [] if are_commands or ":" in name else await of_memory(context.memory)
    for one in [*own, *await of_servers(context.conversation.servers)]:
        if not space and one.name.startswith(name):
            meta = one.info.title or ""
            yield Completion(f"{one.name} ", -len(name), display=one.name, display_meta=meta)
        elif space and one.name == name and (names := [argument.name for argument in one.arguments]):
            *others, (argument, value) = _quoted_values(given, names) or [(names[0], "")]
            known_values = {name: unquoted(other) for name, other in others}
            async for completion in _values(one, argument, value, known_values):
                yield completion
