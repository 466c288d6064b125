"""The chat's own tables of the settings. Light: `query` reads them too."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

Count: TypeAlias = Annotated[int, Meta(ge=1)]
CountOrNone: TypeAlias = Annotated[int, Meta(ge=0)]
Seconds: TypeAlias = Annotated[float, Meta(gt=0)]


class ModelSettings(Struct):
    """The table [model]."""

    name: str
    base_url: str
    key_file: str
    openai_model: str
    ollama_url: str
    ollama_seconds: Seconds
    context_tokens: Count
    answer_tokens: Count
    timeout_seconds: Seconds
    retries: CountOrNone


class RetrievalSettings(Struct):
    """The table [retrieval]."""

    top_k: Annotated[int, Meta(ge=1, le=100)]
    min_score: float
    deadline_seconds: Seconds
    passage_tokens: Count


class ToolSettings(Struct):
    """The table [tools]."""

    offered: list[str]
    rounds: CountOrNone
    timeout_seconds: Seconds
