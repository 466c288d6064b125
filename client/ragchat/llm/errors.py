"""The errors of language models, and the mapping of the openai package's exceptions to them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from ragchat.errors import RagChatError
from ragchat.llm.types import ModelEndpoint
from ragchat.sanitize import one_line
from ragconfig.redaction import redacted

if TYPE_CHECKING:
    import openai


# Names in the hint of an error: a server may have hundreds of models.
NAMES_SHOWN = 5


class ModelError(RagChatError):
    """The language model did not answer.

    `is_temporary`: the same request may succeed later.
    """

    is_temporary: ClassVar[bool] = False
    code = "MODEL_FAILED"

    @property
    def retry_after(self) -> float | None:
        """The seconds that the server asks to wait."""
        return None


class ModelServerError(ModelError):
    """What the server of the model at `base_url` does."""

    base_url: str


class MissingKey(ModelError):
    model: str
    code = "MODEL_KEY_MISSING"
    sentence = "The model {model} needs a key, and none is set."
    hint = "Set OPENAI_API_KEY, name a key file in model.key_file, or use --offline."
    chat_hint = "Set OPENAI_API_KEY, name a key file in model.key_file, or choose /model offline."


class KeyRejected(ModelServerError):
    code = "MODEL_KEY_REJECTED"
    sentence = "{base_url} did not accept the key."
    hint = "Check OPENAI_API_KEY or model.key_file, and that the key belongs to this server."


class KeyUnusable(ModelError):
    code = "MODEL_KEY_UNUSABLE"
    sentence = "The key for the model cannot be sent: it contains characters that are not allowed in a key."
    hint = "Check OPENAI_API_KEY or model.key_file."


class ModelUnreachable(ModelServerError):
    reason: str
    is_temporary = True
    sentence = "{base_url} cannot be reached: {reason}."
    hint = "Is the server running? Check model.base_url and OPENAI_BASE_URL, or use --offline."
    chat_hint = "Is the server running? Check model.base_url and OPENAI_BASE_URL, or choose /model offline."


class ServerHungUp(ModelServerError):
    """The server runs, but closed the connection before its answer."""

    reason: str
    is_temporary = True
    code = "MODEL_HUNG_UP"
    sentence = "{base_url} runs, but closed the connection without an answer: {reason}."
    hint = "Look at the server's own log. It may be out of memory, or its context too small for the prompt."


class UnknownModel(ModelError):
    model: str
    base_url: str
    near: Sequence[str] = ()
    names: Sequence[str] = ()  # of all chat models at the server
    code = "MODEL_UNKNOWN"
    sentence = "{base_url} has no model {model}."
    hint = "{advice}"

    @property
    def advice(self) -> str:
        if not self.names:
            return "Check model.name and model.base_url."
        if self.model in self.names:
            return "It lists this model: the key may have no right to it, or the server could not load it."
        guess = f"Did you mean {' or '.join(self.near)}? " if self.near else ""
        if len(self.names) <= NAMES_SHOWN:
            return f"{guess}It has {', '.join(self.names)}."
        shown = "" if self.near else f", among them {', '.join(self.names[:NAMES_SHOWN])}"
        return f"{guess}It has {len(self.names)} chat models{shown}."


class NoChatModel(ModelServerError):
    code = "MODEL_UNKNOWN"
    sentence = "{base_url} lists no chat model."
    hint = "Name one with --model or model.name."


class ContextOverflow(ModelError):
    model: str
    message: str
    tokens: int = 0  # our estimate; `mapped` does not know the messages
    code = "MODEL_CONTEXT_OVERFLOW"
    sentence = "The prompt of about {tokens} tokens is more than {model} can hold: {message}."
    hint = "Lower model.context_tokens to what the model holds."


class SessionOverflow(ContextOverflow):
    """Earlier turns are in the prompt."""

    hint = "Lower model.context_tokens to what the model holds, or ask without -c and --session."
    chat_hint = "Lower model.context_tokens to what the model holds, or start a new session with /new."


class PromptNotTaken(ModelServerError):
    """Some servers, such as llama-cpp-python, close the connection when their context is full."""

    tokens: int
    code = "MODEL_CONTEXT_OVERFLOW"
    sentence = (
        "{base_url} answers a short prompt, but closes the connection on one of about {tokens} tokens: its "
        "context is probably too small."
    )
    hint = "Start the server with a larger context (n_ctx), or lower model.context_tokens to what it has."


class QuestionTooLong(ModelError):
    tokens: int
    room: int
    code = "MODEL_CONTEXT_OVERFLOW"
    sentence = "The question has about {tokens} tokens; there is room for {room}."
    hint = "Shorten it, put the text into memory with `ragchat inject`, or use a larger context."
    chat_hint = "Shorten it, load the text into memory and ask about it, or use a larger context."


class ContextTooSmall(ModelError):
    """Without any question: `answer` is kept for the answer, `fixed` is what comes before the question."""

    context: int
    answer: int
    fixed: int
    code = "MODEL_CONTEXT_OVERFLOW"
    sentence = (
        "A context of {context} tokens has no room for a question: {answer} are kept for the answer, and the "
        "instructions and tools take about {fixed}."
    )
    hint = "Raise model.context_tokens if the model holds more, lower model.answer_tokens, or use --no-tools."


class RateLimited(ModelServerError):
    message: str
    retry_after: float | None = None
    is_temporary = True
    code = "MODEL_RATE_LIMITED"
    sentence = "{base_url} accepts no more requests for now: {message}."
    hint = "Ask again in {seconds} s."

    @property
    def seconds(self) -> int:
        return max(1, round(self.retry_after or 5))


class QuotaUsedUp(ModelServerError):
    message: str
    code = "MODEL_QUOTA_USED_UP"
    sentence = "The quota of your key at {base_url} is used up: {message}."
    hint = "Waiting does not help: check the account's plan and billing, use another model, or --offline."
    chat_hint = "Waiting does not help: check the account's plan and billing, or choose another /model."


class ModelTimedOut(ModelServerError):
    seconds: float
    is_temporary = True
    sentence = "{base_url} sent nothing for {seconds:g} s."
    hint = "Ask again; a slow machine may need a larger model.timeout_seconds."


class ModelLoading(ModelServerError):
    """The server runs; `seconds` is how long it may take to load its model."""

    seconds: float
    is_temporary = True
    sentence = "{base_url} is still loading its model."
    hint = "Ask again in a while; a large model may need a larger model.timeout_seconds."


class ModelRefused(ModelServerError):
    """The server understood the request and refused it (a 4xx without a class of its own)."""

    status: int
    message: str
    sentence = "{base_url} refused the request ({status}): {message}."


class ModelBroken(ModelServerError):
    """The server failed (a 5xx), or did not speak the protocol."""

    message: str
    retry_after: float | None = None
    is_temporary = True
    sentence = "{base_url} failed: {message}."
    hint = "Ask again; if it fails again, look at the server's own log."


class NoApi(ModelServerError):
    """The address answers, but not as the base URL of an OpenAI-compatible server."""

    reason: str
    code = "MODEL_API_MISSING"
    sentence = "{base_url} is not the address of a model's API: {reason}."
    hint = "{advice}"

    @property
    def advice(self) -> str:
        """Most servers have their API under /v1."""
        if "/v1" in urlsplit(self.base_url).path:
            return "Check model.base_url and OPENAI_BASE_URL."
        return f"Did you mean {self.base_url.rstrip('/')}/v1? Check model.base_url and OPENAI_BASE_URL."


class BrokenStream(ModelServerError):
    reason: str
    is_temporary = True
    code = "MODEL_STREAM_BROKEN"
    sentence = "{base_url} broke off in the middle of the answer: {reason}."
    hint = "Ask again."


class EmptyAnswer(ModelError):
    model: str
    hint: str = "Ask again, or choose another model."
    code = "MODEL_ANSWER_EMPTY"
    sentence = "The model {model} gave an empty answer."


class LimitReached(ModelError):
    """No text had arrived when a limit was reached; `setting` is like `model.turn_seconds = 60`."""

    model: str
    setting: str
    code = "MODEL_LIMIT_REACHED"
    sentence = "The model {model} gave no answer within the limit {setting}."
    hint = "Ask again, raise the limit, or choose another model."


class PullFailed(ModelError):
    model: str
    reason: str
    hint: str = ""
    code = "MODEL_NOT_PULLED"
    sentence = "Ollama did not pull {model}: {reason}."


class ToolCallsUsedUp(ModelError):
    """`limit` is the setting that ended its tool calls, with its value."""

    model: str
    limit: str
    code = "MODEL_TOOL_ROUNDS_USED_UP"
    sentence = "The model {model} gave no answer: it called tools until the limit ({limit})."
    hint = "Ask again, raise the limit, or choose another model."


# Messages of OpenAI, Azure, vLLM, llama.cpp, Ollama, LM Studio and litellm for a prompt that is too long.
_OVERFLOW = re.compile(
    r"context[ _]?(length|window|size)|maximum context|n_ctx|too many (input )?tokens|prompt is too long"
    r"|exceeds? the (model's )?(available )?context",
    re.IGNORECASE,
)
# litellm's proxy reports an unknown model with status 400.
_NO_MODEL = re.compile(r"invalid model name", re.IGNORECASE)
# LM Studio answers an unknown path with a success status.
_NO_PATH = re.compile(r"unexpected endpoint", re.IGNORECASE)
# llama.cpp with status 503 ("Loading model"), Ollama with 500 ("llm server loading model"), Hugging Face ("is
# currently loading"). vLLM listens only once its model is loaded.
_LOADING = re.compile(
    r"^loading model|server (is )?loading model|is (currently |still )?loading", re.IGNORECASE
)
_PAGE = re.compile(r"<(!doctype|html)\b", re.IGNORECASE)
# 4xx statuses of a server that is busy: a timeout, a conflict.
TEMPORARY = (408, 409)
# The maximum of a server's message that is shown.
_CHARACTERS = 300


def mapped(
    error: Exception, endpoint: ModelEndpoint, *, seconds: float = 0.0, begun: bool = False
) -> ModelError:
    """Our error for an exception of openai or httpx2; any other exception is raised again.

    `seconds` is the timeout, `begun` whether the stream was open.
    """
    import json

    import httpx2
    import openai

    if isinstance(error, (openai.APITimeoutError, httpx2.TimeoutException)):
        return ModelTimedOut(endpoint.base_url, seconds)
    if isinstance(error, (openai.APIConnectionError, httpx2.TransportError)):
        reason, causes = _reason(error), list(_causes(error))
        if begun:
            return BrokenStream(endpoint.base_url, reason)
        hung_up = (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError)
        if any(isinstance(cause, hung_up) for cause in causes):
            return ServerHungUp(endpoint.base_url, reason)
        return ModelUnreachable(endpoint.base_url, reason)
    if isinstance(error, openai.APIStatusError):
        return _of_status(error, endpoint, seconds)
    if isinstance(error, openai.APIError):
        if _OVERFLOW.search(error.message):
            return ContextOverflow(endpoint.name, _part(error.message))
        if _NO_PATH.search(error.message):
            return NoApi(endpoint.base_url, _part(error.message))
        return ModelBroken(endpoint.base_url, _part(error.message))
    if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)):
        return not_json(endpoint)
    raise error


def not_json(endpoint: ModelEndpoint) -> ModelError:
    """The error of an answer that is a page or a text."""
    return NoApi(endpoint.base_url, "it sent something that is not JSON")


def _of_status(error: openai.APIStatusError, endpoint: ModelEndpoint, seconds: float) -> ModelError:
    status, message = error.status_code, _part(message_in(error.body or error.message))
    if _PAGE.match(message):  # of a proxy
        message = error.response.reason_phrase or "a page instead of an answer"
    if error.code == "context_length_exceeded" or status == 413 or _OVERFLOW.search(message):
        return ContextOverflow(endpoint.name, message)
    # litellm's proxy without a database fails like this for every key except its own.
    if status == 401 or error.type == "no_db_connection":
        return KeyRejected(endpoint.base_url) if endpoint.key else MissingKey(endpoint.name)
    is_unknown = status == 404 and (error.code == "model_not_found" or "model" in message.lower())
    if is_unknown or _NO_MODEL.search(message):
        return UnknownModel(endpoint.name, endpoint.base_url)
    if status in (404, 405):
        return NoApi(endpoint.base_url, f"{status}, {message}")
    # OpenAI sends 429 for this too; other servers 402, "Payment Required".
    if status == 402 or "insufficient_quota" in (error.code, error.type):
        return QuotaUsedUp(endpoint.base_url, message)
    if status >= 500 and _LOADING.search(message):
        return ModelLoading(endpoint.base_url, seconds)
    retry_after = seconds_until(error.response.headers.get("retry-after"))
    if status == 429:
        return RateLimited(endpoint.base_url, message, retry_after)
    if status in TEMPORARY or status >= 500:
        return ModelBroken(endpoint.base_url, f"{status}, {message}", retry_after)
    return ModelRefused(endpoint.base_url, status, message)


def message_in(body: object) -> str:
    """The message in the body of an error: OpenAI's `message`, FastAPI's `detail`, LM Studio's `error`."""
    while isinstance(body, dict):
        body = next((body[name] for name in ("message", "error", "detail") if body.get(name)), str(body))
    return str(body)


def _reason(error: BaseException) -> str:
    """The message of the innermost cause of a connection error."""
    *_, innermost = _causes(error)
    return _part(str(innermost)) or type(innermost).__name__


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The chain of causes, beginning with the error itself."""
    while error is not None:
        yield error
        error = error.__cause__


def seconds_until(text: str | None) -> float | None:
    """The value of Retry-After, seconds or a date, as seconds from now."""
    import time
    from email.utils import parsedate_to_datetime

    try:
        return float(text) if text else None
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(str(text)).timestamp() - time.time())
    except ValueError:
        return None


def _part(text: str) -> str:
    """A server's text as part of a sentence: one line, shortened, redacted, without a full stop."""
    return one_line(redacted(text), _CHARACTERS).rstrip(".")
