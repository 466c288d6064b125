"""Exports of chats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files.formats.chats import is_export, read
from ragmemory.files.formats.detection import Parser
from ragmemory.files.formats.file_text import FileText
from ragmemory.files.reading import read_file

CHATGPT = [
    {
        "title": "Tea",
        "mapping": {
            "root": {"message": None, "parent": None},
            "a": {
                "message": {
                    "author": {"role": "user"},
                    "content": {"parts": ["How hot?", {"image": 1}]},
                    "create_time": 1700000000.5,
                },
                "parent": "root",
            },
            "abandoned": {
                "message": {"author": {"role": "assistant"}, "content": {"parts": ["No."]}},
                "parent": "a",
            },
            "b": {
                "message": {"author": {"role": "assistant"}, "content": {"parts": ["80 degrees."]}},
                "parent": "a",
            },
        },
        "current_node": "b",
    }
]
CLAUDE = [
    {
        "uuid": "1",
        "name": "Boats",
        "chat_messages": [
            {"sender": "human", "text": "How long?", "created_at": "2026-05-03T10:42:07.1Z"},
            {"sender": "assistant", "text": "Nine metres.\n\nOr ten."},
        ],
    }
]
SLACK = [
    {
        "type": "message",
        "user": "U1",
        "user_profile": {"real_name": "Ada"},
        "ts": "1700000000.0001",
        "text": "Hi",
    },
    {
        "type": "message",
        "user": "U2",
        "user_profile": {"real_name": ""},
        "ts": "1700000060.0001",
        "text": "Hello",
    },
]


@pytest.mark.parametrize(
    ("export", "text"),
    [
        (CHATGPT, "# Tea\n\n**User** (2023-11-14 22:13): How hot?\n\n**Assistant**: 80 degrees.\n"),
        (
            CLAUDE,
            "# Boats\n\n**User** (2026-05-03 10:42): How long?\n\n**Assistant**: Nine metres.\n\nOr ten.\n",
        ),
        (SLACK, "# team 2023-11-14\n\n**Ada** (2023-11-14 22:13): Hi\n\n**U2** (2023-11-14 22:14): Hello\n"),
    ],
    ids=["chatgpt", "claude", "slack"],
)
def test_an_export_is_recognised_and_read_turn_by_turn(export: object, text: str) -> None:
    data = json.dumps(export)
    assert is_export(data)
    assert read(Path("team/2023-11-14.json"), data.encode()).text == text


def test_the_places_are_the_messages_of_the_conversations() -> None:
    found = read(Path("conversations.json"), json.dumps([*CLAUDE, *CLAUDE]).encode())
    assert [label for _, label in found.places][-2:] == [
        "conversation 2 message 1",
        "conversation 2 message 2",
    ]


@pytest.mark.parametrize("text", ["{}", '[{"mapping": {}}]', '{"type": "message"}', '{"ts": "1.2"}'])
def test_other_json_is_not_an_export(text: str) -> None:
    assert not is_export(text)


def test_a_damaged_export_is_refused() -> None:
    with pytest.raises(NotText, match="is a damaged chat export"):
        read(Path("conversations.json"), json.dumps(CLAUDE).encode()[:-1])


def test_json_is_parsed_only_if_it_is_an_export(tmp_path: Path) -> None:
    export, other = tmp_path / "conversations.json", tmp_path / "other.json"
    export.write_text(json.dumps(CLAUDE), encoding="utf-8")
    other.write_text('{"a": 1}', encoding="utf-8")
    assert read_file(export) == Parser("chats")
    assert isinstance(read_file(other), FileText)
