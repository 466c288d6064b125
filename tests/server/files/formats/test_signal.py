"""Messages of Signal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files.formats.signal import is_export, read
from ragmemory.files.reading import read_file

SENT = 1_700_000_000_000


def lines(*values: object) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


def item(author: str, direction: str, text: str) -> object:
    message = {"text": {"body": text}}
    item = {"chatId": "7", "authorId": author, "dateSent": str(SENT), direction: {}}
    return {"chatItem": item | {"standardMessage": message}}


FRAMES = lines(
    {"version": "1", "backupTimeMs": str(SENT)},
    {"account": {"givenName": "Eve"}},
    {"recipient": {"id": "1", "self": {}}},
    {"recipient": {"id": "2", "contact": {"e164": "49170", "profileGivenName": "Ada"}}},
    {"chat": {"id": "7", "recipientId": "2"}},
    item("2", "incoming", "Where is the key?"),
    item("1", "outgoing", "Under the mat."),
    {"chatItem": {"chatId": "7", "authorId": "2", "dateSent": str(SENT), "updateMessage": {}}},
)
MESSAGES = json.dumps(
    [
        {
            "conversationId": "c1",
            "type": "incoming",
            "body": "Where is the key?",
            "sent_at": SENT,
            "source": "Ada",
        },
        {"conversationId": "c1", "type": "outgoing", "body": "Under the mat.", "sent_at": SENT},
        {"conversationId": "c1", "type": "call-history", "body": None, "sent_at": SENT},
    ]
)
EXPORTED = lines(
    {"date": "2023-11-14T22:13:20", "sender": "Ada", "body": "Where is the key?", "quote": ""},
    {"date": "2023-11-14T22:13:20", "sender": "Me", "body": "Under the mat.  ", "reactions": []},
)
RECEIVED = {"source": "+49170", "sourceName": "Ada", "timestamp": SENT}
ANSWER = {"destinationNumber": "+49170", "timestamp": SENT, "message": "Under the mat."}
ENVELOPES = (
    {"envelope": RECEIVED | {"dataMessage": {"timestamp": SENT, "message": "Where is the key?"}}},
    {"envelope": RECEIVED | {"receiptMessage": {"when": SENT}}},
    {"envelope": {"source": "+49171", "syncMessage": {"sentMessage": ANSWER}}, "account": "+49171"},
)
NOTIFICATIONS = ({"jsonrpc": "2.0", "method": "receive", "params": one} for one in ENVELOPES)


@pytest.mark.parametrize(
    ("export", "title"),
    [
        (FRAMES, "Ada"),
        (MESSAGES, "c1"),
        (EXPORTED, "Ada L"),
        (lines(*ENVELOPES), "Ada"),
        (lines(*NOTIFICATIONS), "Ada"),
    ],
    ids=["Signal Desktop", "its database", "signal-export", "signal-cli", "signal-cli jsonRpc"],
)
def test_an_export_is_recognised_and_read_turn_by_turn(export: str, title: str) -> None:
    assert is_export(export)
    found = read(Path("Ada L/data.json"), export.encode())
    assert found.text == (
        f"# {title}\n\n**Ada** (2023-11-14 22:13): Where is the key?\n\n"
        "**Me** (2023-11-14 22:13): Under the mat.\n"
    )
    assert (found.title, [label for _, label in found.places]) == (title, [*["message 1"] * 2, "message 2"])


def test_conversations_of_one_file_are_kept_apart() -> None:
    group = {"groupId": "g=", "groupName": "Boat"}
    other = {"timestamp": SENT, "message": "Who rows?", "groupInfo": group}
    export = lines(*ENVELOPES, {"envelope": RECEIVED | {"dataMessage": other}})
    found = read(Path("messages.jsonl"), export.encode())
    assert [label for _, label in found.places][-1] == "conversation 2 message 1"
    assert "# Boat\n\n**Ada** (2023-11-14 22:13): Who rows?" in found.text


@pytest.mark.parametrize("text", ["{}", "[]", '{"date": 1}', '{"a": {"envelope": {}}}', '[{"sent_at": 1}]'])
def test_other_json_is_not_an_export(text: str) -> None:
    assert not is_export(text)


def test_a_damaged_export_is_refused() -> None:
    with pytest.raises(NotText, match="is a damaged Signal export"):
        read(Path("data.json"), EXPORTED.encode()[:-9])


@pytest.mark.parametrize("name", ["data.json", "main.jsonl"])
def test_an_export_is_recognised_by_its_content(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text(EXPORTED, encoding="utf-8")
    assert read_file(file) == "signal"
