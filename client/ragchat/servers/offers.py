"""The resources and prompts of a server."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import UNSET

from ragchat.memory.answers import prompt_parts
from ragchat.memory.types import DocumentText, FilledPrompt
from ragchat.servers.media import image_url, named
from ragcommon.files.decoding import NotText, decode
from ragmcp.client.features import Client
from ragmcp.protocol.schema.completion import PromptReference, Reference, TemplateReference
from ragmcp.protocol.schema.content import ResourceContents
from ragmcp.protocol.schema.prompts import PromptInfo
from ragmcp.protocol.schema.resources import ResourceInfo, ResourceTemplate

T = TypeVar("T")


class Ask(Protocol):
    """Sends a request, given its method and a function that makes it."""

    def __call__(self, method: str, ask: Callable[[Client], Awaitable[T]], /) -> Awaitable[T]: ...


class Offers:
    """The resources and prompts of `server`. Lists are kept until `forget`.

    `ask` sends a request, named first. Every method raises RagMcpError.
    """

    def __init__(self, server: str, ask: Ask) -> None:
        self._server = server
        self._ask = ask
        self.forget()

    def forget(self) -> None:
        """Drop the cached lists, which may have changed."""
        self._lists: dict[str, Any] = {}

    async def resources(self) -> Sequence[ResourceInfo]:
        return await self._listed("resources/list", "resources", Client.list_resources)

    async def templates(self) -> Sequence[ResourceTemplate]:
        return await self._listed("resources/templates/list", "resources", Client.list_resource_templates)

    async def prompts(self) -> Sequence[PromptInfo]:
        return await self._listed("prompts/list", "prompts", Client.list_prompts)

    async def _listed(
        self, method: str, capability: str, ask: Callable[[Client], Awaitable[Sequence[T]]]
    ) -> Sequence[T]:
        async def items(client: Client) -> Sequence[T]:
            return [] if getattr(client.capabilities, capability) is UNSET else await ask(client)

        if method not in self._lists:
            self._lists[method] = await self._ask(method, items)
        found: Sequence[T] = self._lists[method]
        return found

    async def read(self, uri: str) -> list[DocumentText]:
        """The contents of a resource; binary contents are replaced by a placeholder."""
        contents = await self._ask("resources/read", lambda client: client.read_resource(uri))
        return [self._document(one) for one in contents]

    async def fill_in(self, prompt: str, arguments: Mapping[str, str]) -> FilledPrompt:
        """A prompt with its arguments filled in, and its embedded resources."""
        filled = await self._ask("prompts/get", lambda client: client.get_prompt(prompt, arguments))
        text, resources = prompt_parts(filled)
        return FilledPrompt(text, [], [self._document(one) for one in resources])

    async def complete_argument(
        self, prompt: str, argument: str, typed: str, others: Mapping[str, str]
    ) -> list[str]:
        """Completions for an argument of a prompt; `others` are the arguments given so far."""
        return await self._complete(PromptReference(name=prompt), argument, typed, others)

    async def complete_variable(self, template: ResourceTemplate, variable: str, typed: str) -> list[str]:
        """Completions for a variable of a template."""
        return await self._complete(TemplateReference(uri=template.uri_template), variable, typed, {})

    async def _complete(
        self, reference: Reference, name: str, typed: str, others: Mapping[str, str]
    ) -> list[str]:
        async def values(client: Client) -> list[str]:
            if client.capabilities.completions is UNSET:
                return []
            return (await client.complete(reference, name, typed, others)).values

        return await self._ask("completion/complete", values)

    def _document(self, contents: ResourceContents) -> DocumentText:
        # The prefix distinguishes it from the user's own files, whatever URI the server chooses.
        image = "" if contents.blob is UNSET else image_url(contents.mime_type or "", contents.blob)
        return DocumentText.loose(f"@{self._server}:{contents.uri}", _text(contents), image=image)


def _text(contents: ResourceContents) -> str:
    if contents.text is not UNSET:
        return contents.text
    try:
        data = b64decode("" if contents.blob is UNSET else contents.blob)
        return decode(data).text
    except binascii.Error:
        return "[unreadable]"
    except NotText:
        kind = "data" if contents.mime_type is UNSET else contents.mime_type
        return named(kind, len(data))
