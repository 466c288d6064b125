"""The prompts: Markdown files of ours and of the user, with the documents they are about.

In the text of a file `{{name}}` stands for an argument; a document is attached as a resource and named there,
and so is what changed between two versions of it. The files are read, and what only prompts need is imported,
at the first request for them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ragcommon.contract.documents import DOCUMENT_URIS, DocumentInfo
from ragcommon.text.places import PARAGRAPH, ROW, Place
from ragconfig.prompt_files import FOLDER, PLACEHOLDER, Argument, Template, all_templates, of_kind
from ragconfig.settings import packaged_text
from ragmcp.errors import InvalidParams, PromptNotFound
from ragmemory.mcp.errors import Memory, wire_errors
from ragmemory.mcp.resources import changes, contents

if TYPE_CHECKING:
    from ragcommon.contract.history import Difference, Version
    from ragmcp.protocol.schema.content import ResourceContents
    from ragmcp.protocol.schema.prompts import PromptArgument, PromptMessage
    from ragmcp.server.call import Call
    from ragmcp.server.prompts import Prompt
    from ragmemory.types.documents import DocumentText

logger = logging.getLogger(__name__)

_QUOTED = f"{FOLDER}/quoted_documents.md"
# Documents that a completion offers, or that are searched for a name.
_MAX_NAMES = 1_000
_MAX_NAMED = 3  # in an error
_HOW_TO_NAME = "Its URI, file name, title or id."
_HOW_TO_NUMBER = "Its number, as `ragchat memory versions` and list_versions give it."
_TITLE_CHARACTERS = 200
_DAY = len("2026-07-28")
_VERSION_NUMBER = re.compile(r"[1-9][0-9]{0,17}")  # SQLite's integers have 64 bits


class Prompts:
    """The prompts of the server, ordered by name within ours and the user's."""

    def __init__(self, memory: Memory, folder: Path) -> None:
        """`folder` has the user's own files; it need not exist."""
        self._memory = memory
        self._folder = folder

    def __iter__(self) -> Iterator[Prompt]:
        from ragmcp.protocol.schema.prompts import PromptInfo
        from ragmcp.server.prompts import Prompt

        for name, template in self._templates.items():
            head = template.head
            info = PromptInfo(
                name=name,
                title=head.title,
                description=head.description,
                arguments=[_described(key, argument) for key, argument in head.arguments.items()],
            )
            yield Prompt(info, partial(self._messages, template))

    async def complete(
        self, name: str, argument: str, typed: str, others: Mapping[str, str]
    ) -> Sequence[str]:
        """The names of documents that contain `typed`; nothing for an argument that takes any text.

        For a version, the numbers that begin with `typed`, newest first; `others` name the document.
        Raises PromptNotFound, InvalidParams, ToolError.
        """
        if name not in self._templates:
            raise PromptNotFound(name, tuple(self._templates))
        arguments = self._templates[name].head.arguments
        if argument not in arguments:
            known = ", ".join(arguments) or "no arguments"
            raise InvalidParams("$.argument.name", f"the prompt takes {known}")
        kind = arguments[argument].kind
        if kind == "text":
            return []
        if kind == "version":
            [document] = of_kind(arguments, "document")
            numbers = await self._version_numbers(document, others.get(document, "").strip())
            return [number for number in numbers if number.startswith(typed.strip())]
        with wire_errors():
            found = await (await self._memory()).documents.named(typed, _MAX_NAMES)
        return [_name(document) for document in found]

    @cached_property
    def _templates(self) -> Mapping[str, Template]:
        """By name. A file that is broken is logged and left out."""
        templates = {}
        for path, found in all_templates(self._folder):
            if isinstance(found, Template):
                templates[path.stem] = found
            else:
                logger.warning("The prompt %s is left out: %s", path, found)
        return templates

    async def _messages(self, template: Template, _: Call, /, **given: str) -> list[PromptMessage]:
        """The documents, then the text about them. Raises InvalidParams, ToolError."""
        from ragmcp.protocol.schema.content import EmbeddedResource, TextContent
        from ragmcp.protocol.schema.prompts import PromptMessage

        values: dict[str, str] = {}
        resources: list[ResourceContents] = []
        for name, argument in template.head.arguments.items():
            value = given.get(name, "").strip() or argument.default
            if value is None or (argument.kind == "document" and not value):
                raise InvalidParams(f"$.arguments.{name}", "required, but empty")
            if argument.kind == "document":
                found = await self._document(name, value)
                document = found.info
                resources.append(contents(document, marked(found.text, found.places)))
                value = f"“{_title(document)}” ({resources[-1].uri})"
            values[name] = value
        if versions := of_kind(template.head.arguments, "version"):
            difference = await self._difference(document, versions, values)
            resources.append(changes(document.document_id, difference))
            values |= zip(versions, map(_version, (difference.before, difference.after)), strict=True)
        text = PLACEHOLDER.sub(lambda place: values[place[1]], template.text)
        if resources:
            text = f"{text}\n\n{packaged_text(_QUOTED).strip()}"
        content: list[EmbeddedResource | TextContent] = [
            *(EmbeddedResource(resource=resource) for resource in resources),
            TextContent(text=text),
        ]
        return [PromptMessage(role="user", content=part) for part in content]

    async def _document(self, argument: str, name: str) -> DocumentText:
        """The document with this id, uri, title or file name. Raises InvalidParams, ToolError."""
        with wire_errors():
            from ragmemory.errors import DocumentNotFound

            memory = await self._memory()
            with suppress(DocumentNotFound):
                return await memory.documents.whole(name.removeprefix(DOCUMENT_URIS))
            found = await memory.documents.named(name, _MAX_NAMES)
            called = [document for document in found if _is_called(document, name)]
            if len(called) == 1:
                return await memory.documents.whole(called[0].document_id)
        reason = f"there is no document {name!r} in memory"
        if called:
            uris = ", ".join(document.uri for document in called[:_MAX_NAMED])
            reason = f"{len(called)} documents are called {name!r}; give the uri of one, such as {uris}"
        raise InvalidParams(f"$.arguments.{argument}", reason)

    async def _difference(
        self, document: DocumentInfo, arguments: Sequence[str], values: Mapping[str, str]
    ) -> Difference:
        """What changed from one version to the other, which has text. Raises InvalidParams, ToolError."""
        for argument in arguments:
            if values[argument] and not _VERSION_NUMBER.fullmatch(values[argument]):
                raise InvalidParams(f"$.arguments.{argument}", f"must be a number, not {values[argument]!r}")
        before, after = (int(values[argument]) if values[argument] else None for argument in arguments)
        with wire_errors():
            from ragmemory.errors import VersionNotFound, VersionNotKept

            try:
                found = await (await self._memory()).history.difference(document.document_id, before, after)
            except (VersionNotFound, VersionNotKept) as error:
                raise InvalidParams("$.arguments", f"{error} {error.hint}") from None
        if found.before is None:
            reason = f"{document.uri} has no version before {found.after.number}"
            raise InvalidParams(f"$.arguments.{arguments[0]}", reason)
        return found

    async def _version_numbers(self, argument: str, document: str) -> list[str]:
        """The numbers of a document's versions that can be compared; none if there is no such document."""
        from ragmemory.errors import DocumentNotFound
        from ragmemory.limits import MAX_VERSIONS

        if not document:
            return []
        # It may also be removed meanwhile.
        with suppress(InvalidParams), wire_errors(), suppress(DocumentNotFound):
            info = (await self._document(argument, document)).info
            found = await (await self._memory()).history.versions(info.document_id, MAX_VERSIONS)
            return [str(one.number) for one in found.versions if one.characters is not None]
        return []


