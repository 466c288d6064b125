"""`@path` and `@server:uri` in a question: files and resources of servers that are attached to it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace
from prompt_toolkit.completion import CompleteEvent, Completion
from prompt_toolkit.document import Document

from ragchat import CLIENT_NAME
from ragchat.errors import AttachmentUnusable
from ragchat.ui.slash.completions import MAX_COMPLETIONS, PATHS
from ragchat.uris import short_path, short_uri
from ragcommon.errors import os_reason
from ragcommon.text.rules import counted
from ragmcp.errors import RagMcpError

if TYPE_CHECKING:
    from ragchat.memory.types import DocumentText
    from ragchat.servers.offers import Offers
    from ragchat.ui.context import ChatContext

_MENTION = re.compile(r'(?<!\S)@(?:"([^"]+)"|(\S+))')
# What looks like the path of a file; `@anna` and `@2.0` do not.
_PATH = re.compile(r"[/\\]|\.\w*[^\W\d]\w*$")
_LAST = re.compile(r'(?<!\S)@(?:"([^"]*)|(\S*))$')
# What may follow a mention within a sentence.
_PUNCTUATION = ".,;:!?)"
# A template whose only variable is its end.
_TEMPLATE = re.compile(r"([^{}]*)\{\+?(\w+)\}")


async def attachments(context: ChatContext, question: str) -> list[DocumentText]:
    """The files and resources that a question mentions; other words that begin with @ are ignored.

    Raises AttachmentUnusable.
    """

    mentions = _MENTION.finditer(question)
    found = [one for mention in mentions for one in await _mentioned(context, *mention.groups())]
    if not found:
        return []

    if await context.conversation.model.find() is None:
        first = found[0]
        name = short_path(first) if isinstance(first, Path) else short_uri(first.uri).removeprefix("@")
        raise AttachmentUnusable(name, "needs a language model, and none is in use")
    documents = [one for one in found if not isinstance(one, Path)]
    if files := [one for one in found if isinstance(one, Path)]:
        from ragchat.ingest.question_files import read_question_files

        read, report = await read_question_files(files, context.conversation.settings)
        documents += read
        for line in report.remarks(len(files), ""):
            context.screen.note(line)
    for document in documents:
        size = "an image" if document.image else counted(len(document.text), "character")
        context.screen.note(f"Attached: {short_uri(document.uri)} ({size})")
    return documents


async def _mentioned(context: ChatContext, quoted: str | None, word: str) -> Sequence[DocumentText | Path]:
    """The file or resource that a mention names; empty if it names none. Raises AttachmentUnusable."""
    names = [quoted] if quoted else [word, word.rstrip(_PUNCTUATION)]
    for name in dict.fromkeys(names):
        if attached := await _attached(context, name):
            return attached
    if quoted or _PATH.search(names[-1]):
        raise AttachmentUnusable(names[-1], "does not exist; if no file is meant, write it in `backquotes`")
    return []


async def _attached(context: ChatContext, name: str) -> Sequence[DocumentText | Path]:
    """The resource or the file of that name; empty if there is none."""

    server, colon, uri = name.partition(":")
    if colon and uri:
        await context.await_server(lambda one: one == server)
        if offers := context.conversation.servers.offers().get(server):
            try:
                return await offers.read(uri)
            except RagMcpError as error:
                reason = str(error).rstrip(".")
                raise AttachmentUnusable(name, f"was not given by its server: {reason}") from error
    return await asyncio.to_thread(_file, name, context.conversation.sessions.path)


def _file(name: str, sessions: Path) -> list[DocumentText | Path]:
    """The image of that name, or the path of another file; nothing if there is none.

    It may not be the database `sessions`.
    """
    from ragchat.servers import media
    from ragcommon.files.decoding import MAX_FILE_BYTES
    from ragcommon.files.safe_open import KeptOpen, read_regular
    from ragcommon.sqlite import wal

    try:
        path = Path(name).expanduser().absolute()
        if not path.exists() or not name.strip("."):
            return []
    except (OSError, RuntimeError, ValueError):  # not a file name; `~name` of an unknown user
        return []
    if path.is_dir():
        raise AttachmentUnusable(name, "is a folder: /in asks the documents of a folder")
    try:
        # Closing it would drop SQLite's POSIX locks: another process could remove the log in use.
        kept_open = (wal.identity(sessions), *wal.companions(sessions).values())
        content = read_regular(path, MAX_FILE_BYTES, kept_open=kept_open)
    except KeptOpen:
        raise AttachmentUnusable(name, "holds the saved conversations") from None
    except OSError as error:
        raise AttachmentUnusable(name, f"cannot be read: {os_reason(error)}") from None
    kind = media.image_kind(content)
    return [_image(name, path, kind, content) if kind else path]


def _image(name: str, path: Path, kind: str, content: bytes) -> DocumentText:
    from ragchat.memory.types import DocumentText
    from ragchat.servers import media

    if len(content) > media.MAX_BYTES:
        reason = f"is an image of {len(content):,} bytes; the limit is {media.MAX_BYTES:,}"
        raise AttachmentUnusable(name, reason)
    image = media.data_url(kind, content)
    document = DocumentText.loose(path.as_uri(), media.named(kind, len(content)), image=image)
    return replace(document, written_by=CLIENT_NAME)


async def complete(context: ChatContext | None, text: str) -> AsyncIterator[Completion]:
    """Complete the mention at the end of `text`: paths first, which need no server."""
    if not (last := _LAST.search(text)):
        return
    is_quoted = last[1] is not None
    typed = last[1] if is_quoted else last[2]
    for number, path in enumerate(PATHS.get_completions(Document(typed), CompleteEvent())):
        if number == MAX_COMPLETIONS:
            break
        whole = typed + path.text
        if is_quoted or " " in whole:
            # Leave the quotation mark open after a folder.
            whole = f'"{whole}/' if path.display_text.endswith("/") else f'"{whole}"'
        yield Completion(whole, -len(typed) - is_quoted, display=path.display)
    if is_quoted:
        return
    offers = context.conversation.servers.offers() if context else {}
    server, colon, uri = typed.partition(":")
    if not colon:
        for name in offers:
            if name.startswith(typed):
                yield Completion(f"{name}:", -len(typed), display_meta="resources of the server")
    elif server in offers:
        async for completion in _resources(offers[server], uri):
            yield completion


async def _resources(offers: Offers, typed: str) -> AsyncIterator[Completion]:
    from ragmcp.protocol.results import or_none

    wanted = typed.lower()
    matching = [one for one in await offers.resources() if wanted in f"{one.uri} {one.name}".lower()]
    for resource in matching[:MAX_COMPLETIONS]:
        meta = or_none(resource.title) or resource.name
        yield Completion(resource.uri, -len(typed), display_meta=meta)
    for template in await offers.templates():
        parts = _TEMPLATE.fullmatch(template.uri_template)
        if parts is None:
            continue
        prefix, variable = parts.groups()
        if typed.startswith(prefix):
            values = await offers.complete_variable(template, variable, typed.removeprefix(prefix))
            for value in values[:MAX_COMPLETIONS]:
                yield Completion(prefix + value, -len(typed), display_meta=template.name)
        elif prefix.startswith(typed):
            meta = or_none(template.title) or template.name
            yield Completion(prefix, -len(typed), display=template.uri_template, display_meta=meta)
