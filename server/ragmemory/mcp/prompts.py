"""The prompts: Markdown files of ours and of the user, with the documents they are about.

A file begins with front matter in TOML between two lines of `+++`: title, description and arguments. In the
text below it `{{name}}` stands for an argument; a document is attached as a resource and named there, and so
is what changed between two versions of it. The files are read, and what only prompts need is imported, at the
first request for them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import unquote

import msgspec
from msgspec import Struct

import ragconfig
from ragconfig.settings import LARGEST_PROMPT, packaged_text
from ragmcp.errors import InvalidParams, PromptNotFound
from ragmemory.mcp.errors import Memory, wire_errors
from ragmemory.mcp.resources import BASE, changes, contents

if TYPE_CHECKING:
    from ragmcp.protocol.schema.content import ResourceContents
    from ragmcp.protocol.schema.prompts import PromptArgument, PromptMessage
    from ragmcp.server.call import Call
    from ragmcp.server.prompts import Prompt
    from ragmemory.types.documents import DocumentInfo
    from ragmemory.types.history import Difference, Version

logger = logging.getLogger(__name__)

# The folder's name, in our package and beside the user's settings. The user's files replace ours by name.
FOLDER = "prompts"
_OURS = Path(ragconfig.__file__).with_name(FOLDER)
_PACKS = ("documents", "calibration")  # the order in which hosts list them
_QUOTED = f"{FOLDER}/quoted_documents.md"
_PARTS = re.compile(r"\+\+\+\s*\n(.*?\n)?\+\+\+\s*\n(.*)", re.DOTALL)
_PLACE = re.compile(r"\{\{\s*([\w-]+)\s*\}\}")
# Documents that a completion offers, or that are searched for a name.
_MOST_NAMES = 1_000
_MOST_NAMED = 3  # in an error
_HOW_TO_NAME = "Its URI, file name, title or id."
_HOW_TO_NUMBER = "Its number, as `ragchat memory versions` and list_versions give it."
_TITLE_CHARACTERS = 200
_DAY = len("2026-07-28")
_VERSION_NUMBER = re.compile(r"[1-9][0-9]{0,17}")  # SQLite's integers have 64 bits


class Argument(Struct, frozen=True, forbid_unknown_fields=True):
    """An argument in front matter. Without `default` it is required.

    Two of the kind "version" are the earlier and the later version of the one document; empty, they are the
    last two.
    """

    description: str
    kind: Literal["text", "document", "version"] = "text"
    default: str | None = None


class Head(Struct, frozen=True, forbid_unknown_fields=True):
    """The front matter of a file."""

    title: str
    description: str
    arguments: dict[str, Argument] = {}


class Template(NamedTuple):
    head: Head
    text: str


class BrokenTemplate(Exception):
    """The message says why, as the end of a sentence."""


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
            [document] = _of_kind(arguments, "document")
            numbers = await self._version_numbers(document, others.get(document, "").strip())
            return [number for number in numbers if number.startswith(typed.strip())]
        with wire_errors():
            found = await (await self._memory()).documents.named(typed, _MOST_NAMES)
        return [_name(document) for document in found]

    @cached_property
    def _templates(self) -> Mapping[str, Template]:
        """By name. A file that is broken is logged and left out."""
        templates = {}
        ours = (path for pack in _PACKS for path in sorted((_OURS / pack).glob("*.md")))
        for path in [*ours, *sorted(self._folder.rglob("*.md"))]:
            try:
                templates[path.stem] = read_template(path)
            except BrokenTemplate as error:
                logger.warning("The prompt %s is left out: %s", path, error)
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
                document, text = await self._document(name, value)
                resources.append(contents(document, text))
                value = f"“{_title(document)}” ({resources[-1].uri})"
            values[name] = value
        if versions := _of_kind(template.head.arguments, "version"):
            difference = await self._difference(document, versions, values)
            resources.append(changes(document.document_id, difference))
            values |= zip(versions, map(_version, (difference.before, difference.after)), strict=True)
        text = _PLACE.sub(lambda place: values[place[1]], template.text)
        if resources:
            text = f"{text}\n\n{packaged_text(_QUOTED).strip()}"
        content: list[EmbeddedResource | TextContent] = [
            *(EmbeddedResource(resource=resource) for resource in resources),
            TextContent(text=text),
        ]
        return [PromptMessage(role="user", content=part) for part in content]

    async def _document(self, argument: str, name: str) -> tuple[DocumentInfo, str]:
        """The document that a user's name means, and its text. Raises InvalidParams, ToolError."""
        with wire_errors():
            from ragmemory.errors import DocumentNotFound

            memory = await self._memory()
            with suppress(DocumentNotFound):
                return await memory.documents.read(name.removeprefix(BASE))
            found = await memory.documents.named(name, _MOST_NAMES)
            called = [document for document in found if _is_called(document, name)]
            if len(called) == 1:
                return await memory.documents.read(called[0].document_id)
        reason = f"there is no document {name!r} in memory"
        if called:
            uris = ", ".join(document.uri for document in called[:_MOST_NAMED])
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
        from ragmemory.limits import MOST_VERSIONS

        if not document:
            return []
        # It may also be removed meanwhile.
        with suppress(InvalidParams), wire_errors(), suppress(DocumentNotFound):
            info, _ = await self._document(argument, document)
            found = await (await self._memory()).history.versions(info.document_id, MOST_VERSIONS)
            return [str(one.number) for one in found.versions if one.characters is not None]
        return []


def _of_kind(arguments: Mapping[str, Argument], kind: str) -> list[str]:
    return [name for name, argument in arguments.items() if argument.kind == kind]


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


def read_template(path: Path) -> Template:
    """The prompt in a file. Raises BrokenTemplate."""
    from ragconfig.files.regular import read_regular
    from ragconfig.toml_files import NotToml, decode_toml

    try:
        content = read_regular(path, LARGEST_PROMPT).decode("utf-8-sig").replace("\r\n", "\n")
        parts = _PARTS.fullmatch(content)
        if parts is None:
            raise BrokenTemplate("it does not begin with front matter between two lines of +++")
        head = msgspec.convert(decode_toml((parts[1] or "").encode()), Head)
    except OSError as error:
        raise BrokenTemplate(error.strerror or str(error)) from error
    except UnicodeDecodeError:
        raise BrokenTemplate("it is not text in UTF-8") from None
    except (NotToml, msgspec.ValidationError) as error:
        raise BrokenTemplate(str(error)) from None
    text = parts[2].strip()
    if not text:
        raise BrokenTemplate("it has no text below the front matter")
    if unknown := set(_PLACE.findall(text)) - head.arguments.keys():
        raise BrokenTemplate(f"its text has {{{{{min(unknown)}}}}}, which is not among its arguments")
    versions = _of_kind(head.arguments, "version")
    if versions and (len(versions), len(_of_kind(head.arguments, "document"))) != (2, 1):
        raise BrokenTemplate("versions are two arguments, beside that of one document")
    return Template(head, text)


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
