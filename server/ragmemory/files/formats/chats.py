"""JSON exports of chats from ChatGPT, Claude and Slack, recognised by their content.

`signal` reads Signal's, which has several forms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct, field

from ragmemory.files.formats.file_text import Damaged, FileText, TextBuilder, one_line

# Characters at the beginning of an export in which one of these patterns occurs; other JSON hardly matches.
BEGINNING = 10_000
CHATGPT = re.compile(r'"mapping"\s*:\s*\{\s*"[^"]+"\s*:\s*\{')
CLAUDE = re.compile(r'"chat_messages"\s*:\s*\[')
SLACK = re.compile(r'\A(?=.*"type"\s*:\s*"message").*"ts"\s*:\s*"\d+\.\d+"', re.DOTALL)


class Turn(NamedTuple):
    speaker: str
    at: str  # ISO 8601, or seconds since 1970; "" if it is not known
    text: str


class Author(Struct, frozen=True):
    role: str = ""


class Content(Struct, frozen=True):
    parts: list[object] = []


class Message(Struct, frozen=True):
    author: Author = Author()
    content: Content = Content()
    create_time: float | None = None


class Node(Struct, frozen=True):
    message: Message | None = None
    parent: str | None = None


class ChatGPT(Struct, frozen=True):
    mapping: dict[str, Node]
    title: str | None = ""
    current_node: str | None = None

    def turns(self) -> Iterator[Turn]:
        """The current branch, from its beginning, without messages of tools and the system."""
        branch: list[Message] = []
        seen: set[str] = set()
        name = self.current_node or next(reversed(self.mapping), None)
        while name in self.mapping and name not in seen:
            seen.add(name)
            node = self.mapping[name]
            if node.message is not None and node.message.author.role in ("user", "assistant"):
                branch.append(node.message)
            name = node.parent
        for message in reversed(branch):
            text = "\n".join(part for part in message.content.parts if isinstance(part, str))
            yield Turn(message.author.role.capitalize(), str(message.create_time or ""), text)


class ClaudeMessage(Struct, frozen=True):
    sender: str
    text: str = ""
    created_at: str = ""


class Claude(Struct, frozen=True):
    chat_messages: list[ClaudeMessage]
    title: str | None = field(name="name", default="")

    def turns(self) -> Iterator[Turn]:
        for message in self.chat_messages:
            speaker = "User" if message.sender == "human" else message.sender.capitalize()
            yield Turn(speaker, message.created_at, message.text)


class SlackProfile(Struct, frozen=True):
    real_name: str = ""


class SlackMessage(Struct, frozen=True):
    ts: str
    text: str = ""
    user: str = ""
    user_profile: SlackProfile = SlackProfile()


def is_export(beginning: str) -> bool:
    """Whether the beginning of a JSON text is that of a chat export."""
    return any(pattern.search(beginning) for pattern in (CHATGPT, CLAUDE, SLACK))


def read(path: Path, data: bytes) -> FileText:
    """The conversations of an export, one paragraph per turn. Raises NotText."""
    beginning = data[:BEGINNING].decode(errors="replace")
    builder = TextBuilder()
    try:
        if SLACK.search(beginning):
            messages = msgspec.json.decode(data, type=list[SlackMessage])
            turns = (Turn(one.user_profile.real_name or one.user, one.ts, one.text) for one in messages)
            channel = f"{path.parent.name} {path.stem}"  # one folder per channel, one file per day
            add_turns(builder, channel, turns)
            return builder.build(channel)
        conversations: Sequence[ChatGPT | Claude]
        if CLAUDE.search(beginning):
            conversations = msgspec.json.decode(data, type=list[Claude])
        else:
            conversations = msgspec.json.decode(data, type=list[ChatGPT])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Damaged("chat export") from None
    for number, conversation in enumerate(conversations, 1):
        add_turns(builder, conversation.title or "", conversation.turns(), f"conversation {number} ")
    return builder.build(path.name)


def add_turns(builder: TextBuilder, title: str, turns: Iterable[Turn], where: str = "") -> None:
    """Append a conversation, one paragraph per non-empty turn. `where` is the prefix of its places."""
    is_begun = False
    for number, turn in enumerate((turn for turn in turns if turn.text.strip()), 1):
        place = f"{where}message {number}"
        if title and not is_begun:
            builder.add(f"# {one_line(title)}", place)
        is_begun = True
        at = f" ({_shown(turn.at)})" if turn.at else ""
        builder.add(f"**{one_line(turn.speaker) or 'Unknown'}**{at}: {turn.text.strip()}", place)


def _shown(at: str) -> str:
    """A time for display, in UTC."""
    try:
        moment = datetime.fromtimestamp(float(at), UTC)
    except (ValueError, OverflowError, OSError):
        return one_line(at)[:16].replace("T", " ")
    return moment.strftime("%Y-%m-%d %H:%M")
