"""What can go wrong in the chat: one root, leaves named after what happened.

Each leaf keeps its data in attributes and computes its sentence from them; `hint` says what the user can do
("" where there is nothing), `code` is the stable upper-case word for machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class RagChatError(Exception):
    """The root of everything the chat raises on purpose."""

    code: ClassVar[str] = "CHAT_FAILED"
    hint: str = ""


# The language model


class ModelError(RagChatError):
    """The language model did not answer."""

    code: ClassVar[str] = "MODEL_FAILED"


class MissingKey(ModelError):
    code: ClassVar[str] = "MODEL_KEY_MISSING"
    hint = "Set OPENAI_API_KEY, name a key file in model.key_file, or use --offline."

    def __init__(self, model: str) -> None:
        self.model = model

    def __str__(self) -> str:
        return f"The model {self.model} needs a key, and none is set."


class KeyRejected(ModelError):
    code: ClassVar[str] = "MODEL_KEY_REJECTED"
    hint = "Check OPENAI_API_KEY or model.key_file, and that the key belongs to this server."

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url

    def __str__(self) -> str:
        return f"{self.base_url} did not accept the key."


class ModelUnreachable(ModelError):
    code: ClassVar[str] = "MODEL_UNREACHABLE"
    hint = "Is the server running? Check model.base_url, or use --offline."

    def __init__(self, base_url: str, reason: str) -> None:
        self.base_url = base_url
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.base_url} cannot be reached: {self.reason}."


class UnknownModel(ModelError):
    code: ClassVar[str] = "MODEL_UNKNOWN"

    def __init__(self, model: str, base_url: str, near: Sequence[str] = ()) -> None:
        self.model = model
        self.base_url = base_url
        self.near = list(near)
        self.hint = f"It has {', '.join(self.near)}." if self.near else "Check model.name and model.base_url."

    def __str__(self) -> str:
        return f"{self.base_url} has no model {self.model}."


class NoChatModel(ModelError):
    code: ClassVar[str] = "MODEL_UNKNOWN"
    hint = "Name one with --model or model.name."

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url

    def __str__(self) -> str:
        return f"{self.base_url} lists no chat model."


class ContextOverflow(ModelError):
    code: ClassVar[str] = "MODEL_CONTEXT_OVERFLOW"
    hint = "Lower model.context_tokens to what the model holds, or start a new session with /new."

    def __init__(self, model: str, tokens: int) -> None:
        self.model = model
        self.tokens = tokens

    def __str__(self) -> str:
        return f"The prompt of about {self.tokens} tokens is more than {self.model} can hold."


class QuestionTooLong(ModelError):
    code: ClassVar[str] = "MODEL_CONTEXT_OVERFLOW"
    hint = "Shorten it, put the text into memory with /inject, or raise model.context_tokens."

    def __init__(self, tokens: int, room: int) -> None:
        self.tokens = tokens
        self.room = room

    def __str__(self) -> str:
        return f"The question has about {self.tokens} tokens; there is room for {self.room}."


class RateLimited(ModelError):
    code: ClassVar[str] = "MODEL_RATE_LIMITED"

    def __init__(self, base_url: str, message: str, retry_after: float | None = None) -> None:
        self.base_url = base_url
        self.message = message
        self.retry_after = retry_after
        self.hint = f"Ask again in {max(1, round(retry_after or 5))} s."

    def __str__(self) -> str:
        return f"{self.base_url} takes no more requests now: {self.message}."


class QuotaUsedUp(ModelError):
    code: ClassVar[str] = "MODEL_QUOTA_USED_UP"
    hint = "Waiting does not help: check the account's plan and billing, use another model, or --offline."

    def __init__(self, base_url: str, message: str) -> None:
        self.base_url = base_url
        self.message = message

    def __str__(self) -> str:
        return f"The quota of your key at {self.base_url} is used up: {self.message}."


class ModelTimedOut(ModelError):
    code: ClassVar[str] = "MODEL_TIMED_OUT"
    hint = "Ask again; a slow machine may need a larger model.timeout_seconds."

    def __init__(self, base_url: str, seconds: float) -> None:
        self.base_url = base_url
        self.seconds = seconds

    def __str__(self) -> str:
        return f"{self.base_url} sent nothing for {self.seconds:g} s."


class ModelRefused(ModelError):
    """The server understood the request and would not serve it (a 4xx that has no leaf of its own)."""

    code: ClassVar[str] = "MODEL_REFUSED"

    def __init__(self, base_url: str, status: int, message: str) -> None:
        self.base_url = base_url
        self.status = status
        self.message = message

    def __str__(self) -> str:
        return f"{self.base_url} refused the request ({self.status}): {self.message}."


class ModelBroken(ModelError):
    """The server failed (a 5xx), or did not speak the protocol."""

    code: ClassVar[str] = "MODEL_BROKEN"
    hint = "Ask again; if it stays, look at the server's own log."

    def __init__(self, base_url: str, message: str) -> None:
        self.base_url = base_url
        self.message = message

    def __str__(self) -> str:
        return f"{self.base_url} failed: {self.message}."


class BrokenStream(ModelError):
    code: ClassVar[str] = "MODEL_STREAM_BROKEN"
    hint = "Ask again."

    def __init__(self, base_url: str, reason: str) -> None:
        self.base_url = base_url
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.base_url} broke off in the middle of the answer: {self.reason}."


# The conversation


class EmptyAnswer(ModelError):
    code: ClassVar[str] = "MODEL_ANSWER_EMPTY"
    hint = "Ask again, or choose another model."

    def __init__(self, model: str) -> None:
        self.model = model

    def __str__(self) -> str:
        return f"The model {self.model} gave an empty answer."


class ToolRoundsUsedUp(ModelError):
    code: ClassVar[str] = "MODEL_TOOL_ROUNDS_USED_UP"
    hint = "Ask again, raise tools.rounds, or choose another model."

    def __init__(self, model: str, rounds: int) -> None:
        self.model = model
        self.rounds = rounds

    def __str__(self) -> str:
        limit = f"tools.rounds = {self.rounds}"
        return f"The model {self.model} gave no answer: it called tools until the limit ({limit})."


class EmptyQuestion(RagChatError):
    code: ClassVar[str] = "QUESTION_EMPTY"

    def __str__(self) -> str:
        return "The question is empty."


class NothingToRetry(RagChatError):
    code: ClassVar[str] = "NOTHING_TO_RETRY"
    hint = "Ask something first."

    def __str__(self) -> str:
        return "There is no question to repeat."


class PromptUnreadable(RagChatError):
    code: ClassVar[str] = "PROMPT_UNREADABLE"

    def __init__(self, key: str, path: str, reason: str) -> None:
        self.key = key
        self.path = path
        self.reason = reason
        self.hint = f"Check the setting {key}."

    def __str__(self) -> str:
        return f"The prompt file {self.path} cannot be read: {self.reason}."


# Sessions


class SessionError(RagChatError):
    """Past conversations cannot be had."""

    code: ClassVar[str] = "SESSION_FAILED"


class UnknownSession(SessionError):
    code: ClassVar[str] = "SESSION_NOT_FOUND"
    hint = "`ragchat session ls` lists them."

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id

    def __str__(self) -> str:
        return f"There is no session {self.session_id}."


class NoSession(SessionError):
    code: ClassVar[str] = "SESSION_NOT_FOUND"
    hint = "Ask something first."

    def __str__(self) -> str:
        return "There is no past session yet."


class AmbiguousSession(SessionError):
    code: ClassVar[str] = "SESSION_AMBIGUOUS"

    def __init__(self, prefix: str, matches: Sequence[str]) -> None:
        self.prefix = prefix
        self.matches = list(matches)
        self.hint = f"Say which one: {', '.join(self.matches)}."

    def __str__(self) -> str:
        return f"{len(self.matches)} sessions begin with {self.prefix}."


class SessionsUnavailable(SessionError):
    code: ClassVar[str] = "SESSIONS_UNAVAILABLE"
    hint = "Check the setting sessions.path, and that the disk has room."

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"The sessions in {self.path} cannot be used: {self.reason}."


# Memory


class MemoryUnavailable(RagChatError):
    """The memory server could not be started, or went away and did not come back."""

    code: ClassVar[str] = "MEMORY_UNAVAILABLE"
    hint = "`ragchat doctor` says more."

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __str__(self) -> str:
        return f"Memory does not answer: {self.reason.rstrip('.')}."


class MemoryTimedOut(RagChatError):
    code: ClassVar[str] = "MEMORY_TIMED_OUT"

    def __init__(self, tool: str, seconds: float) -> None:
        self.tool = tool
        self.seconds = seconds

    def __str__(self) -> str:
        return f"Memory did not answer {self.tool} within {self.seconds:g} s."


class MemoryRefused(RagChatError):
    """The memory server answered with an error; `word` is its errorCode, `reason` its sentence."""

    code: ClassVar[str] = "MEMORY_REFUSED"

    def __init__(self, word: str, reason: str, hint: str = "") -> None:
        self.word = word
        self.reason = reason
        self.hint = hint

    def __str__(self) -> str:
        return self.reason


# Scripts


class ScriptInvalid(RagChatError):
    code: ClassVar[str] = "SCRIPT_INVALID"

    def __init__(self, path: str, reason: str, hint: str = "") -> None:
        self.path = path
        self.reason = reason
        self.hint = hint

    def __str__(self) -> str:
        return f"The script {self.path} cannot be used: {self.reason}."


# Slash commands


class UnknownCommand(RagChatError):
    code: ClassVar[str] = "COMMAND_UNKNOWN"

    def __init__(self, name: str, near: Sequence[str] = ()) -> None:
        self.name = name
        self.near = list(near)
        nearest = f"Did you mean /{self.near[0]}? " if self.near else ""
        self.hint = f"{nearest}/help lists the commands; //{name} sends it as text."

    def __str__(self) -> str:
        return f"There is no command /{self.name}."


class CommandNotPossible(RagChatError):
    code: ClassVar[str] = "COMMAND_NOT_POSSIBLE"

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"/{self.name} is not possible now: {self.reason}."


class ArgumentMissing(RagChatError):
    code: ClassVar[str] = "ARGUMENT_MISSING"

    def __init__(self, name: str, argument: str) -> None:
        self.name = name
        self.argument = argument

    def __str__(self) -> str:
        return f"/{self.name} needs {self.argument}."


class FileInTheWay(RagChatError):
    code: ClassVar[str] = "FILE_EXISTS"
    hint = "Name another one; nothing is overwritten."

    def __init__(self, path: str) -> None:
        self.path = path

    def __str__(self) -> str:
        return f"{self.path} exists already."


class StdinUnusable(RagChatError):
    code: ClassVar[str] = "STDIN_UNUSABLE"

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __str__(self) -> str:
        return f"What came from stdin {self.reason}."
