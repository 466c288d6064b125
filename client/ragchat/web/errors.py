"""What a request to the page can be refused for, and each error of the client as a response."""

from __future__ import annotations

import logging
from typing import ClassVar

import msgspec
from starlette.responses import Response

from ragchat.console import Failure, describe
from ragchat.errors import RagChatError
from ragchat.llm.errors import ModelError

log = logging.getLogger(__name__)


class WebError(RagChatError):
    status: ClassVar[int] = 400


class ForeignHost(WebError):
    """DNS rebinding: a web page binds its own name to our address."""

    host: str
    code = "HOST_NOT_ALLOWED"
    status = 403
    sentence = "This page is not served as {host!r}."
    hint = "Use the address that ragchat printed. Behind a proxy, set --public-url to its address."


class ForeignOrigin(WebError):
    origin: str
    code = "ORIGIN_NOT_ALLOWED"
    status = 403
    sentence = "Requests from {origin} are refused."
    hint = "Use the address that ragchat printed. Behind a proxy, set --public-url to its address."


class ForeignUser(WebError):
    code = "USER_NOT_ALLOWED"
    status = 403
    sentence = "This page belongs to another user of this machine."
    hint = "Start a page of your own: `ragchat web`."


class NotSignedIn(WebError):
    status = 401
    sentence = "This browser is not signed in."
    hint = "Press Enter where `ragchat web` runs, and open the new address in another tab."


class ForeignRequest(WebError):
    """The request of a page to what only programs use."""

    code = "COOKIE_NOT_ALLOWED"
    status = 403
    sentence = "Requests of programs carry no cookies: this one may come from a web page."
    hint = "Send the token alone, as `Authorization: Bearer …`."


class TokenNeeded(WebError):
    reason: str
    status = 401
    sentence = "Other programs need the token of this server: {reason}."
    hint = "Set the API key of the program to the token in the file that `ragchat web` names."


class NotSupported(WebError):
    """A parameter of a request of another program."""

    param: str
    reason: str
    code = "UNSUPPORTED_PARAMETER"
    sentence = "{param} is not supported here: {reason}."
    hint = "Send the request without it."


class NoSuchModel(WebError):
    model: str
    code = "MODEL_UNKNOWN"
    status = 404
    sentence = "There is no model {model!r} here."
    hint = "GET /v1/models lists them."


class TooManyTurns(WebError):
    limit: int
    status = 429
    sentence = "{limit} questions are being answered already, which is the limit."
    hint = "Ask again when one of them is done."


class BadRequest(WebError):
    reason: str
    sentence = "The request cannot be read: {reason}."


class NotFound(WebError):
    what: str
    status = 404
    sentence = "There is no {what}."


class NoPage(WebError):
    """With --api-only."""

    code = "NOT_FOUND"
    status = 404
    sentence = "There is no page here: other programs are served at /v1."


class Busy(WebError):
    code = "SESSION_BUSY"
    status = 409
    sentence = "This conversation is still answering a question."
    hint = "Wait for the answer, or stop it."


class Stopped(WebError):
    status = 409
    sentence = "Stopped."


class Outdated(WebError):
    code = "SESSION_CHANGED"
    status = 409
    sentence = "This conversation has gone on elsewhere: it is shown as it is now."


class NotAccepted(WebError):
    """An answer to an open question that cannot be used; the question stays open."""

    reason: str
    status = 422
    sentence = "{reason}"


class TooLarge(WebError):
    what: str
    limit: str
    status = 413
    sentence = "{what} is larger than {limit}."


class NotAdded(WebError):
    """`reason` is the sentence."""

    reason: str
    status = 409
    sentence = "{reason}"


class CopyFailed(WebError):
    name: str
    folder: str
    reason: str
    status = 507
    sentence = "{name} cannot be copied to {folder}: {reason}."
    hint = "Is the disk full, or read-only?"


class WebRefused(WebError):
    """Starting the page without what protects it."""

    reason: str
    sentence = "The page cannot be served: {reason}."


def error_document(error: BaseException) -> dict[str, dict[str, str]]:
    """`{error: {code, message, hint}}`, as `--json` prints it. The traceback of a surprise is logged.

    The hints about models are those of the chat, whose commands the page has, too.
    """
    failure = _described(error)
    hint = (isinstance(error, ModelError) and error.chat_hint) or failure.hint
    return {"error": {"code": failure.code, "message": failure.message, "hint": hint}}


def _described(error: BaseException) -> Failure:
    failure = describe(error)
    if failure.code == "INTERNAL_ERROR":
        log.error("a request failed", exc_info=error)
    return failure


def error_status(error: BaseException) -> int:
    if isinstance(error, WebError):
        return error.status
    # The request is well-formed; what it asks for cannot be done now.
    return 409 if isinstance(error, RagChatError) else 500


# For OpenAI's clients: the status and code of errors that they know by other names.
_OPENAI = {
    "TOKEN_NEEDED": (401, "invalid_api_key"),
    "QUESTION_EMPTY": (400, "question_empty"),
    "MODEL_UNKNOWN": (404, "model_not_found"),
    "MODEL_CONTEXT_OVERFLOW": (400, "context_length_exceeded"),
    "MODEL_RATE_LIMITED": (429, "rate_limit_exceeded"),
}
_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def openai_error(error: BaseException) -> dict[str, dict[str, str | None]]:
    """The error in OpenAI's form: `{error: {message, type, param, code}}`."""
    return _in_openai_form(error)[1]


def openai_response(error: BaseException) -> Response:
    status, document = _in_openai_form(error)
    # The turn has tried again already; a client that repeats it would only double the time.
    headers = {"cache-control": "no-store"} | ({"x-should-retry": "false"} if status >= 500 else {})
    headers |= {"www-authenticate": "Bearer"} if status == 401 else {}
    return Response(msgspec.json.encode(document), status, headers, "application/json")


def _in_openai_form(error: BaseException) -> tuple[int, dict[str, dict[str, str | None]]]:
    failure = _described(error)
    # What the memory or the model could not do is no fault of the request.
    is_ours = isinstance(error, RagChatError) and not isinstance(error, WebError)
    status = 503 if is_ours else error_status(error)
    status, code = _OPENAI.get(failure.code, (status, failure.code.lower()))
    kind = "server_error" if status >= 500 else "invalid_request_error"
    described = {
        "message": f"{failure.message} {failure.hint}".rstrip(),
        "type": _OPENAI_TYPES.get(status, kind),
        "param": getattr(error, "param", None),
        "code": code,
    }
    return status, {"error": described}


def error_response(error: BaseException) -> Response:
    body = msgspec.json.encode(error_document(error))
    return Response(body, error_status(error), media_type="application/json")
