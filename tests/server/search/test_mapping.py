"""The map of a memory, in each engine and with each index.

Covers `ragmemory.search.mapping` and `ragmemory.stores.embeddings`.
"""

from __future__ import annotations

import pytest

from ragmemory.search import mapping
from ragmemory.service import MemoryService
from tests.support.memories import put

TOPICS = {
    "tea": "Steep green tea leaves in the teapot for two minutes, then pour the tea into cups.",
    "boats": "The sailing boat left the harbour; its sails and its mast stood high over the sailors.",
    "bread": "Knead the dough of the bread, let the dough rise, and bake the loaf in the oven.",
}


async def fill(memory: MemoryService, each: int = 12) -> None:
    for number in range(each):
        for topic, text in TOPICS.items():
            await put(memory, f"# {topic} {number}\n\n{text}", uri=f"note:{topic}/{number}")


async def test_documents_about_the_same_are_one_cluster_named_by_its_words(memory: MemoryService) -> None:
    await fill(memory)
    points, clusters = await memory.map.make(100)
    assert len(points) == 36
    assert sum(cluster.documents for cluster in clusters) == 36
    topics = [
        {point.title.split()[0] for point in points if point.cluster == number}
        for number in range(len(clusters))
    ]
    assert all(len(topic) == 1 for topic in topics)
    for [topic], cluster in zip(topics, clusters, strict=True):
        assert set(cluster.words) & set(TOPICS[topic].lower().replace(",", "").split())
        assert not {"the", "and", "its"} & set(cluster.words)
    assert {(point.document_id, point.uri) for point in points} == {
        (one.document_id, one.uri) for one in (await memory.documents.page(100))[0]
    }


async def test_an_empty_memory_has_an_empty_map(memory: MemoryService) -> None:
    assert await memory.map.make(100) == ([], [])


async def test_a_single_document_is_a_map(memory: MemoryService) -> None:
    await put(memory, TOPICS["tea"], uri="note:tea")
    [point], [cluster] = await memory.map.make(100)
    assert (point.x, point.y, point.cluster, cluster.documents) == (0, 0, 0, 1)


async def test_a_map_is_made_once_for_each_state_of_memory(memory: MemoryService) -> None:
    await fill(memory, 2)
    first = await memory.map.make(100)
    assert await memory.map.make(100) is first
    await put(memory, TOPICS["tea"], uri="note:new")
    assert await memory.map.make(100, is_begun=True) is first
    points, _ = await memory.map.make(100)
    assert "note:new" in {point.uri for point in points}


async def test_a_sample_stands_for_more_documents_than_wanted(memory: MemoryService) -> None:
    await fill(memory, 4)
    points, _ = await memory.map.make(5)
    assert len({point.document_id for point in points}) == 5


async def test_a_long_document_is_one_point(memory: MemoryService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "VECTORS", 2)
    await put(memory, "".join(f"# {n}\n\n{TOPICS['tea']}\n\n" for n in range(40)), uri="note:long")
    await put(memory, TOPICS["boats"], uri="note:short")
    points, _ = await memory.map.make(100)
    assert {point.uri for point in points} == {"note:long", "note:short"}


def test_the_most_frequent_form_of_a_word_is_shown() -> None:
    assert mapping.telling([["Databases and a database", "a database"], ["a boat", "boats, boats"]]) == [
        ["database"],
        ["boats"],
    ]


def test_pairs_of_characters_name_texts_in_scripts_without_spaces() -> None:
    assert mapping.telling([["绿茶。绿茶"], ["面包。面包"]]) == [["绿茶"], ["面包"]]
