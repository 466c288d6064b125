"""The prompts of memory and of other servers: found by their names and filled in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ragchat.errors import (
    MemoryRefused,
    PromptArgumentRefused,
    PromptNeedsModel,
    PromptNotFilledIn,
    UnknownPrompt,
)
from ragchat.memory.types import DocumentText
from ragchat.uris import short_uri
from ragmcp.errors import RagMcpError

if TYPE_CHECKING:
    from ragchat.memory.client import MemoryClient
    from ragchat.servers.manager import ServerManager
    from ragchat.servers.offers import Offers
    from ragmcp.protocol.schema.prompts import PromptArgument, PromptInfo

# Prompts that quotations can answer, without a model.
_OFFLINE_PROMPTS = frozenset({"summarize-document", "create-outline"})
# A server's error about an argument.
_ABOUT_ARGUMENT = re.compile(
    r"Invalid parameter \$\.arguments(?:\.(?P<argument>[^:]+))?: (?P<reason>.+?)\.?", re.DOTALL
)


class FilledIn(NamedTuple):
    """`documents` are those of the prompt; `attached` those sent with the question: none without a model."""

    question: str
    documents: Sequence[DocumentText]
    attached: Sequence[DocumentText]


@dataclass(frozen=True)
class Prompt:
    """A prompt; `server` is "" for memory."""

    info: PromptInfo
    source: MemoryClient | Offers
    server: str = ""

    @property
    def name(self) -> str:
        """The name that the user types: one word, because values follow it."""
        return as_word(f"{self.server}:{self.info.name}" if self.server else self.info.name)

    @property
    def arguments(self) -> Sequence[PromptArgument]:
        return self.info.arguments or []

    def missing(self, values: Mapping[str, str]) -> list[str]:
        """The required arguments that have no value."""
        return [one.name for one in self.arguments if one.required is True and one.name not in values]

    async def fill_in(self, values: Mapping[str, str], memory: MemoryClient, *, offline: bool) -> FilledIn:
        """The question that the prompt makes of the values, with its documents.

        Raises PromptArgumentRefused, PromptNotFilledIn; MemoryError and RagMcpError.
        """
        try:
            filled = await self.source.fill_in(self.info.name, values)
        except (MemoryRefused, RagMcpError) as error:
            if (about := _ABOUT_ARGUMENT.fullmatch(str(error))) is None:
                if not self.server:
                    raise
                raise PromptNotFilledIn(self.name, str(error).rstrip(".")) from error
            raise PromptArgumentRefused(
                self.name, about["argument"] or "its arguments", about["reason"]
            ) from error
        documents = [await memory.show(document) for document in filled.documents] + filled.texts
        if offline and documents:  # a prompt of the user may have none
            outlined = short_uri(documents[0].uri, documents[0].title)
            return FilledIn(f"Outline of {outlined}", documents, [])
        return FilledIn(filled.text, documents, documents)


def as_word(name: str) -> str:
    return "_".join(name.split())


async def of_memory(memory: MemoryClient) -> list[Prompt]:
    return [Prompt(info, memory) for info in await memory.prompts()]


async def of_servers(servers: ServerManager) -> list[Prompt]:
    """The prompts of the servers that are ready; a server that fails is left out."""
    found: list[Prompt] = []
    for server, offers in servers.offers().items():
        try:
            found += [Prompt(info, offers, server) for info in await offers.prompts()]
        except RagMcpError:
            continue
    return found


def chosen(name: str, prompts: Iterable[Prompt], *, offline: bool) -> Prompt:
    """The prompt of that name. Raises UnknownPrompt, PromptNeedsModel."""
    known = {one.name: one for one in prompts}
    of_server = ":" in name  # without a model, no other server is started
    if name not in known and not (offline and of_server):
        raise UnknownPrompt.with_nearest(name, known)
    if offline and name not in _OFFLINE_PROMPTS:
        raise PromptNeedsModel(name)
    return known[name]
