"""Filters in the SQL of SQLite. Covers `ragmemory.stores.sqlite.dialect`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from ragmemory.errors import BadArgument
from ragmemory.stores.filters import compile_filter, timestamp
from ragmemory.stores.sqlite.dialect import SqliteDialect
from tests.support.memories import EMBEDDER, write_of
from tests.support.stores import BOTH_ENGINES, store_at

DOCUMENTS: dict[str, dict[str, Any]] = {
    "note": {"uri": "file:///notes/a.md", "tags": ["red", "blue"], "year": 2019, "draft": True},
    "paper": {"uri": "file:///papers/b.md", "tags": ["red"], "year": 2020.5, "created_at": "2020-06-01"},
    "mail": {"uri": "mail:1", "from": {"name": "Ada", "id": 1}, "created_at": "2021-01-01T00:00:00+02:00"},
    "odd": {"uri": "odd", 'a"b.$c': "x", "draft": False, "year": None},
}


async def passing(folder: Path, filter: dict[str, Any]) -> list[str]:
    store = store_at(folder / "m.db", 5, 100)
    await store.engine.ensure_open()
    try:
        await store.write([write_of(name, metadata) for name, metadata in DOCUMENTS.items()], EMBEDDER)
        return [
            list(DOCUMENTS)[chunk_id - 1]
            for chunk_id in await store.passages.allowed(compile_filter(filter, store.engine.dialect))
        ]
    finally:
        await store.engine.close()


@BOTH_ENGINES
@pytest.mark.parametrize(
    ("filter", "names"),
    [
        ({}, ["note", "paper", "mail", "odd"]),
        ({"uri": "file:///*"}, ["note", "paper"]),
        ({"uri": "file:///notes/?.md"}, ["note"]),
        ({"tags": ["red"]}, ["note", "paper"]),
        ({"tags": ["blue", "red"]}, ["note"]),
        ({"tags": "blue"}, ["note"]),
        ({"tags": []}, ["note", "paper", "mail", "odd"]),
        ({"created_before": "2020-12-31"}, ["paper"]),
        ({"created_after": "2020-06-01", "created_before": "2020-12-31T22:00:00Z"}, ["paper"]),
        ({"created_after": "2020-12-31T22:00:00Z", "created_before": "2021-02-01"}, ["mail"]),
        ({"year": 2019}, ["note"]),
        ({"year": 2019.0}, ["note"]),
        ({"year": 2020.5}, ["paper"]),
        ({"year": "2019"}, []),
        ({"year": None}, ["mail", "odd"]),
        ({"draft": True}, ["note"]),
        ({"draft": False}, ["odd"]),
        ({"draft": 1}, []),
        ({"from": {"id": 1, "name": "Ada"}}, ["mail"]),
        ({'a"b.$c': "x"}, ["odd"]),
        ({"a' OR 1 --": "x"}, []),
        ({"tags": ["red"], "year": 2019}, ["note"]),
    ],
    ids=str,
)
async def test_a_filter_lets_pass_what_holds_all_of_it(
    tmp_path: Path, filter: dict[str, Any], names: list[str]
) -> None:
    assert await passing(tmp_path, filter) == names


@BOTH_ENGINES
async def test_without_a_date_of_its_own_a_document_has_the_one_it_was_added(tmp_path: Path) -> None:
    assert await passing(tmp_path, {"created_after": "2024-01-01"}) == ["note", "odd"]


@pytest.mark.parametrize(
    ("filter", "sentence"),
    [
        ({"uri": 5}, "filter.uri must be a glob, such as file:///notes/*."),
        ({"tags": [1]}, "filter.tags must be a list of texts."),
        (
            {"created_after": "soon"},
            "filter.created_after must be a date or time in ISO 8601, such as 2026-01-31.",
        ),
        (
            {"created_before": 7},
            "filter.created_before must be a date or time in ISO 8601, such as 2026-01-31.",
        ),
        ({"uri": "*" * 60_000}, "filter.uri is longer than 4,096 characters."),
        ({"uri": "a\0*"}, "filter.uri holds a NUL character."),
        ({"tags": ["t"] * 900}, "filter.tags names more than 100 tags."),
        ({str(key): 1 for key in range(101)}, "filter has more than 100 conditions."),
        ({"a": {"b\0": 1}}, "filter.a has a key that holds a NUL character."),
        ({"a": ["\ud800"]}, "filter.a[0] holds half a character, the lone surrogate U+D800."),
        ({"a": float("nan")}, "filter.a is not a finite number."),
        ({"a": "x" * 70_000}, "filter is longer than 65,536 bytes of JSON."),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_filter_that_cannot_be_answered_is_refused(filter: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadArgument) as caught:
        compile_filter(filter, SqliteDialect())
    assert str(caught.value) == sentence


@BOTH_ENGINES
async def test_the_largest_filter_is_answered(tmp_path: Path) -> None:
    conditions: dict[str, Any] = {str(key): None for key in range(98)}
    assert await passing(tmp_path, conditions | {"tags": ["red"] * 100, "uri": "*"}) == ["note", "paper"]


@BOTH_ENGINES
@pytest.mark.parametrize(
    "glob", ["*a" * 2047 + "b", "*" + "[a]" * 1364 + "b", "*" + "a" * 4094 + "b", "*[!b]" * 819 + "b"]
)
async def test_no_glob_takes_long(tmp_path: Path, glob: str) -> None:
    uri = "a" * 4096
    store = store_at(tmp_path / "m.db", 5, 100)
    await store.engine.ensure_open()
    try:
        await store.write([write_of("text", {"uri": uri})], EMBEDDER)
        start = time.monotonic()
        assert await store.passages.allowed(compile_filter({"uri": glob}, store.engine.dialect)) == []
        assert time.monotonic() - start < 2  # 0.03 s; a matcher that tries everything never ends
    finally:
        await store.engine.close()


def test_a_time_without_a_zone_is_utc() -> None:
    assert timestamp("1970-01-02") == timestamp("1970-01-02T00:00:00Z") == 86_400
    assert timestamp("1970-01-01T01:00:00+01:00") == 0
    assert timestamp("yesterday") is None
    assert timestamp(3) is None
