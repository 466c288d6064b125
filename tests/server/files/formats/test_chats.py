"""Exports of chats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files.formats.chats import is_export, read
from ragmemory.files.formats.detection import module_of
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
TELEGRAM = {
    "name": "Farid Haddad",
    "type": "personal_chat",
    "id": 111,
    "messages": [
        {
            "id": 1,
            "type": "service",
            "date": "2024-05-01T10:00:00",
            "actor": "Ich",
            "action": "x",
            "text": "",
        },
        {
            "id": 2,
            "type": "message",
            "date": "2024-05-02T10:15:00",
            "from": "Farid Haddad",
            "text": [
                "Here: ",
                {"type": "text_link", "text": "the map", "href": "https://example.org/m"},
                ", 88",
            ],
        },
        {
            "id": 3,
            "type": "message",
            "date": "2024-05-02T10:17:00",
            "from": "Ich",
            "reply_to_message_id": 2,
            "text": "Ja!",
        },
        {
            "id": 4,
            "type": "message",
            "date": "2024-05-02T10:18:00",
            "from": None,
            "forwarded_from": "Mama",
            "text": [{"type": "bold", "text": "Gute"}, " Nacht"],
        },
    ],
}
FACEBOOK = {
    "participants": [{"name": "Anne Dupr\u00c3\u00a9"}, {"name": "Me"}],
    "messages": [
        {"sender_name": "Me", "timestamp_ms": 1700000060000, "share": {"link": "https://example.org/a"}},
        {"sender_name": "Me", "timestamp_ms": 1700000030000, "photos": [{"uri": "a.jpg"}]},
        {
            "sender_name": "Anne Dupr\u00c3\u00a9",
            "timestamp_ms": 1700000000000,
            "content": "caf\u00c3\u00a9 \u00c3\u00a0 18h \u00f0\u009f\u0098\u0080",
        },
    ],
    "title": "Anne Dupr\u00c3\u00a9",
}


@pytest.mark.parametrize(
    ("export", "text"),
    [
        (CHATGPT, "# Tea\n\n**User** (2023-11-14 22:13): How hot?\n\n**Assistant**: 80 degrees.\n"),
        (
            CLAUDE,
            "# Boats\n\n**User** (2026-05-03 10:42): How long?\n\n**Assistant**: Nine metres.\n\nOr ten.\n",
        ),
        (SLACK, "# team 2023-11-14\n\n**Ada** (2023-11-14 22:13): Hi\n\n**U2** (2023-11-14 22:14): Hello\n"),
        (
            TELEGRAM,
            "# Farid Haddad\n\n**Farid Haddad** (2024-05-02 10:15): Here: the map (https://example.org/m), 88"
            "\n\n**Ich to Farid Haddad** (2024-05-02 10:17): Ja!\n\n"
            "**Deleted account, forwarded from Mama** (2024-05-02 10:18): Gute Nacht\n",
        ),
        (
            FACEBOOK,
            "# Anne Dupré\n\n**Anne Dupré** (2023-11-14 22:13): café à 18h 😀\n\n"
            "**Me** (2023-11-14 22:14): https://example.org/a\n",
        ),
    ],
    ids=["chatgpt", "claude", "slack", "telegram", "facebook"],
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


def test_all_data_of_telegram_holds_its_chats_and_left_chats() -> None:
    about = {"about": 'Here is "the data".'}
    export = {**about, "chats": {**about, "list": [TELEGRAM]}, "left_chats": {**about, "list": [TELEGRAM]}}
    for other, note in (
        ({}, ""),
        ({"contacts": {**about, "list": []}}, "has other data than chats, which is not read"),
    ):
        data = json.dumps({**about, **other, **export})
        assert is_export(data)
        found = read(Path("result.json"), data.encode())
        assert [label for _, label in found.places][::4] == [
            "conversation 1 message 1",
            "conversation 2 message 1",
        ]
        assert (found.title, found.note) == ("result.json", note)


def test_the_markup_of_slack_is_shown_as_its_text() -> None:
    def shown(text: str) -> str:
        named = {"type": "message", "user": "U2", "user_profile": {"real_name": "Oskar Weiß"}, "ts": "2.0"}
        export = [{"type": "message", "user": "U1", "ts": "1.0", "text": text}, named, {"user": "U2"}]
        return read(Path("shop/a.json"), json.dumps(export).encode()).text.rpartition("): ")[2].strip()

    for text, expected in (
        ("<@U2> and <@U3|ann>", "@Oskar Weiß and @ann"),
        ("<@U4> in <#C1|general> <!here> <!subteam^S1|@team>", "@U4 in #general @here @team"),
        ("<https://example.org/?a=1&amp;b=2|the plan>", "the plan (https://example.org/?a=1&b=2)"),
        ("<http://example.org|example.org> <mailto:a@b.org|a@b.org>", "http://example.org a@b.org"),
        ("R&amp;D &lt;b&gt; &amp;amp;", "R&D <b> &amp;"),
    ):
        assert shown(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '[{"mapping": {}}]',
        '{"mapping": {"type": {"const": 1}}}',
        '{"type": "message"}',
        '{"ts": "1.2"}',
        '{"about": "a", "contacts": {"b": 1}}',
    ],
)
def test_other_json_is_not_an_export(text: str) -> None:
    assert not is_export(text)


@pytest.mark.parametrize(
    "export",
    [
        {**TELEGRAM, "messages": [{"id": [1], "reply_to_message_id": {}, "from": "Ada", "text": "Hi"}]},
        {"messages": [{"sender_name": "Ada", "timestamp_ms": 10**400, "content": "Hi"}]},
    ],
    ids=["telegram", "facebook"],
)
def test_an_odd_value_leaves_the_text_of_its_message(export: object) -> None:
    found = read(Path("team/a.json"), json.dumps(export).encode()).text
    assert "**Ada**" in found
    assert found.endswith(": Hi\n")


def test_what_only_resembles_an_export_is_read_as_it_is() -> None:
    mapping = '{"mapping": {"properties": {"id": {"type": "keyword"}}}}'
    for text in (mapping, '[{"type": "message", "ts": "1.2"}]'):
        assert is_export(text)
        assert read(Path("a.json"), text.encode()).text == text
    lines = "".join(f"{json.dumps(one)}\n" for one in SLACK)
    assert is_export(lines)
    assert module_of(Path("a.jsonl"), lines.encode()) == "text"


def test_the_answer_of_slack_to_a_program_is_read() -> None:
    found = read(Path("shop/a.json"), json.dumps({"ok": True, "messages": SLACK}).encode())
    assert found.text.startswith("# shop a\n\n**Ada** (2023-11-14 22:13): Hi\n")


def test_a_damaged_export_is_refused() -> None:
    with pytest.raises(NotText, match="is a damaged chat export"):
        read(Path("conversations.json"), json.dumps(CLAUDE).encode()[:-1])


def test_json_is_parsed_only_if_it_is_an_export(tmp_path: Path) -> None:
    export, other = tmp_path / "conversations.json", tmp_path / "other.json"
    export.write_text(json.dumps(CLAUDE), encoding="utf-8")
    other.write_text('{"a": 1}', encoding="utf-8")
    assert read_file(export) == "chats"
    assert isinstance(read_file(other), FileText)
