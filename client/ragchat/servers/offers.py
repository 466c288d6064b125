"""What a server offers besides tools: texts to read, and prompts."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from msgspec import UNSET

from ragchat.memory.types import DocumentText, FilledPrompt
from ragchat.servers.media import image_url, named
from ragcommon.files.decoding import NotText, decode
from ragmcp.client.features import Client
from ragmcp.protocol.schema.completion import PromptReference, Reference, TemplateReference
from ragmcp.protocol.schema.content import EmbeddedResource, ResourceContents, TextContent
from ragmcp.protocol.schema.prompts import PromptInfo
from ragmcp.protocol.schema.resources import ResourceInfo, ResourceTemplate

T = TypeVar("T")


class Ask(Protocol):
    """Sends a request by its method and the function that makes it."""

    def __call__(self, method: str, ask: Callable[[Client], Awaitable[T]], /) -> Awaitable[T]: ...


class Offers:
    """The resources and prompts of `server`. Lists are kept until `forget`.

    `ask` sends a request, named first; `on_attached` gets the URI of each resource that is read. Every method
    raises RagMcpError.
    """

    def __init__(self, server: str, ask: Ask, on_attached: Callable[[str], None]) -> None:
        self._server = server
        self._ask = ask
        self._on_attached = on_attached
        self.forget()

    def forget(self) -> None:
        """The lists may have changed."""
        self._resources: Sequence[ResourceInfo] | None = None
        self._templates: Sequence[ResourceTemplate] | None = None
        self._prompts: Sequence[PromptInfo] | None = None

    async def resources(self) -> Sequence[ResourceInfo]:
        if self._resources is None:
            self._resources = await self._ask("resources/list", _resources)
        return self._resources

    async def templates(self) -> Sequence[ResourceTemplate]:
        if self._templates is None:
            self._templates = await self._ask("resources/templates/list", _templates)
        return self._templates

    async def prompts(self) -> Sequence[PromptInfo]:
        if self._prompts is None:
            self._prompts = await self._ask("prompts/list", _prompts)
        return self._prompts

    async def read(self, uri: str) -> list[DocumentText]:
        """The texts of a resource; what is no text is named."""
        contents = await self._ask("resources/read", lambda client: client.read_resource(uri))
        self._on_attached(uri)
        return [self._document(one) for one in contents]

    async def fill_in(self, prompt: str, arguments: Mapping[str, str]) -> FilledPrompt:
        """A prompt with its arguments, and the resources in it."""
        filled = await self._ask("prompts/get", lambda client: client.get_prompt(prompt, arguments))
        contents = [message.content for message in filled.messages]
        text = "\n\n".join(content.text for content in contents if isinstance(content, TextContent))
        resources = [content.resource for content in contents if isinstance(content, EmbeddedResource)]
        return FilledPrompt(text, [], [self._document(one) for one in resources])

    async def complete_argument(
        self, prompt: str, argument: str, typed: str, others: Mapping[str, str]
    ) -> list[str]:
        """Values for an argument of a prompt, `others` being given."""
        return await self._complete(PromptReference(name=prompt), argument, typed, others)

    async def complete_variable(self, template: ResourceTemplate, variable: str, typed: str) -> list[str]:
        """Values for a variable of a template."""
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
        # The name of the server keeps it apart from the user's own files, whatever the server calls it.
        image = "" if contents.blob is UNSET else image_url(contents.mime_type or "", contents.blob)
        return DocumentText.loose(f"@{self._server}:{contents.uri}", _text(contents), image=image)


async def _resources(client: Client) -> Sequence[ResourceInfo]:
    return [] if client.capabilities.resources is UNSET else await client.list_resources()


async def _templates(client: Client) -> Sequence[ResourceTemplate]:
    return [] if client.capabilities.resources is UNSET else await client.list_resource_templates()


async def _prompts(client: Client) -> Sequence[PromptInfo]:
    return [] if client.capabilities.prompts is UNSET else await client.list_prompts()


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
