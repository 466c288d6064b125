"""`ragchat web`: the conversation, its sources and the library on a page."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import anyio

from ragchat.commands.invocation import Invocation

_SETTINGS = ("host", "port", "password_file", "certificate", "private_key", "public_url", "token_file")


async def web(run: Invocation) -> None:
    """Runs until a signal ends it, which is its success."""
    from ragchat.web.serving import serve

    given = {f"web.{name}": getattr(run.arguments, name) for name in _SETTINGS}
    run = replace(run, overrides={key: value for key, value in given.items() if value is not None})
    with suppress(anyio.get_cancelled_exc_class()):
        await serve(run)
