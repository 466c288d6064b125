"""/prompt and /SERVER:PROMPT: tasks for the model, from the prompts of memory and of other servers."""

from __future__ import annotations

import difflib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from ragchat.errors import (
    ArgumentMissing,
    CommandNotPossible,
    MemoryRefused,
    PromptArgumentRefused,
    RagChatError,
    UnknownPrompt,
)
from ragchat.formatting import counted
from ragchat.sanitize import one_line
from ragchat.uris import short_uri
from ragconfig.prompt_files import FOLDER, broken_in
from ragmcp.errors import RagMcpError

if TYPE_CHECKING:
    from ragchat.memory.client import MemoryClient
    from ragchat.servers.offers import Offers
    from ragchat.ui.context import ChatContext
    from ragmcp.protocol.schema.prompts import PromptArgument, PromptInfo

# Prompts that quotations can answer, without a model.
_OFFLINE_PROMPTS = frozenset({"summarize-document", "create-outline"})
_MAX_COMPLETIONS = 50
_QUOTES = ('"', "'")
# A value in quotation marks between spaces: an apostrophe within a word does not start one.
_QUOTED = re.compile(r"""(?:(?<=[\s=])|^)(["'])(?:(?!\1).)*\1(?!\S)""")
# A server's error about an argument.
_ABOUT_ARGUMENT = re.compile(
    r"Invalid parameter \$\.arguments(?:\.(?P<argument>[^:]+))?: (?P<reason>.+?)\.?", re.DOTALL
)


@dataclass(frozen=True)
class _Prompt:
    """A prompt; `server` is "" for memory."""

    info: PromptInfo
    source: MemoryClient | Offers
    server: str = ""

    @property
    def name(self) -> str:
        """The name that the user types: one word, because values follow it."""
        name = f"{self.server}:{self.info.name}" if self.server else self.info.name
        return _as_word(name)

    @property
    def arguments(self) -> Sequence[PromptArgument]:
        return self.info.arguments or []

    async def values(self, argument: str, typed: str, others: Mapping[str, str]) -> AsyncIterator[Completion]:
        """Completions of the value of an argument."""
        quote = typed[:1] if typed[:1] in _QUOTES else ""
        bare = typed.strip(quote) if quote else typed
        found = await self.source.complete_argument(self.info.name, argument, bare, others)
        for value in found[:_MAX_COMPLETIONS]:
            yield Completion(f"{quote}{value}{quote}", -len(typed), display=short_uri(value))


def _as_word(name: str) -> str:
    return "_".join(name.split())


async def _of_memory(context: ChatContext) -> list[_Prompt]:
    return [_Prompt(info, context.memory) for info in await context.memory.prompts()]


async def _of_servers(context: ChatContext) -> list[_Prompt]:
    """The prompts of the servers that are ready; a server that fails is left out."""
    found: list[_Prompt] = []
    for server, offers in context.conversation.servers.offers().items():
        try:
            found += [_Prompt(info, offers, server) for info in await offers.prompts()]
        except RagMcpError:
            continue
    return found


async def prompt(context: ChatContext, words: str) -> None:
    """List the prompts; or fill one in, attach its documents, and ask the model."""
    name, _, given = words.partition(" ")
    if ":" in name:
        await context.await_server(lambda server: name.startswith(_as_word(f"{server}:")))
    found = await _of_servers(context)
    if ":" not in name:  # The prompts of other servers do not need memory.
        found = [*await _of_memory(context), *found]
    known = {one.name: one for one in found}
    if not name:
        _list(context, found)
        for problem in broken_in(context.conversation.settings.home.config / FOLDER):
            context.screen.note(problem, "warning")
        return
    if name not in known:
        raise UnknownPrompt(name, difflib.get_close_matches(name, known, n=1))
    offline = await context.conversation.model.find() is None
    if offline and name not in _OFFLINE_PROMPTS:
        raise CommandNotPossible(f"prompt {name}", "it needs a language model, and none is configured")
    chosen = known[name]
    values = await _ask(context, chosen, _parse_values(chosen, given))
    if values is None:
        context.screen.note("Nothing is asked.")
        return
    await _answer(context, chosen, values, offline=offline)


