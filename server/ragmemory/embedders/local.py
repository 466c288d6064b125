"""The built-in embedder: wordllama's static token vectors, read directly from the two files of its wheel.

wordllama's own API is not used: it takes 0.4 s to load, looks for its tokenizer on the network, embeds an
empty text as NaN, and pools by the plain mean.
"""

from __future__ import annotations

import errno
import importlib.util
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from anyio import to_thread

from ragmemory.embedders import Embedder, WordWeights
from ragmemory.embedders.calibration import LOCAL
from ragmemory.errors import EmbedderUnavailable
from ragmemory.types.writes import Embedding

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.embedders.document_model import DocumentModel
    from ragmemory.embedders.query_model import QueryModel

IDENTITY = "local:wordllama-l2-256"
DIMENSIONS = 256
WEIGHTS = "weights/l2_supercat_256.safetensors"
MATRIX = "embedding.weight"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
# Shorter queries, in characters, are embedded in less time than waking a thread takes.
SHORT_QUERY = 500
# Up to this many passages, comparing words takes about as long.
FEW_TEXTS = 50
# https://huggingface.co/docs/safetensors: the size of the header, the header as JSON, then all tensors.
SIZE_BYTES = 8
# The most bytes read as a header; a damaged file may state any size.
MAX_HEADER_BYTES = 1 << 20


class LocalEmbedder(Embedder):
    """Two models; each is loaded once, by the first thread that needs it.

    The document model takes 0.15 s and 50 MB of memory, the query model a tenth of both.
    """

    identity = IDENTITY
    dimensions = DIMENSIONS
    scale = LOCAL
    is_costly = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._document_model: DocumentModel | None = None
        self._query_model: QueryModel | None = None

    def document_model(self) -> DocumentModel:
        """Load the model for documents. Blocking. Raises EmbedderUnavailable."""
        with self._lock:
            if self._document_model is None:
                self._document_model = load_document_model()
            return self._document_model

    def query_model(self) -> QueryModel:
        """Load the model for queries. Blocking. Raises EmbedderUnavailable."""
        with self._lock:
            if self._query_model is None:
                self._query_model = load_query_model()
            return self._query_model

    def warm_up(self) -> None:
        self.query_model()

    def pieces(self, word: str) -> int:
        return self._query_model.pieces(word) if self._query_model is not None else 0

    def count_tokens(self, texts: list[str]) -> list[int]:
        return self.document_model().count_tokens(texts)

    async def embed_documents(self, texts: Sequence[str], titles: Sequence[str]) -> list[Embedding]:
        return await to_thread.run_sync(self.embed, texts, titles)

    def embed(self, texts: Sequence[str], titles: Sequence[str]) -> list[Embedding]:
        vectors = self.document_model().embed(texts, titles).astype("<f2")
        return [vector.tobytes() for vector in vectors]

    async def embed_query(self, text: str, weights: WordWeights) -> NDArray[np.float32] | None:
        if self._query_model is not None and len(text) < SHORT_QUERY:
            return self._query_model.embed(text, weights)
        return await to_thread.run_sync(lambda: self.query_model().embed(text, weights))

    async def word_matches(self, words: Sequence[str], texts: Sequence[str]) -> NDArray[np.float32]:
        if self._query_model is not None and len(texts) <= FEW_TEXTS:
            return self._query_model.words.matches(words, texts)
        return await to_thread.run_sync(lambda: self.query_model().words.matches(words, texts))


def load_document_model() -> DocumentModel:
    from tokenizers import Tokenizer

    from ragmemory.embedders.document_model import DocumentModel

    with wordllama_files() as folder:
        tokenizer = Tokenizer.from_buffer((folder / TOKENIZER).read_bytes())
        return DocumentModel(tokenizer, mapped_matrix(folder / WEIGHTS, MATRIX))


def load_query_model() -> QueryModel:
    from ragmemory.embedders.byte_pairs import BytePairEncoder
    from ragmemory.embedders.query_model import QueryModel

    with wordllama_files() as folder:
        encoder = BytePairEncoder.load(folder / TOKENIZER)
        return QueryModel(mapped_matrix(folder / WEIGHTS, MATRIX), encoder)


@contextmanager
def wordllama_files() -> Iterator[Path]:
    """The folder of wordllama's files. Errors in reading them are raised as EmbedderUnavailable."""
    # Finding the package does not import it, which would take 0.3 s.
    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise EmbedderUnavailable(IDENTITY, "the package wordllama is not installed", "pip install wordllama")
    try:
        yield Path(spec.origin).parent
    except (OSError, ValueError, KeyError, msgspec.MsgspecError) as error:
        hint = "Install it again: pip install --force-reinstall wordllama"
        if isinstance(error, OSError) and error.errno in (errno.ENOMEM, errno.EMFILE, errno.ENFILE):
            hint = "Close other programs, or raise the limits of this one (`ulimit -a` shows them)."
        raise EmbedderUnavailable(IDENTITY, f"a file of wordllama cannot be read ({error})", hint) from None


def mapped_matrix(path: Path, name: str) -> NDArray[np.float16]:
    """One matrix of a safetensors file, mapped: the package `safetensors` would read and copy all of it.

    Raises OSError, ValueError, KeyError or msgspec.DecodeError for a damaged file.
    """
    import numpy as np

    with path.open("rb") as file:
        size = int.from_bytes(file.read(SIZE_BYTES), "little")
        header: dict[str, Any] = msgspec.json.decode(file.read(min(size, MAX_HEADER_BYTES)), type=dict)
    tensor = header[name]
    if tensor["dtype"] != "F16":
        raise ValueError(f"{name} is of type {tensor['dtype']}")
    start = SIZE_BYTES + size + tensor["data_offsets"][0]
    return np.asarray(np.memmap(path, "<f2", "r", start, tuple(tensor["shape"])))
