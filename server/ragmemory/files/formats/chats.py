"""JSON exports of chats, recognised by their content: ChatGPT, Claude, Slack, Telegram, Facebook, Instagram.

`signal` reads Signal's, which has several forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ragcommon.errors import DECODE_ERRORS
from ragcommon.files.decoding import NoText
from ragmemory.files.formats import text
from ragmemory.files.formats.file_text import Damaged, FileText, TextBuilder, one_line

# Characters at the beginning of an export in which one of these patterns occurs; other JSON hardly matches.
BEGINNING = 10_000
CHATGPT = re.compile(r'"mapping"\s*:\s*\{\s*"[^"]+"\s*:\s*\{\s*"(?:id|message|parent|children)"\s*:')
CLAUDE = re.compile(r'"chat_messages"\s*:\s*\[')
TELEGRAM = re.compile(
    r'"type"\s*:\s*"\w+"\s*,\s*"id"\s*:\s*\d+\s*,\s*"messages"\s*:\s*\['  # A chat.
    # All data, of which the chats come last.
    r'|\A\s*\{\s*"about"\s*:\s*"(?:[^"\\]|\\.)*+"\s*,\s*'
    r'"(?:personal_information"\s*:\s*\{\s*"user_id"|(?:contacts|chats)"\s*:\s*\{\s*"about")'
)
FACEBOOK = re.compile(r'"sender_name"\s*:\s*"[^"]*"\s*,\s*"timestamp_ms"\s*:\s*\d')
SLACK = re.compile(r'\A(?=.*"type"\s*:\s*"message").*"ts"\s*:\s*"\d+\.\d+"', re.DOTALL)
SLACK_NAME = ("user_profile", "real_name")
# A user, channel or other mention; or an address, perhaps with another text.
SLACK_LINK = re.compile(r"<([@#!]?)([^<>|]+)(?:\|([^<>]*))?>")


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


def list_at(value: Any, *path: str) -> list[Any]:
    """The list at a path; an empty one if there is none."""
    found = value_at(value, *path)
    return found if isinstance(found, list) else []


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
            parts = list_at(message, "content", "parts")
            text = "\n".join(part for part in parts if isinstance(part, str))
            yield Turn(role.capitalize(), str(value_at(message, "create_time") or ""), text)


def _claude_turns(conversation: Any) -> Iterator[Turn]:
    for message in list_at(conversation, "chat_messages"):
        sender = text_at(message, "sender")
        speaker = "User" if sender == "human" else sender.capitalize()
        yield Turn(speaker, text_at(message, "created_at"), text_at(message, "text"))


def _slack_turns(messages: Any) -> Iterator[Turn]:
    """Messages without markup. The names of users are those of their own messages in the file."""
    names = {text_at(one, "user"): name for one in messages if (name := text_at(one, *SLACK_NAME))}

    def shown(link: re.Match[str]) -> str:
        kind, target, label = link[1], link[2], link[3] or ""
        if kind == "!":  # All who are here, a group or a date.
            return label or f"@{target}"
        if kind:
            return f"{kind}{names.get(target) or label or target}"
        return f"{label} ({target})" if label and label not in target else target.removeprefix("mailto:")

    for one in messages:
        user = text_at(one, "user")
        text = unescape(SLACK_LINK.sub(shown, text_at(one, "text")))
        yield Turn(names.get(user, user), text_at(one, "ts"), text)


def _telegram_turns(chat: Any) -> Iterator[Turn]:
    senders: dict[str, str] = {}
    for one in list_at(chat, "messages"):
        speaker = text_at(one, "from") or "Deleted account"
        senders[str(value_at(one, "id"))] = speaker
        replied = senders.get(str(value_at(one, "reply_to_message_id")))
        forwarded = text_at(one, "forwarded_from")
        about = f" to {replied}" if replied else f", forwarded from {forwarded}" if forwarded else ""
        parts = value_at(one, "text")
        text = "".join(map(_telegram_text, parts if isinstance(parts, list) else [parts]))
        yield Turn(f"{speaker}{about}", text_at(one, "date"), text)


def _telegram_text(part: Any) -> str:
    """A text, or a range with a format; a link may have another text than its address."""
    address = text_at(part, "href")
    return part if isinstance(part, str) else f"{text_at(part, 'text')}{f' ({address})' if address else ''}"


def _facebook_turns(chat: Any) -> Iterator[Turn]:
    """Messages, which the export has in reverse order."""
    for one in reversed(list_at(chat, "messages")):
        text = text_at(one, "content") or text_at(one, "share", "link")
        at = value_at(one, "timestamp_ms")
        yield Turn(
            repaired(text_at(one, "sender_name")),
            f"{at // 1000}" if isinstance(at, int) else "",
            repaired(text),
        )


def repaired(text: str) -> str:
    """A text without the damage that Facebook's exports have: UTF-8 that was read as Latin-1."""
    if not text.isascii():
        with suppress(UnicodeError):
            return text.encode("latin-1").decode()
    return text


def is_export(beginning: str) -> bool:
    """Whether the beginning of a JSON text is that of a chat export."""
    return any(pattern.search(beginning) for pattern in (CHATGPT, CLAUDE, SLACK, TELEGRAM, FACEBOOK))


def read(path: Path, data: bytes) -> FileText:
    """The conversations of an export, one paragraph per turn; other JSON as it is. Raises NotText."""
    try:
        return _read(path, data)
    except NoText:
        return text.read(path, data)


def _read(path: Path, data: bytes) -> FileText:
    beginning = data[:BEGINNING].decode(errors="replace")
    try:
        export = msgspec.json.decode(data, type=dict[str, Any] | list[Any])
    except DECODE_ERRORS:
        raise Damaged("chat export") from None
    if SLACK.search(beginning):
        messages = export if isinstance(export, list) else list_at(export, "messages")
        channel = f"{path.parent.name} {path.stem}"  # one folder per channel, one file per day
        return _conversation(channel, _slack_turns(messages))
    if FACEBOOK.search(beginning):
        return _conversation(repaired(text_at(export, "title")) or path.parent.name, _facebook_turns(export))
    turns: Callable[[Any], Iterator[Turn]] = _chatgpt_turns
    note = ""
    if TELEGRAM.search(beginning):
        if list_at(export, "messages"):
            return _conversation(text_at(export, "name") or path.parent.name, _telegram_turns(export))
        turns = _telegram_turns
        if isinstance(export, dict) and not export.keys() <= {"about", "chats", "left_chats"}:
            note = "has other data than chats, which is not read"
        export = [chat for key in ("chats", "left_chats") for chat in list_at(export, key, "list")]
    elif CLAUDE.search(beginning):
        turns = _claude_turns
    builder = TextBuilder()
    for number, one in enumerate(export if isinstance(export, list) else [export], 1):
        title = text_at(one, "name") or text_at(one, "title")
        add_turns(builder, title, turns(one), f"conversation {number} ")
    return builder.build(path.name, note)


def _conversation(title: str, turns: Iterable[Turn]) -> FileText:
    builder = TextBuilder()
    add_turns(builder, title, turns)
    return builder.build(title)


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