async def _answer(context: ChatContext, chosen: _Prompt, values: Mapping[str, str], *, offline: bool) -> None:
    try:
        filled = await chosen.source.fill_in(chosen.info.name, values)
    except (MemoryRefused, RagMcpError) as error:
        if (about := _ABOUT_ARGUMENT.fullmatch(str(error))) is None:
            if not chosen.server:
                raise
            reason = f"its server did not fill it in: {str(error).rstrip('.')}"
            raise CommandNotPossible(chosen.name, reason) from error
        hint = "/memory lists the documents." if "document" in about["reason"] and not chosen.server else ""
        raise PromptArgumentRefused(
            chosen.name, about["argument"] or "its arguments", about["reason"], hint
        ) from error
    from ragchat.conversation import Attached

    documents = [await context.memory.show(document) for document in filled.documents] + filled.texts
    untrusted = []
    if chosen.server:  # Show what the server asks in the user's name.
        untrusted.append(f"the prompt {chosen.name}")
        context.screen.note(filled.text)
    for document in documents:
        short = short_uri(document.uri, document.title)
        context.screen.note(f"Attached: {short} ({counted(len(document.text), 'character')})")
    question = filled.text
    if offline and documents:  # a prompt of the user may have none
        question, documents = f"Outline of {short_uri(documents[0].uri, documents[0].title)}", []
    attached = Attached.of(documents, untrusted)
    ask = partial(context.conversation.ask, question, approve=context.approve, attached=attached)
    await context.answer(ask)


def _parse_values(chosen: _Prompt, text: str) -> dict[str, str]:
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
    return [(name, _unquoted(value)) for name, value in _quoted_values(text, names)]


def _quoted_values(text: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """The values with their quotation marks."""
    if not text.strip() or not names:
        return []
    plain = _QUOTED.sub(lambda quoted: "_" * len(quoted[0]), text)
    found = [*re.finditer(rf"(?:^|\s)({'|'.join(map(re.escape, names))})=", plain)]
    ends = [*(one.start() for one in found), len(text)]
    values = [(one[1], text[one.end() : end].strip()) for one, end in zip(found, ends[1:], strict=True)]
    first = text[: ends[0]].strip()
    return [(names[0], first), *values] if first else values


def _unquoted(value: str) -> str:
    return value[1:-1] if _QUOTED.fullmatch(value) else value


async def _ask(context: ChatContext, chosen: _Prompt, values: dict[str, str]) -> dict[str, str] | None:
    """The values with those that the user adds; None if one that is required is not given.

    Without any value all arguments are asked for, else those that are required.
    """
    missing = [
        one for one in chosen.arguments if one.name not in values and (one.required is True or not values)
    ]
    if context.read is None:
        if required := [f"{one.name}=…" for one in missing if one.required is True]:
            raise ArgumentMissing(f"prompt {chosen.name}", " ".join(required))
        return values
    for one in missing:
        context.screen.note(one.description or one.name)
        value = await context.read(f"{one.name}: ", _ValueCompleter(chosen, one.name, values))
        if value is None or (one.required is True and not value.strip()):
            return None
        if value.strip():  # Otherwise the server uses its own default.
            values[one.name] = _unquoted(value.strip())
    return values


def _list(context: ChatContext, known: Iterable[_Prompt]) -> None:
    context.screen.listing((one_line(one.name), one_line(one.info.description or "")) for one in known)
    context.screen.note(
        "/prompt NAME asks for the document and what else the prompt needs. They can also follow the name: "
        '/prompt NAME "my file.md" or /prompt NAME document="my file.md" other=…'
    )


# Completion


class _ValueCompleter(Completer):
    """Completes the value of an argument."""

    def __init__(self, prompt: _Prompt, argument: str, others: Mapping[str, str]) -> None:
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
            async for value in self._prompt.values(self._argument, document.text, dict(self._others)):
                yield value
        except (RagChatError, RagMcpError):  # The menu stays closed, and the prompt will report the error.
            return


async def complete(context: ChatContext | None, typed: str) -> AsyncIterator[Completion]:
    """Complete the name of a prompt, then the value of its first or last argument."""
    if context is not None:
        of_memory = [] if ":" in typed.partition(" ")[0] else await _of_memory(context)
        async for completion in _complete([*of_memory, *await _of_servers(context)], typed):
            yield completion


async def complete_of_servers(context: ChatContext | None, typed: str) -> AsyncIterator[Completion]:
    """As `complete`, for the prompts of other servers alone, which are commands."""
    if context is not None:
        async for completion in _complete(await _of_servers(context), typed):
            yield completion


async def _complete(known: Iterable[_Prompt], typed: str) -> AsyncIterator[Completion]:
    name, space, given = typed.partition(" ")
    for one in known:
        if not space and one.name.startswith(name):
            meta = one.info.title or ""
            yield Completion(f"{one.name} ", -len(name), display=one.name, display_meta=meta)
        elif space and one.name == name and (names := [argument.name for argument in one.arguments]):
            *others, (argument, value) = _quoted_values(given, names) or [(names[0], "")]
            known_values = {name: _unquoted(other) for name, other in others}
            async for completion in one.values(argument, value, known_values):
                yield completion
