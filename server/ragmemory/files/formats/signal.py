"""Signal messages in JSON, recognised by their content.

Four forms: the plain export of Signal Desktop (frames of its backup, one a line), a list of messages from its
database (as sigtop writes it), `data.json` of signal-export, and what `signal-cli --output=json` prints.
signal-export's Markdown needs no parser.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ragcommon.errors import DECODE_ERRORS
from ragmemory.files.formats.chats import BEGINNING, Turn, add_turns, text_at, value_at
from ragmemory.files.formats.file_text import Damaged, FileText, TextBuilder

# The speaker of the user's own messages.
ME = "Me"
FRAMES = re.compile(r'\A\s*\{[^{}]*"backupTimeMs"')
MESSAGES = re.compile(r'\A\s*\[\s*\{(?=[\s\S]*"sent_at"\s*:\s*\d)(?=[\s\S]*"conversationId"\s*:)')
LINES = re.compile(r'\A\s*\{"date":\s*"[^"]*",\s*"sender":\s*"')
ENVELOPES = re.compile(r'\A\s*\{(?:[^{}]*"params"\s*:\s*\{)?[^{}]*"envelope"\s*:\s*\{')


# The name or id of a conversation, and a turn of it.
Message = tuple[str, Turn]


def _of_frames(data: bytes) -> Iterator[Message]:
    """Signal Desktop's plain export, in which 64-bit numbers are strings."""
    names: dict[str, str] = {}
    chats: dict[str, str] = {}
    for frame in msgspec.json.Decoder().decode_lines(data):
        recipient, chat, item = (value_at(frame, key) for key in ("recipient", "chat", "chatItem"))
        if recipient:
            names[text_at(recipient, "id")] = _recipient_name(recipient)
        elif chat:
            name = names.get(text_at(chat, "recipientId"))
            chats[text_at(chat, "id")] = name or f"Conversation {text_at(chat, 'id')}"
        elif item:
            speaker = (
                ME if value_at(item, "outgoing") is not None else names.get(text_at(item, "authorId"), "")
            )
            text = text_at(item, "standardMessage", "text", "body")
            yield chats.get(text_at(item, "chatId"), ""), Turn(speaker, _seconds(item, "dateSent"), text)


def _recipient_name(recipient: Any) -> str:
    """The title of a group; of a contact, the name in the address book or profile, or the number."""
    if group := value_at(recipient, "group"):
        return text_at(group, "snapshot", "title", "title")
    contact = value_at(recipient, "contact")
    names = (
        f"{text_at(contact, f'{kind}GivenName')} {text_at(contact, f'{kind}FamilyName')}".strip()
        for kind in ("system", "profile")
    )
    return next(filter(None, names), text_at(contact, "e164"))


def _of_messages(data: bytes) -> Iterator[Message]:
    """Messages of Signal Desktop's database."""
    for one in msgspec.json.decode(data, type=list[Any]):
        speaker = ME if value_at(one, "type") == "outgoing" else text_at(one, "source") or "Contact"
        turn = Turn(speaker, _seconds(one, "sent_at"), text_at(one, "body"))
        yield text_at(one, "conversationId"), turn


def _of_lines(data: bytes) -> Iterator[Message]:
    """The `data.json` of signal-export."""
    for one in msgspec.json.Decoder().decode_lines(data):
        yield "", Turn(text_at(one, "sender"), text_at(one, "date"), text_at(one, "body"))


def _of_envelopes(data: bytes) -> Iterator[Message]:
    """What signal-cli received, bare or as JSON-RPC notifications."""
    names: dict[str, str] = {}
    for line in msgspec.json.Decoder().decode_lines(data):
        envelope = value_at(line, "envelope") or value_at(line, "params", "envelope")
        source = text_at(envelope, "source")
        name = names[source] = text_at(envelope, "sourceName") or source
        message, speaker, partner = value_at(envelope, "dataMessage"), name, name
        if sent := value_at(envelope, "syncMessage", "sentMessage"):
            message, speaker = sent, ME
            number = text_at(sent, "destinationNumber") or text_at(sent, "destination")
            partner = names.get(number, number)
        if message:
            group = value_at(message, "groupInfo")
            conversation = (text_at(group, "groupName") or text_at(group, "groupId")) if group else partner
            yield conversation, Turn(speaker, _seconds(message, "timestamp"), text_at(message, "message"))


FORMS = {FRAMES: _of_frames, MESSAGES: _of_messages, LINES: _of_lines, ENVELOPES: _of_envelopes}


def is_export(beginning: str) -> bool:
    """Whether the beginning of a JSON text is that of a Signal export."""
    return any(pattern.search(beginning) for pattern in FORMS)


def read(path: Path, data: bytes) -> FileText:
    """The conversations, one paragraph per turn. Raises NotText."""
    beginning = data[:BEGINNING].decode(errors="replace")
    form = next(form for pattern, form in FORMS.items() if pattern.search(beginning))
    conversations: dict[str, list[Turn]] = defaultdict(list)
    try:
        for conversation, turn in form(data):
            if turn.text.strip():
                conversations[conversation].append(turn)
    except DECODE_ERRORS:
        raise Damaged("Signal export") from None
    builder = TextBuilder()
    if len(conversations) == 1:
        [(title, turns)] = conversations.items()
        title = title or path.parent.name  # signal-export writes one folder per conversation
        add_turns(builder, title, turns)
        return builder.build(title or path.name)
    for number, (title, turns) in enumerate(conversations.items(), 1):
        add_turns(builder, title, turns, f"conversation {number} ")
    return builder.build(path.name)


def _seconds(value: Any, key: str) -> str:
    """A time in milliseconds, as seconds since 1970; "" if it is missing or not a number."""
    with suppress(TypeError, ValueError, OverflowError):
        return str(int(value_at(value, key)) / 1000)
    return ""
