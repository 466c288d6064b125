"""Both sides in one process."""

from __future__ import annotations

import anyio
import pytest

from ragmcp.client.features import EraName
from ragmcp.errors import WireError
from tests.support.in_memory import memory_pair, open_memory
from tests.support.mcp_server import make_server


@pytest.mark.parametrize("era", [None, "modern", "legacy"])
async def test_a_client_and_a_server_meet_without_a_pipe(era: EraName | None) -> None:
    async with open_memory(make_server(), era=era) as client:
        assert (await client.call_tool("Add", {"a": 1}, timeout=5)).structured(dict) == {"total": 2}
        with pytest.raises(WireError):
            await client.call_tool("Nope", timeout=5)


async def test_what_the_body_raises_comes_out_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        async with open_memory(make_server()):
            raise ZeroDivisionError


async def test_what_one_end_writes_the_other_receives_until_it_is_closed() -> None:
    here, there = memory_pair()
    here.write(b"one")
    here.write(b"two")
    here.close()
    with anyio.fail_after(60):
        assert await there.receive() == b"one\ntwo\n"
        assert await there.receive() == b""
