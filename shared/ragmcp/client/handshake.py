"""How a client finds out which era and revision a server speaks. Source: basic/versioning."""

from __future__ import annotations

from msgspec import Raw

from ragmcp.client.core import Core
from ragmcp.errors import RequestTimedOut, WireError
from ragmcp.older_revisions import require_legacy
from ragmcp.protocol.eras import LATEST_MODERN, MODERN_ERRORS, UNSUPPORTED_VERSION, verdict
from ragmcp.protocol.results import complete, or_none, server_info
from ragmcp.protocol.schema.base import Params
from ragmcp.protocol.schema.discovery import DiscoverResult

# A server that does not answer `server/discover` is a legacy server: some ignore all requests before
# `initialize`.
PROBE_SECONDS = 5.0


async def negotiate(core: Core) -> None:
    """Find out the server's era, and shake hands with a legacy one. Raises UnsupportedRevision."""
    if await discover(core):
        return
    try:
        await initialize(core)
    except WireError as error:
        # It is a modern server that started too slowly for the first probe.
        if error.code not in MODERN_ERRORS or not await discover(core):
            raise


async def discover(core: Core) -> bool:
    """Find out whether the server is modern, and its revision. Raises UnsupportedRevision."""
    core.revision = LATEST_MODERN
    answer = await _probe(core)
    revision = verdict(answer)
    if revision is None:
        return False
    core.revision = revision
    if isinstance(answer, WireError) and answer.code == UNSUPPORTED_VERSION:
        answer = await _probe(core)
    if isinstance(answer, Raw) and (found := complete("server/discover", answer, DiscoverResult)):
        core.server = server_info(found)
        core.capabilities = found.capabilities
        core.instructions = or_none(found.instructions)
    return True


async def _probe(core: Core) -> Raw | WireError | None:
    try:
        return await core.channel.request("server/discover", Params(meta=core.meta()), PROBE_SECONDS)
    except WireError as error:
        return error
    except RequestTimedOut:
        return None


async def initialize(core: Core) -> None:
    """The legacy handshake. Raises UnreadableAnswer for a revision we do not speak, UnsupportedRevision."""
    await require_legacy("client").initialize(core)
