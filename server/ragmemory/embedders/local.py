"""The embedded embedder: wordllama's static token vectors, read straight from the two files of its wheel.

Its own API is not used: it takes 0.4 s to load, looks for its tokenizer on the network, embeds an empty text
as NaN, and pools by the plain mean.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from ragmemory.errors import EmbedderUnavailable
from ragmemory.types import Embedding

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.embedders import Weigh
    from ragmemory.embedders.static import StaticModel

IDENTITY = "local:wordllama-l2-256"
DIMENSIONS = 256
WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"


class LocalEmbedder:
    """Needs no network. The model (50 MB in memory) is loaded once, by whichever thread needs it first."""

    identity = IDENTITY
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: StaticModel | None = None

    def load(self) -> StaticModel:
        """Blocking (0.2 s the first time). Raises EmbedderUnavailable."""
        with self._lock:
            if self._model is None:
                self._model = load_model()
            return self._model

    def count_tokens(self, texts: list[str]) -> list[int]:
        return self.load().count_tokens(texts)

    async def embed_documents(self, texts: Sequence[str], titles: Sequence[str]) -> list[Embedding]:
        return await to_thread.run_sync(self._embed, texts, titles)

    def _embed(self, texts: Sequence[str], titles: Sequence[str]) -> list[Embedding]:
        return [row.tobytes() for row in self.load().embed_documents(texts, titles).astype("<f2")]

    async def embed_query(self, text: str, weigh: Weigh) -> NDArray[np.float32] | None:
        return await to_thread.run_sync(lambda: self.load().embed_query(text, weigh))

    async def aclose(self) -> None:
        """There is nothing to let go of."""


def load_model() -> StaticModel:
    from safetensors import SafetensorError, safe_open
    from tokenizers import Tokenizer

    from ragmemory.embedders.static import StaticModel

    # Finding the package does not import it, which would take 0.3 s.
    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise EmbedderUnavailable(IDENTITY, "the package wordllama is not installed", "pip install wordllama")
    folder = Path(spec.origin).parent
    try:
        with safe_open(folder / WEIGHTS, "numpy") as file:
            vectors = file.get_tensor("embedding.weight")
        tokenizer = Tokenizer.from_buffer((folder / TOKENIZER).read_bytes())
    except (OSError, ValueError, SafetensorError) as error:
        hint = "Install it anew: pip install --force-reinstall wordllama"
        raise EmbedderUnavailable(IDENTITY, f"a file of wordllama cannot be read ({error})", hint) from None
    return StaticModel(tokenizer, vectors)
