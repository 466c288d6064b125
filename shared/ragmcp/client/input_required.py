"""Answers to the input requests of a modern server: the call is repeated with them.

Source: basic/patterns/mrtr.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from ragmcp.client.handlers import Handlers
from ragmcp.errors import RemoteProtocolError, UnreadableAnswer
from ragmcp.protocol.results import decode_answer
from ragmcp.protocol.schema.base import Params, RetryableParams
from ragmcp.protocol.schema.input import InputRequiredResult, WireRequest


async def add_input(handlers: Handlers, method: str, params: Params, answer: Raw) -> RetryableParams:
    """The parameters of the repeated request. Raises UnreadableAnswer for input this client cannot give."""
    if not isinstance(params, RetryableParams):
        raise UnreadableAnswer(method, "it wants input, which this method does not allow")
    needed = decode_answer(method, answer, InputRequiredResult)
    responses = await input_responses(handlers, method, needed.input_requests)
    return msgspec.structs.replace(params, input_responses=responses, request_state=needed.request_state)


async def input_responses(
    handlers: Handlers, method: str, requests: Mapping[str, WireRequest]
) -> dict[str, Raw]:
    """The answers to a server's requests, by its keys. Raises UnreadableAnswer for a forbidden request."""
    responses: dict[str, Raw] = {}
    # In sequence: a person answers one form at a time.
    for key, request in requests.items():
        try:
            response = await handlers.answer(request.method, request.params)
        except RemoteProtocolError as error:
            raise UnreadableAnswer(method, f"its input request is not allowed: {error}") from None
        responses[key] = Raw(msgspec.json.encode(response))
    return responses
