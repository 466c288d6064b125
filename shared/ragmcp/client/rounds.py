"""The client's half of multi-round requests: it gives what the server asks for, and asks again.

Source: basic/patterns/mrtr.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from ragmcp.client.handlers import Handlers
from ragmcp.errors import RemoteProtocolError, UnreadableAnswer
from ragmcp.protocol.decoding import DECODE_ERRORS
from ragmcp.protocol.schema.base import Params, RetryableParams
from ragmcp.protocol.schema.input import InputRequiredResult, WireRequest


async def with_input(handlers: Handlers, method: str, params: Params, answer: Raw) -> RetryableParams:
    """The parameters to ask with again. Raises UnreadableAnswer for what this client cannot give."""
    if not isinstance(params, RetryableParams):
        raise UnreadableAnswer(method, "it wants input, which it may not for this method")
    try:
        needed = msgspec.json.decode(answer, type=InputRequiredResult)
    except DECODE_ERRORS as error:
        raise UnreadableAnswer(method, str(error)) from None
    given = await answers(handlers, method, needed.input_requests)
    return msgspec.structs.replace(params, input_responses=given, request_state=needed.request_state)


async def answers(handlers: Handlers, method: str, requests: Mapping[str, WireRequest]) -> dict[str, Raw]:
    """The answers to what a server asks, by its keys. Raises UnreadableAnswer for what it may not ask."""
    given: dict[str, Raw] = {}
    # One after the other: a person answers one form at a time.
    for key, request in requests.items():
        try:
            done = await handlers.answer(request.method, request.params)
        except RemoteProtocolError as error:
            raise UnreadableAnswer(method, f"it asks for what it may not: {error}") from None
        given[key] = Raw(msgspec.json.encode(done))
    return given
