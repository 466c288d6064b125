"""Messages of Signal in JSON. They are recognised by their content.

Four forms: the plain export of Signal Desktop (frames of its backup, one a line), a list of messages from its
database (as sigtop writes it), `data.json` of signal-export, and what `signal-cli --output=json` prints.
signal-export's Markdown needs no parser.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from ragmemory.files.formats.chats import BEGINNING, Turn, add_turns
from ragmemory.files.formats.read import Damaged, Read, TextBuilder

# The user's own name in the text.
ME = "Me"
FRAMES = re.compile(r'\A\s*\{[^{}]*"backupTimeMs"')
MESSAGES = re.compile(r'\A\s*\[\s*\{(?=[\s\S]*"sent_at"\s*:\s*\d)(?=[\s\S]*"conversationId"\s*:)')
LINES = re.compile(r'\A\s*\{"date":\s*"[^"]*",\s*"sender":\s*"')
ENVELOPES = re.compile(r'\A\s*\{(?:[^{}]*"params"\s*:\s*\{)?[^{}]*"envelope"\s*:\s*\{')

Milliseconds = int | str | None


class Message(NamedTuple):
    conversation: str  # its name, or what else tells it from others
    turn: Turn


# Signal Desktop's plain export. Numbers of 64 bits are texts in it.


class Text(Struct, frozen=True):
    body: str = ""


class StandardMessage(Struct, frozen=True):
    text: Text = Text()


class ChatItem(Struct, frozen=True, rename="camel"):
    chat_id: str
    author_id: str
    date_sent: Milliseconds = None
    outgoing: dict[str, object] | None = None
    standard_message: StandardMessage = StandardMessage()


class Chat(Struct, frozen=True, rename="camel"):
    id: str
    recipient_id: str


class Title(Struct, frozen=True):
    title: str = ""


class Snapshot(Struct, frozen=True):
    title: Title = Title()


class Group(Struct, frozen=True):
    snapshot: Snapshot = Snapshot()


class Contact(Struct, frozen=True, rename="camel"):
    profile_given_name: str = ""
    profile_family_name: str = ""
    system_given_name: str = ""
    system_family_name: str = ""
    e164: str = ""

    @property
    def name(self) -> str:
        system = f"{self.system_given_name} {self.system_family_name}".strip()
        return system or f"{self.profile_given_name} {self.profile_family_name}".strip() or self.e164


class Recipient(Struct, frozen=True):
    id: str
    contact: Contact | None = None
    group: Group | None = None

    @property
    def name(self) -> str:
        if self.group is not None:
            return self.group.snapshot.title.title
        return self.contact.name if self.contact is not None else ""


class Frame(Struct, frozen=True, rename="camel"):
    recipient: Recipient | None = None
    chat: Chat | None = None
    chat_item: ChatItem | None = None


def _of_frames(data: bytes) -> Iterator[Message]:
    names: dict[str, str] = {}
    chats: dict[str, str] = {}
    for frame in msgspec.json.Decoder(Frame).decode_lines(data):
        if frame.recipient is not None:
            names[frame.recipient.id] = frame.recipient.name
        elif frame.chat is not None:
            recipient = frame.chat.recipient_id
            chats[frame.chat.id] = names.get(recipient) or f"Conversation {frame.chat.id}"
        elif (item := frame.chat_item) is not None:
            speaker = ME if item.outgoing is not None else names.get(item.author_id, "")
            turn = Turn(speaker, _seconds(item.date_sent), item.standard_message.text.body)
            yield Message(chats.get(item.chat_id, ""), turn)


# Messages of Signal Desktop's database


class DesktopMessage(Struct, frozen=True, rename={"conversation": "conversationId"}):
    type: str = ""
    body: str | None = ""
    sent_at: Milliseconds = None
    source: str | None = ""
    conversation: str = ""


def _of_messages(data: bytes) -> Iterator[Message]:
    for one in msgspec.json.decode(data, type=list[DesktopMessage]):
        speaker = ME if one.type == "outgoing" else one.source or "Contact"
        yield Message(one.conversation, Turn(speaker, _seconds(one.sent_at), one.body or ""))


# signal-export


class ExportedMessage(Struct, frozen=True):
    date: str
    sender: str
    body: str | None = ""


def _of_lines(data: bytes) -> Iterator[Message]:
    for one in msgspec.json.Decoder(ExportedMessage).decode_lines(data):
        yield Message("", Turn(one.sender, one.date, one.body or ""))


# signal-cli


class GroupInfo(Struct, frozen=True, rename="camel"):
    group_id: str = ""
    group_name: str | None = ""


class DataMessage(Struct, frozen=True, rename="camel"):
    timestamp: Milliseconds = None
    message: str | None = ""
    group_info: GroupInfo | None = None
    destination_number: str | None = ""
    destination: str | None = ""


class SyncMessage(Struct, frozen=True, rename="camel"):
    sent_message: DataMessage | None = None


class Envelope(Struct, frozen=True, rename="camel"):
    source: str | None = ""
    source_name: str | None = ""
    data_message: DataMessage | None = None
    sync_message: SyncMessage | None = None


class Received(Struct, frozen=True):
    envelope: Envelope = Envelope()


class Line(Struct, frozen=True):
    """What was received, bare or as a notification of JSON-RPC."""

    envelope: Envelope | None = None
    params: Received = Received()


def _of_envelopes(data: bytes) -> Iterator[Message]:
    names: dict[str, str] = {}
    for line in msgspec.json.Decoder(Line).decode_lines(data):
        envelope = line.envelope or line.params.envelope
        name = envelope.source_name or envelope.source or ""
        names[envelope.source or ""] = name
        message, speaker, partner = envelope.data_message, name, name
        if envelope.sync_message is not None and envelope.sync_message.sent_message is not None:
            message, speaker = envelope.sync_message.sent_message, ME
            number = message.destination_number or message.destination or ""
            partner = names.get(number, number)
        if message is not None:
            group = message.group_info
            conversation = (group.group_name or group.group_id) if group is not None else partner
            yield Message(conversation, Turn(speaker, _seconds(message.timestamp), message.message or ""))


FORMS = (
    *((FRAMES, _of_frames), (MESSAGES, _of_messages)),
    *((LINES, _of_lines), (ENVELOPES, _of_envelopes)),
)


def is_export(beginning: str) -> bool:
    """Whether a JSON text holds messages of Signal, by its beginning."""
    return any(pattern.search(beginning) for pattern, _ in FORMS)


def read(path: Path, data: bytes) -> Read:
    """The conversations, a turn a paragraph. Raises NotText."""
    beginning = data[:BEGINNING].decode(errors="replace")
    form = next(form for pattern, form in FORMS if pattern.search(beginning))
    conversations: dict[str, list[Turn]] = defaultdict(list)
    try:
        for message in form(data):
            if message.turn.text.strip():
                conversations[message.conversation].append(message.turn)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Damaged("Signal export") from None
    builder = TextBuilder()
    if len(conversations) == 1:
        [(title, turns)] = conversations.items()
        title = title or path.parent.name  # signal-export: a folder a conversation
        add_turns(builder, title, turns)
        return builder.read(title or path.name)
    for number, (title, turns) in enumerate(conversations.items(), 1):
        add_turns(builder, title, turns, f"conversation {number} ")
    return builder.read(path.name)


def _seconds(milliseconds: Milliseconds) -> str:
    """Seconds since 1970, as `Turn` has them."""
    try:
        return str(int(milliseconds or 0) / 1000) if milliseconds else ""
    except ValueError:
        return ""
