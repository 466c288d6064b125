"""What makes vectors of texts: the seam, and the choice between its implementations."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragconfig.settings import Settings
    from ragmemory.types import Embedding

# See `search.index`: whichever of the two is imported first must set it before numpy is.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# How much each word of a question tells in this memory: what is everywhere tells little.
Weigh = Callable[[list[str]], Sequence[float]]


class EmbedderSettings(Struct, frozen=True):
    """The table [embedder]."""

    kind: Literal["local", "openai"]
    model: str
    base_url: str
    key_file: str
    batch: int
    timeout_seconds: float
    retries: int


class Embedder(Protocol):
    """Whatever needs the model raises EmbedderUnavailable."""

    @property
    def identity(self) -> str:
        """What made the vectors: two embedders of one identity give the same vectors."""

    @property
    def dimensions(self) -> int:
        """Of every vector; 0 while only the first answer of a service will tell."""

    def get_ready(self) -> None:
        """Do now what the first question would wait for. Blocking: for a worker thread."""

    def count_tokens(self, texts: list[str]) -> list[int]:
        """How many tokens each text has. Blocking: for a worker thread."""

    async def embed_documents(self, texts: Sequence[str], titles: Sequence[str]) -> list[Embedding]:
        """One embedding for each text, under the title (and headings) at the same place of `titles`."""

    async def embed_query(self, text: str, weigh: Weigh) -> NDArray[np.float32] | None:
        """(d,) float32 of unit length; None where the text has nothing that could be embedded.

        `weigh` may be called from a worker thread, or not at all.
        """

    async def aclose(self) -> None:
        """Let go of connections."""


def make_embedder(settings: Settings) -> Embedder:
    """The embedder of the table [embedder]; it loads or connects at first need. Raises SettingsError."""
    table = settings.table("embedder", EmbedderSettings)
    if table.kind == "local":
        from ragmemory.embedders.local import LocalEmbedder

        return LocalEmbedder()
    from ragmemory.embedders.openai import OpenAIEmbedder

    return OpenAIEmbedder(table)