def _described(name: str, argument: Argument) -> PromptArgument:
    from ragmcp.protocol.schema.prompts import PromptArgument

    notes = [argument.description]
    if argument.kind == "document":
        notes.append(_HOW_TO_NAME)
    elif argument.kind == "version":
        notes.append(_HOW_TO_NUMBER)
    if argument.default:
        notes.append(f"Default: {argument.default}.")
    return PromptArgument(name=name, description=" ".join(notes), required=argument.default is None)


def marked(text: str, places: Sequence[Place]) -> str:
    """The text with a line such as `[p. 12]` above each page, slide, message and the like.

    Headings, paragraphs and rows need none: the text shows them.
    """
    lines = text.split("\n")
    for line, name in reversed(places):
        heading = lines[line - 1].lstrip("# ")
        if not (PARAGRAPH.search(name) or ROW.fullmatch(name) or name.endswith(heading)):
            lines[line - 1] = f"[{name}]\n{lines[line - 1]}"
    return "\n".join(lines)


def _name(document: DocumentInfo) -> str:
    """What a user calls a document: its uri, or if that is only a hash, its title."""
    return document.title if document.uri.startswith("sha256:") and document.title else document.uri


def _is_called(document: DocumentInfo, name: str) -> bool:
    return document.title.lower() == name.lower() or unquote(document.uri).endswith(f"/{name}")


def _version(version: Version | None) -> str:
    assert version is not None
    return f"version {version.number} ({version.at[:_DAY]})"


def _title(document: DocumentInfo) -> str:
    title = document.title or unquote(document.uri).rpartition("/")[2]
    return " ".join(title.split())[:_TITLE_CHARACTERS]
