"""Texts to vectors. Each embedder implements `Embedder`; `app.make_embedder` chooses one.

`local` needs no network; `fastembed` runs larger models on this machine; `openai` calls any OpenAI-compatible
endpoint. Knows no MCP.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.embedders.calibration import CosineScale
    from ragmemory.types.writes import Embedding

# Seconds after a failure during which calls fail with the same error.
DOWN_SECONDS = 30.0

# Returns the weight of each word in this memory; rare words have a higher weight.
WordWeights = Callable[[list[str]], Sequence[float]]


class EmbedderSettings(Struct, frozen=True):
    """The table [embedder]."""

    kind: Literal["local", "fastembed", "openai"]
    model: str
    fastembed_model: str
    openai_model: str
    base_url: str
    key_file: str
    batch: int
    timeout_seconds: float
    retries: int
    threads: int


class Embedder(Protocol):
    """Every method that needs the model raises EmbedderUnavailable.

    An embedder inherits from it the methods for which it has nothing to do or to say.
    """

    identity: str
    """The name of the model. Two embedders with the same identity give the same vectors."""

    dimensions: int
    """The dimensions of every vector; 0 until the model has been used for the first time."""

    is_costly: bool
    """Whether embedding a text takes far longer than finding its embedding among the stored ones."""

    scale: CosineScale
    """The distribution of cosines between unrelated texts."""

    def warm_up(self) -> None:
        """Load what the first query needs. Blocking: run it in a worker thread."""
        return

    def pieces(self, word: str) -> int:  # noqa: ARG002
        """In how many pieces the model knows a lower-case word: 1 for a usual one; 0 if that is unknown."""
        return 0

    def longest_text(self) -> int | None:
        """The most tokens that a chunk may have; None for no limit. Blocking: run it in a worker thread."""
        return None

    def count_tokens(self, texts: list[str]) -> list[int]:
        """How many tokens each text has. Blocking: run it in a worker thread."""

    async def embed_documents(self, texts: Sequence[str], titles: Sequence[str]) -> list[Embedding]:
        """One embedding for each text, given the title (and headings) above it."""

    async def embed_query(self, text: str, weights: WordWeights) -> NDArray[np.float32] | None:
        """(d,) float32, unit length; None if nothing in the text can be embedded.

        `weights` may be called from a worker thread, or not at all.
        """

    async def word_matches(self, words: Sequence[str], texts: Sequence[str]) -> NDArray[np.float32] | None:  # noqa: ARG002
        """(texts, words) in [-1, 1]: the cosine of each word with the nearest word of each text.

        None if the model has no vectors of single words.
        """
        return None

    async def aclose(self) -> None:
        """Close all connections."""
        return


def inputs_of(texts: Sequence[str], titles: Sequence[str]) -> list[str]:
    """What a contextual model embeds: each text below the title (and headings) above it."""
    return [f"{title}\n{text}" if title else text for text, title in zip(texts, titles, strict=True)]
