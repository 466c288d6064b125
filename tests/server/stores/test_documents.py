"""Documents as they are listed and found, and the passages that a search returns.

Covers `passages`.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from ragmemory.errors import (
    DocumentNotFound,
    MemoryDamaged,
)
from ragmemory.ingest.documents import document_id
from ragmemory.stores.store import Store
from tests.support.memories import EMBEDDER, write_of
from tests.support.stores import BOTH_ENGINES, SQLITE_ONLY, put

pytestmark = BOTH_ENGINES


async def test_phrases_are_found_in_any_script_and_hold_no_syntax(store: Store) -> None:
    texts = [
        "the quick brown fox",
        "吾輩は猫である。名前はまだ無い。",
        'say "NEAR(a b)" OR * : -x',
        "naïve café",
    ]
    await store.write([write_of(text, {"uri": text}, size=100) for text in texts], EMBEDDER)
    assert await store.passages.holding(["quick brown"], []) == {1}
    assert await store.passages.holding(["brown quick"], []) == set()
    assert await store.passages.holding(["猫である"], []) == {2}
    assert await store.passages.holding(["NEAR(a b) OR"], []) == {3}
    assert await store.passages.holding(['"', "* :"], []) == set()
    assert await store.passages.holding(["NAIVE cafe"], []) == {4}
    assert await store.passages.holding([], ["qui", "bro"]) == {1}
    assert await store.passages.holding(["heading"], []) == {1, 2, 3, 4}


async def test_hits_keep_the_order_of_the_scores_and_leave_out_removed_chunks(store: Store) -> None:
    await put(store, "one", "a", tags=["x"])
    await put(store, "two", "b")
    hits, damage = await store.passages.hits({2: 0.9, 77: 0.8, 1: 0.5})
    assert damage is None
    assert [(hit.rank, hit.score, hit.chunk_id, hit.text) for hit in hits] == [
        (1, 0.9, 2, "two"),
        (2, 0.5, 1, "one"),
    ]
    assert hits[1].metadata == {"uri": "a", "tags": ["x"]}


@SQLITE_ONLY
async def test_a_hit_that_cannot_be_read_is_left_out_with_a_warning_that_says_what_to_do(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("one", "two", "three"):
        await put(store, name, name)
    with closing(sqlite3.connect(store.path)) as other, other:
        other.execute("UPDATE documents SET metadata = '{' WHERE uri = 'one'")
        other.execute("UPDATE chunks SET text = CAST(x'ff' AS TEXT) WHERE chunk_id = 3")
    hits, damage = await store.passages.hits({1: 0.9, 2: 0.8, 3: 0.7})
    assert [(hit.rank, hit.text) for hit in hits] == [(1, "two")]
    assert isinstance(damage, MemoryDamaged)
    assert "`ragchat memory verify`" in caplog.text
    with pytest.raises(MemoryDamaged):
        await store.passages.hits({1: 0.9, 3: 0.7})


async def test_documents_are_listed_by_uri_in_pages(store: Store) -> None:
    await store.write([write_of("text", {"uri": f"file:///{name}"}) for name in "cab"], EMBEDDER)
    page, total = await store.documents.page(2, 0, {"uri": "*"})
    assert ([info.uri for info in page], total) == (["file:///a", "file:///b"], 3)
    page, total = await store.documents.page(2, 2, {"uri": "*"})
    assert ([info.uri for info in page], total) == (["file:///c"], 3)
    assert await store.documents.page(9, 0, {"uri": "http*"}) == ([], 0)


async def test_a_document_that_is_added_while_an_empty_page_is_read_is_not_counted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = store.engine.read

    async def read_and_add(sql: str, parameters: Any = ()) -> Any:
        rows = await read(sql, parameters)
        if "LIMIT" in sql:
            await put(store, "Green tea.", "tea.md")
        return rows

    monkeypatch.setattr(store.engine, "read", read_and_add)
    assert await store.documents.page(10) == ([], 0)  # A total of 1 would promise a page that is none.


async def test_an_id_that_is_the_uri_of_another_document_names_the_document_with_the_id(
    store: Store,
) -> None:
    for uri in map(str, range(5)):
        await put(store, "text", uri)
        await put(store, "text of another", document_id(uri))
        assert (await store.documents.find(document_id(uri))).uri == uri


async def test_a_document_goes_by_its_id_and_by_its_uri(store: Store) -> None:
    await put(store, "text" * 10)
    info = await store.documents.find("doc")
    assert await store.documents.find(info.document_id) == info
    assert (info.chunks, info.characters) == (2, 40)
    with pytest.raises(DocumentNotFound):
        await store.documents.find("nothing")
