"""The embedded embedder: wordllama's static token vectors, read straight from the two files of its wheel.

Its own API is not used: it takes 0.4 s to load, looks for its tokenizer on the network, embeds an empty text
as NaN, and pools by the plain mean.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from anyio import to_thread

from ragmemory.errors import EmbedderUnavailable
from ragmemory.types import Embedding

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.embedders import Weigh
    from ragmemory.embedders.questions import QuestionModel
    from ragmemory.embedders.static import StaticModel

IDENTITY = "local:wordllama-l2-256"
DIMENSIONS = 256
WEIGHTS = "weights/l2_supercat_256.safetensors"
MATRIX = "embedding.weight"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
# Characters of a question that is embedded before a thread could be woken for it.
SHORT = 500


class LocalEmbedder:
    """Needs no network. Two models, each loaded once, by whichever thread needs it first.

    The one for documents takes 0.15 s and 50 MB of memory, the one for questions a tenth of it.
    """

    identity = IDENTITY
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: StaticModel | None = None
        self._questions: QuestionModel | None = None

    def load(self) -> StaticModel:
        """The model for documents. Blocking. Raises EmbedderUnavailable."""
        with self._lock:
            if self._model is None:
                self._model = load_model()
            return self._model

    def load_questions(self) -> QuestionModel:
        """The model for questions. Blocking. Raises EmbedderUnavailable."""
        with self._lock:
            if self._questions is None:
                self._questions = load_question_model()
            return self._questions

    def get_ready(self) -> None:
        self.load_questions()

    def count_tokens(self, texts: list[str]) -> list[int]:
        return self.load().count_tokens(texts)

    async def embed_documents(self, texts: Sequence[str], titles: Sequence[str]) -> list[Embedding]:
        return await to_thread.run_sync(self._embed, texts, titles)

    def _embed(self, texts: Sequence[str], titles: Sequence[str]) -> list[Embedding]:
        return [row.tobytes() for row in self.load().embed_documents(texts, titles).astype("<f2")]

    async def embed_query(self, text: str, weigh: Weigh) -> NDArray[np.float32] | None:
        if self._questions is not None and len(text) < SHORT:
            return self._questions.embed(text, weigh)
        return await to_thread.run_sync(lambda: self.load_questions().embed(text, weigh))

    async def aclose(self) -> None:
        """There is nothing to let go of."""


def load_model() -> StaticModel:
    from tokenizers import Tokenizer

    from ragmemory.embedders.static import StaticModel
    from ragmemory.embedders.weights import mapped_matrix

    with readable() as folder:
        tokenizer = Tokenizer.from_buffer((folder / TOKENIZER).read_bytes())
        return StaticModel(tokenizer, mapped_matrix(folder / WEIGHTS, MATRIX))


def load_question_model() -> QuestionModel:
    from ragmemory.embedders.pieces import Pieces
    from ragmemory.embedders.questions import QuestionModel
    from ragmemory.embedders.weights import mapped_matrix

    with readable() as folder:
        return QuestionModel(mapped_matrix(folder / WEIGHTS, MATRIX), Pieces.load(folder / TOKENIZER))


@contextmanager
def readable() -> Iterator[Path]:
    """The folder of wordllama's files, and what goes wrong in reading them as EmbedderUnavailable."""
    # Finding the package does not import it, which would take 0.3 s.
    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise EmbedderUnavailable(IDENTITY, "the package wordllama is not installed", "pip install wordllama")
    try:
        yield Path(spec.origin).parent
    except (OSError, ValueError, KeyError, msgspec.MsgspecError) as error:
        hint = "Install it anew: pip install --force-reinstall wordllama"
        raise EmbedderUnavailable(IDENTITY, f"a file of wordllama cannot be read ({error})", hint) from None
