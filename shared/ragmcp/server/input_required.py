"""Calls that need input: they end with questions, and the client repeats them with the answers (modern era).

The result `input_required` carries the answers so far as a signed `requestState`, because the server keeps
no state between calls. Source: basic/patterns/mrtr.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, field

from ragmcp.errors import InvalidParams
from ragmcp.protocol.decoding import DECODE_ERRORS, decode, invalid_params
from ragmcp.protocol.jsonrpc import encode
from ragmcp.protocol.schema.base import NO_META, RetryableParams
from ragmcp.protocol.schema.input import InputRequest, InputRequiredResult, WireRequest

T = TypeVar("T", bound=RetryableParams)

# How long a person may take to answer.
STATE_SECONDS = 3600.0

KEY_BYTES = 32
MAC_BYTES = 32


def wire_requests(requests: Mapping[str, InputRequest]) -> dict[str, WireRequest]:
    """The `inputRequests` of a result."""
    return {
        key: WireRequest(method=request.method, params=Raw(encode("The result", request)))
        for key, request in requests.items()
    }


def decode_response(key: str, request: InputRequest, response: Raw) -> Any:
    """A member of `inputResponses`, in the type its request asks for. Raises InvalidParams."""
    try:
        return decode(msgspec.json.Decoder(request.answer), response)
    except InvalidParams as error:
        path = f"$.inputResponses.{key}{error.path.removeprefix('$')}"
        raise InvalidParams(path, error.reason) from None


class StateSigner:
    """HMAC-signed state tokens: readable, not forgeable. The key is of this process: a restart ends them."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(KEY_BYTES)

    def sign(self, payload: bytes) -> str:
        """A token that holds the payload, in URL-safe base64."""
        mac = hmac.digest(self._key, payload, "sha256")
        return base64.urlsafe_b64encode(mac + payload).decode()

    def verify(self, token: str) -> bytes:
        """The payload. Raises ValueError unless `sign` gave exactly this token."""
        payload = base64.b64decode(token, altchars=b"-_", validate=True)[MAC_BYTES:]
        # Base64 can spell the same bytes in several ways; only our spelling is valid.
        if not hmac.compare_digest(self.sign(payload).encode(), token.encode()):
            raise ValueError("the signature is wrong")
        return payload


class _State(Struct, frozen=True):
    """The content of `requestState`, which the client carries from one call to the next."""

    request: str
    expires: float
    answers: dict[str, Raw]


class Rounds(Struct):
    """Makes and reads the request states of one server."""

    _signer: StateSigner = field(default_factory=StateSigner)

    def pause(
        self, method: str, params: RetryableParams, requests: Mapping[str, InputRequest]
    ) -> InputRequiredResult:
        """The result that asks the client for answers to `requests`."""
        state = _State(_digest(method, params), time.time() + STATE_SECONDS, params.input_responses)
        return InputRequiredResult(
            result_type="input_required",
            input_requests=wire_requests(requests),
            request_state=self._signer.sign(msgspec.json.encode(state)),
        )

    def resume(self, method: str, params: T) -> T:
        """The parameters with the answers of earlier rounds.

        Raises InvalidParams for a state that is forged, expired, or of another server or request.
        """
        try:
            state = msgspec.json.decode(self._signer.verify(params.request_state or ""), type=_State)
        except (ValueError, msgspec.DecodeError):
            raise InvalidParams("$.requestState", "this server did not make it") from None
        if state.request != _digest(method, params):
            raise InvalidParams("$.requestState", "it belongs to another request")
        if state.expires < time.time():
            raise InvalidParams("$.requestState", "it has expired; repeat the call without it")
        return msgspec.structs.replace(params, input_responses=state.answers | params.input_responses)


def _digest(method: str, params: RetryableParams) -> str:
    """A digest of the request without what may differ when it is repeated. Raises InvalidParams."""
    request = msgspec.structs.replace(params, meta=NO_META, input_responses={}, request_state=UNSET)
    try:
        decoded = msgspec.json.decode(msgspec.json.encode(request))
    except DECODE_ERRORS as error:
        raise invalid_params(error) from None
    # A client may reorder its JSON.
    text = json.dumps([method, decoded], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
