"""What a server asks of its client: its user (elicitation), its model (sampling), its host (roots).

Legacy: requests from server to client. Modern: the call ends with `input_required`, and the client calls
again with the answers and the sealed `requestState`, which carries what it has answered before.
Source: basic/patterns/mrtr, client/elicitation, client/sampling, client/roots.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct

from ragmcp.errors import InvalidParams, UnreadableAnswer
from ragmcp.protocol.eras import Era
from ragmcp.protocol.schema.base import RetryableParams
from ragmcp.protocol.schema.input import InputRequest, InputRequiredResult, WireRequest
from ragmcp.protocol.validation import decode, invalid_params
from ragmcp.server.call import Asker, Call, InputNeeded
from ragmcp.server.state_signing import Seal

# How long a person may take to answer.
STATE_SECONDS = 3600.0


def on_the_wire(requests: Mapping[str, InputRequest]) -> dict[str, WireRequest]:
    """The `inputRequests` of a result."""
    return {key: WireRequest(method=request.method, params=request) for key, request in requests.items()}


def decoded(key: str, request: InputRequest, answer: Raw) -> Any:
    """The client's answer from `inputResponses`, typed. Raises InvalidParams."""
    try:
        return _typed(request, answer)
    except InvalidParams as fault:
        path = f"$.inputResponses.{key}{fault.path.removeprefix('$')}"
        raise InvalidParams(path, fault.reason) from None


def _typed(request: InputRequest, answer: Raw) -> Any:
    return decode(msgspec.json.Decoder(request.answer), answer)


def ask(call: Call) -> Asker:
    """How this call's client is asked."""
    return _Legacy(call) if call.era is Era.LEGACY else _Modern(call)


class _Legacy:
    """One request after the other: a person answers one form at a time."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def __call__(self, requests: Mapping[str, InputRequest]) -> dict[str, Any]:
        answers = {}
        for key, request in requests.items():
            self._call.require(request.capability, request.part)
            answer = await self._call.channel.request(request.method, request)
            try:
                answers[key] = _typed(request, answer)
            except InvalidParams as fault:
                raise UnreadableAnswer(request.method, f"{fault.path}: {fault.reason}") from None
        return answers


class _Modern:
    """Takes the answers out of the call, or ends it so that the client calls again with them."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def __call__(self, requests: Mapping[str, InputRequest]) -> dict[str, Any]:
        params = self._call.params
        assert isinstance(params, RetryableParams), "only tools, prompts and resources may ask"
        given = params.input_responses
        if missing := {key: request for key, request in requests.items() if key not in given}:
            for request in missing.values():
                self._call.require(request.capability, request.part)
            raise InputNeeded(missing, given)
        return {key: decoded(key, request, given[key]) for key, request in requests.items()}


# What was answered before comes back sealed


class _State(Struct, frozen=True):
    """What the client carries for us from one round to the next."""

    request: str
    expires: float
    answers: dict[str, Raw]


T = TypeVar("T", bound=RetryableParams)


def paused(call: Call, needed: InputNeeded, seal: Seal) -> InputRequiredResult:
    """The result that asks for what is missing."""
    state = _State(_digest(call), time.time() + STATE_SECONDS, dict(needed.answers))
    return InputRequiredResult(
        result_type="input_required",
        input_requests=on_the_wire(needed.requests),
        request_state=seal.close(msgspec.json.encode(state)),
    )


def resumed(call: Call, params: T, seal: Seal) -> T:
    """The parameters with the answers of earlier rounds. Raises InvalidParams for a state that is not ours.

    Our own seal, the same request and an hour: a state is of no use elsewhere or later.
    """
    assert params.request_state is not UNSET
    try:
        state = msgspec.json.decode(seal.open(params.request_state), type=_State)
    except (ValueError, msgspec.DecodeError):
        raise InvalidParams("$.requestState", "it is not as this server made it") from None
    if state.request != _digest(call):
        raise InvalidParams("$.requestState", "it belongs to another request")
    if state.expires < time.time():
        raise InvalidParams("$.requestState", "it has expired; make the call anew, without it")
    return msgspec.structs.replace(params, input_responses=state.answers | params.input_responses)


def _digest(call: Call) -> str:
    """Of what was asked, not how it was written: a client may order arguments anew. Raises InvalidParams."""
    assert isinstance(call.params, RetryableParams)
    try:
        request = json.dumps([call.method, call.params.request_key()], sort_keys=True)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid_params(error) from None
    return hashlib.sha256(request.encode()).hexdigest()
