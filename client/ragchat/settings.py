"""The chat's own tables of the settings. Light: `query` reads them too.

The ranges of the numbers are in `ragconfig/ranges.toml`: loading checks those of both programs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

Amount = Annotated[float, Meta(ge=0)]


class Price(Struct, frozen=True, forbid_unknown_fields=True):
    """What a million tokens of a model cost, of the prompt and of the answer, in the user's currency."""

    prompt: Amount = field(name="in")
    answer: Amount = field(name="out")


class ModelSettings(Struct):
    """The table [model]."""

    name: str
    base_url: str
    key_file: str
    openai_model: str
    ollama_url: str
    ollama_seconds: float
    context_tokens: int
    answer_tokens: int
    temperature: float
    max_tokens: int
    reasoning_effort: str
    extra_body: dict[str, Any]
    timeout_seconds: float
    retries: int
    turn_seconds: float
    answer_characters: int
    message_bytes: int
    prices: dict[str, Price]


class RetrievalSettings(Struct):
    """The table [retrieval]."""

    top_k: int
    min_score: float
    deadline_seconds: float
    passage_tokens: int
    rewrite: Literal["never", "when_weak"]
    rewrite_seconds: float


class ToolSettings(Struct):
    """The table [tools]."""

    offered: list[str]
    description_tokens: int
    rounds: int
    turn_seconds: float
    timeout_seconds: float


class ResearchSettings(Struct):
    """The table [research]."""

    sub_questions: int
    rounds: int
    tokens: int
    seconds: float


class ServerSettings(Struct):
    """The table [servers]."""

    start_seconds: float
    wait_seconds: float
    timeout_seconds: float
    calls: int
    message_bytes: int


class WebSettings(Struct):
    """The table [web]."""

    host: str
    port: int
    password_file: str
    certificate: str
    private_key: str
    public_url: str
    token_file: str
    upload_bytes: int


class ConnectionSettings(Struct):
    """Those of the table [http] that bound each connection of the page, too."""

    header_bytes: int
    head_seconds: float
    idle_seconds: int
    leave_seconds: float


def temporary_memory(path: Path) -> dict[str, Any]:
    """The settings of a memory in a file of our own, whatever the memory of the user is."""
    return {"memory.path": str(path), "memory.read_only": False, "memory_server.url": "", "index.url": ""}
