"""A lease is held by one process at a time, and ends by the clock of the engine."""

from __future__ import annotations

import pytest

from ragmemory.stores import leases
from ragmemory.stores.leases import LeaseStore
from ragmemory.stores.store import Store


@pytest.fixture
def held(store: Store) -> LeaseStore:
    return LeaseStore(store.engine)


async def renew(store: Store, holder: str) -> bool:
    async with store.engine.transaction(ordered=False) as connection:
        return await leases.renew(connection, "work", holder)


async def end(store: Store) -> None:
    """As if the time of all leases had passed."""
    async with store.engine.transaction() as connection:
        await connection.execute("UPDATE leases SET until = 0")


async def test_one_holder_at_a_time_who_can_renew_it_and_release_it(store: Store, held: LeaseStore) -> None:
    assert await held.acquire("work", "a")
    assert not await held.acquire("work", "b")
    assert await held.acquire("other work", "b")
    assert await held.acquire("work", "a")
    assert await renew(store, "a")
    assert not await renew(store, "b")
    await held.release("work", "b")
    assert not await held.acquire("work", "b")
    await held.release("work", "a")
    assert await held.acquire("work", "b")


async def test_a_lease_that_has_ended_is_taken_and_its_holder_can_no_longer_renew_it(
    store: Store, held: LeaseStore
) -> None:
    assert await held.acquire("work", "a")
    await end(store)
    assert not await renew(store, "a")
    assert await held.acquire("work", "b")
    assert not await renew(store, "a")
    assert not await held.acquire("work", "a")


async def test_what_is_derived_changes_no_version_in_postgresql(
    store: Store, held: LeaseStore, memory_url: str
) -> None:
    before = await store.engine.version()
    assert await held.acquire("work", "a")
    assert (await store.engine.version() == before) == bool(memory_url)
