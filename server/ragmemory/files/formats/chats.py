"""JSON exports of chats from ChatGPT, Claude and Slack, recognised by their content.

`signal` reads Signal's, which has several forms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ragcommon.errors import DECODE_ERRORS
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


def value_at(value: Any, *path: str) -> Any:
    """The value at a path of object keys; None if there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text_at(value: Any, *path: str) -> str:
    """The text at a path; "" if there is none."""
    found = value_at(value, *path)
    return found if isinstance(found, str) else ""


def _chatgpt_turns(conversation: Any) -> Iterator[Turn]:
    """The current branch, from its beginning, without messages of tools and the system."""
    nodes = value_at(conversation, "mapping") or {}
    branch: list[Any] = []
    seen: set[str] = set()
    name = text_at(conversation, "current_node") or next(reversed(nodes), "")
    while name in nodes and name not in seen:
        seen.add(name)
        branch.append(value_at(nodes, name, "message"))
        name = text_at(nodes, name, "parent")
    for message in reversed(branch):
        role = text_at(message, "author", "role")
        if role in ("user", "assistant"):
            parts = value_at(message, "content", "parts") or ()
            text = "\n".join(part for part in parts if isinstance(part, str))
            yield Turn(role.capitalize(), str(value_at(message, "create_time") or ""), text)


def _claude_turns(conversation: Any) -> Iterator[Turn]:
    for message in value_at(conversation, "chat_messages") or ():
        sender = text_at(message, "sender")
        speaker = "User" if sender == "human" else sender.capitalize()
        yield Turn(speaker, text_at(message, "created_at"), text_at(message, "text"))


def _slack_turns(messages: Sequence[Any]) -> Iterator[Turn]:
    for one in messages:
        speaker = text_at(one, "user_profile", "real_name") or text_at(one, "user")
        yield Turn(speaker, text_at(one, "ts"), text_at(one, "text"))


def repaired(text: str) -> str:
    """A text without the damage that Facebook's exports have: UTF-8 that was read as Latin-1."""
    if not text.isascii():
        with suppress(UnicodeError):
            return text.encode("latin-1").decode()
    return text


def is_export(beginning: str) -> bool:
    """Whether the beginning of a JSON text is that of a chat export."""
    return any(pattern.search(beginning) for pattern in (CHATGPT, CLAUDE, SLACK))


def read(path: Path, data: bytes) -> FileText:
    """The conversations of an export, one paragraph per turn. Raises NotText."""
    beginning = data[:BEGINNING].decode(errors="replace")
    builder = TextBuilder()
    try:
        conversations = msgspec.json.decode(data, type=list[Any])
    except DECODE_ERRORS:
        raise Damaged("chat export") from None
    if SLACK.search(beginning):
        channel = f"{path.parent.name} {path.stem}"  # one folder per channel, one file per day
        add_turns(builder, channel, _slack_turns(conversations))
        return builder.build(channel)
    turns = _claude_turns if CLAUDE.search(beginning) else _chatgpt_turns
    for number, one in enumerate(conversations, 1):
        title = text_at(one, "name") or text_at(one, "title")
        add_turns(builder, title, turns(one), f"conversation {number} ")
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
