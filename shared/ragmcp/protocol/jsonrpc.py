"""JSON-RPC 2.0: one line or one member of a batch ↔ one typed message. Pure; knows no MCP methods.

Payloads (`params`, `result`) stay undecoded (`msgspec.Raw`) until code that knows their types decodes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from ragmcp import errors
from ragmcp.protocol.decoding import DECODE_ERRORS, is_not_utf8
from ragmcp.protocol.framing import Line
from ragmcp.protocol.schema.base import ErrorObject

Id: TypeAlias = int | str

NO_PARAMS = Raw(b"{}")
NULL = Raw(b"null")

# Some shells put it before piped text.
BOM = b"\xef\xbb\xbf"


class Request(Struct, frozen=True):
    """A message that expects an answer."""

    id: Id
    method: str
    params: Raw = NO_PARAMS


class Notification(Struct, frozen=True):
    """A message that expects no answer."""

    method: str
    params: Raw = NO_PARAMS


class Success(Struct, frozen=True):
    """The answer to request `id`."""

    id: Id
    result: Raw


class Failure(Struct, frozen=True):
    """The refusal of request `id`; None where the sender could not read the id."""

    id: Id | None
    error: ErrorObject


class Unreadable(Struct, frozen=True):
    """Something that is not a valid message, and its id (None: unknown).

    If `response` is set, it was meant as a response: its id is that of one of our requests.
    """

    id: Id | None
    error: errors.NotJson | errors.InvalidRequest | errors.InvalidParams | errors.MessageTooLarge
    response: bool = False


Message: TypeAlias = Request | Notification | Success | Failure | Unreadable


class _Envelope(Struct):
    """All members a message can have, typed as strictly as the specification says.

    RequestId is `string | integer`: floats and bools are not ids.
    """

    jsonrpc: str | UnsetType = UNSET
    id: Id | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: ErrorObject | UnsetType = UNSET


class _Written(Struct):
    """An outgoing message; fields that are UNSET are omitted."""

    jsonrpc: str = "2.0"
    # The id comes early, so that the receiver finds it even if the line is too long to be read.
    id: Id | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Any = UNSET
    result: Any = UNSET
    error: Any = UNSET


_encoder = msgspec.json.Encoder()
_envelope = msgspec.json.Decoder(_Envelope)
_batch = msgspec.json.Decoder(list[Raw])
_loose = msgspec.json.Decoder(dict[str, Raw])
_id: msgspec.json.Decoder[Id] = msgspec.json.Decoder(int | str)
_ARRAY = re.compile(rb"\s*\[")

# The members of a batch are handled at the same time.
MAX_BATCH_MESSAGES = 100

# 2**63: beyond it other languages lose digits, and the answer would have another id than the request.
_ID_LIMIT = 2**63


def parse(line: Line | Raw) -> Message:
    """One message, or `Unreadable`. Never raises."""
    try:
        message = _envelope.decode(line)
    except msgspec.ValidationError as error:
        return _misfit(line, error)
    except DECODE_ERRORS as error:
        text = bytes(line)
        return parse(text.lstrip(BOM)) if text[:3] == BOM else _unreadable(text, error)
    return _classify(message)


def parse_batch(line: Line) -> list[Message] | Unreadable:
    """The members of a JSON array, each as `parse` would see it. Never raises."""
    try:
        members = _batch.decode(line)
    except DECODE_ERRORS as error:
        return _unreadable(bytes(line), error)
    if not members:
        return Unreadable(None, errors.InvalidRequest("a batch must not be empty"))
    if len(members) > MAX_BATCH_MESSAGES:
        return Unreadable(None, errors.InvalidRequest(f"a batch holds at most {MAX_BATCH_MESSAGES} messages"))
    return [parse(member) for member in members]


def asked_id(line: Line) -> Id | None:
    """The id for an error that answers this line; None if it is not a request or has no id. Never raises."""
    match parse(line):
        case Request(id) | Unreadable(id, _, False):
            return id
    return None


def is_batch(line: Line) -> bool:
    """Whether the line holds a JSON array rather than an object."""
    return _ARRAY.match(line) is not None


def _classify(message: _Envelope) -> Message:
    id = None if message.id is UNSET else message.id
    if isinstance(id, int) and not -_ID_LIMIT <= id < _ID_LIMIT:
        return _invalid(message, None, "the id is an integer beyond 64 bits")
    if message.id is None and message.error is UNSET:
        # Only an error has this id, if it is about a message whose own id could not be read.
        return _invalid(message, None, "the id is null")
    if message.jsonrpc != "2.0":
        return _invalid(message, id, '"jsonrpc" must be "2.0"')
    if message.method is not UNSET:
        if message.result is not UNSET or message.error is not UNSET:
            return _invalid(message, id, "it is a request and a response at once")
        # Null is not a structured value, but some clients send it to mean "none".
        params = NO_PARAMS if message.params in (UNSET, NULL) else message.params
        if bytes(memoryview(params)[:1]) == b"{":
            return Notification(message.method, params) if id is None else Request(id, message.method, params)
        if id is None:
            return Unreadable(None, errors.InvalidRequest('"params" must be an object'))
        return Unreadable(id, errors.InvalidParams("$", "expected an object"))
    if message.result is not UNSET and message.error is UNSET and id is not None:
        return Success(id, message.result)
    if message.error is not UNSET and message.result is UNSET:
        return Failure(id, message.error)
    return _invalid(message, id, "it is neither a request nor a notification nor a response")


def _invalid(message: _Envelope, id: Id | None, reason: str) -> Unreadable:
    response = message.method is UNSET and not (message.result is UNSET and message.error is UNSET)
    return Unreadable(id, errors.InvalidRequest(reason), response)


def _misfit(line: Line | Raw, error: msgspec.ValidationError) -> Unreadable:
    """Classify JSON of the wrong shape, with its id if that is valid."""
    try:
        # A wrong type is reported before the text behind it is read, which may not be JSON.
        msgspec.json.decode(line, type=Raw)
        members = _loose.decode(line)
    except msgspec.ValidationError:
        return Unreadable(None, errors.InvalidRequest("it must be a JSON object"))
    except DECODE_ERRORS as malformed:
        return _unreadable(bytes(line), malformed)
    return _with_id(members, errors.InvalidRequest(str(error)))


def _valid_id(text: Raw | bytes) -> Id | None:
    """The id in a JSON text; None for anything else."""
    try:
        return _id.decode(text)
    except DECODE_ERRORS:
        return None


# A backslash before it would make it plain text, unless that one is escaped itself.
_SURROGATE = re.compile(rb"(?<!\\)((?:\\\\)*)\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
# Stands for characters that no Unicode text can hold; an id with one is not the id that was sent.
_NO_CHARACTER = b"\\u0000"


def _unreadable(line: bytes, error: Exception) -> Unreadable:
    if isinstance(error, RecursionError):
        return salvaged(line, line, errors.NotJson("it is nested too deeply"))
    is_text = not is_not_utf8(error)
    # RFC 8259's grammar permits lone surrogates.
    reason = "a string holds a lone surrogate" if is_text else "it is not UTF-8"
    readable = line.decode(errors="replace").replace("\ufffd", _NO_CHARACTER.decode()).encode()
    try:
        members = _loose.decode(_SURROGATE.sub(rb"\1" + re.escape(_NO_CHARACTER), readable))
    except DECODE_ERRORS:
        if is_text:
            reason = str(error).removeprefix("JSON is malformed: ").lower()
        return Unreadable(None, errors.NotJson(reason))
    return _with_id(members, errors.NotJson(reason))


def _with_id(members: Mapping[str, Raw], error: errors.NotJson | errors.InvalidRequest) -> Unreadable:
    """A message of which only the members are known, with its id if that is valid."""
    id = members.get("id", NULL)
    response = "method" not in members and not members.keys().isdisjoint(("result", "error"))
    return Unreadable(None if _NO_CHARACTER in bytes(id) else _valid_id(id), error, response)


# The id of a line that was not parsed as a whole, if it is the first or last member.
_ID = rb'(-?\d{1,18}|"[^"\\\x00-\x1f]{0,200}")'
_HEAD_ID = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?(?:"method"\s*:\s*"[^"\\]*"\s*,\s*)?"id"\s*:\s*'
    + _ID
    + rb"\s*,"
)
_HEAD_RESPONSE = re.compile(
    rb'\s*\{\s*(?:"(?:jsonrpc|id)"\s*:\s*' + _ID + rb'\s*,\s*){0,2}"(?:result|error)"\s*:'
)
_TAIL_ID = re.compile(rb'[,{]\s*"id"\s*:\s*' + _ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


def salvaged(head: bytes, tail: bytes, error: errors.NotJson | errors.MessageTooLarge) -> Unreadable:
    """A message of which only the two ends are usable, with its id, so that its sender gets an answer."""
    found = _HEAD_ID.match(head) or _TAIL_ID.search(tail[-512:])
    return Unreadable(_valid_id(found[1]) if found else None, error, _HEAD_RESPONSE.match(head) is not None)


def encode_request(id: Id, method: str, params: Any) -> bytes:
    """Raises NotEncodable."""
    return encode(method, _Written(id=id, method=method, params=params))


def encode_notification(method: str, params: Any) -> bytes:
    """Raises NotEncodable."""
    return encode(method, _Written(method=method, params=params))


def encode_answer(id: Id | None, outcome: Any) -> bytes:
    """The answer with a result, or with the error for an exception: also one that cannot be encoded."""
    if not isinstance(outcome, Exception):
        try:
            return encode("The result", _Written(id=id, result=outcome))
        except errors.NotEncodable as error:
            outcome = error
    return encode_failure(id, error_object(outcome, id))


def encode_failure(id: Id | None, error: ErrorObject) -> bytes:
    """The answer with an error; `data` is left out if it cannot be encoded."""
    try:
        return encode("The error", _Written(id=id, error=error))
    except errors.NotEncodable as problem:
        return encode("The error", _Written(id=id, error=ErrorObject(error.code, str(problem))))


def encode(what: str, message: Struct) -> bytes:
    """The JSON of a message or a part of one. Raises NotEncodable, with `what` as its name."""
    try:
        return _encoder.encode(message)
    except UnicodeEncodeError as error:
        part = error.object[max(error.start - 20, 0) : error.start + 20]
        raise errors.NotEncodable(what, f"{part!r} is not Unicode text ({error.reason})") from None
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise errors.NotEncodable(what, str(error)) from None


def error_object(error: Exception, id: Id | None) -> ErrorObject:
    """The one place that turns an exception into a wire error."""
    if isinstance(error, errors.RemoteProtocolError):
        return ErrorObject(error.rpc_code, str(error), error.data(id))
    if isinstance(error, errors.InputDeclined):
        data: dict[str, Any] = {"errorCode": error.code, "details": {}, "requestId": id}
        return ErrorObject(error.rpc_code, str(error), data)
    if not isinstance(error, errors.ToolError):  # Internal errors are logged, and not shown to the peer.
        hidden = "The server failed; its log says more."
        reason = str(error) if isinstance(error, errors.NotEncodable) else hidden
        error = errors.ToolError("INTERNAL_ERROR", reason)
    return ErrorObject(-32603, str(error), error.data(id))
