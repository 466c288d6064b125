"""Contextual models in ONNX format, by name or from a folder, through the package `fastembed`.

fastembed pools and normalises, but adds no prefixes: models that were trained with prefixes get them here.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from anyio import to_thread

from ragmemory.embedders import DOWN_SECONDS, Embedder, EmbedderSettings, WordWeights, inputs_of
from ragmemory.embedders.calibration import LOCAL, PAIRS, CosineScale, scale_of
from ragmemory.embedders.onnx_files import (
    POOLING,
    PROMPTS,
    ModelUnusable,
    as_folder,
    identity_of,
    model_file,
    named_model,
    read_json,
    using_fastembed,
)
from ragmemory.errors import EmbedderUnavailable
from ragmemory.types.writes import Embedding

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    Floats = NDArray[np.float32]

# Short names of good choices. bge-small: English, 67 MB. multilingual-e5: about 100 languages, 470 MB.
SHORT_NAMES = {"bge-small": "bge-small-en-v1.5", "multilingual-e5": "multilingual-e5-small"}
# Not in fastembed's list; its documentation shows how to add it.
E5_SMALL = "intfloat/multilingual-e5-small"
# Texts of 512 tokens that are embedded at a time: more are no faster on a processor, take more memory (12 MB
# each for attention alone), and delay the end of a cancelled call.
BATCH = 8
# Tokens of the model's input that are reserved for the title, the prefix and the special tokens.
AROUND = 32
# Seconds that a query waits for a model that is being loaded or downloaded.
QUERY_SECONDS = 8.0
# fastembed's name for a model that pools by itself.
UNPOOLED = "DISABLED"


class Prefixes(NamedTuple):
    query: str = ""
    passage: str = ""


# What the models' cards ask for, by patterns of the name in lower case; the first that fits counts.
SEARCHING = Prefixes("Represent this sentence for searching relevant passages: ")
PREFIXES = (
    (r"\be5-(small|base|large)", Prefixes("query: ", "passage: ")),
    (r"bge-\w+-zh", Prefixes("为这个句子生成表示以用于检索相关文章：")),
    (r"bge-\w+-en", SEARCHING),
    (r"arctic-embed-.*v2", Prefixes("query: ")),
    (r"arctic-embed", SEARCHING),
    (r"mxbai-embed", SEARCHING),
    (r"nomic-embed", Prefixes("search_query: ", "search_document: ")),
    (r"embeddinggemma", Prefixes("task: search result | query: ", "title: none | text: ")),
    (
        r"qwen3-embedding",
        Prefixes(
            "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
        ),
    ),
)


class Loaded(NamedTuple):
    model: Any  # fastembed's `TextEmbedding`
    tokenizer: Tokenizer
    prefixes: Prefixes
    longest: int  # in tokens; the model cuts off what is longer
    scale: CosineScale
    dimensions: int

    def passages(self, texts: Sequence[str]) -> Floats:
        """(n, d) float32, unit length."""
        prefixed = [self.prefixes.passage + text for text in texts]
        return _matrix(self.model.passage_embed(prefixed, batch_size=BATCH))

    def queries(self, texts: Sequence[str]) -> Floats:
        """(n, d) float32, unit length."""
        return _matrix(self.model.query_embed([self.prefixes.query + text for text in texts]))


class FastEmbedder(Embedder):
    """Loads its model at first need, and keeps it. Documents may download it, queries do not.

    After a failure, calls fail with the same error for a while. `cache` is the folder of downloaded models.
    """

    is_costly = True
    dimensions = 0
    scale = LOCAL

    def __init__(self, settings: EmbedderSettings, cache: Path) -> None:
        self.model_name = SHORT_NAMES.get(settings.model.lower(), settings.model)
        self.identity = f"fastembed:{identity_of(self.model_name)}"
        self._threads = settings.threads
        self._cache = cache
        self._lock = threading.Lock()
        self._loaded: Loaded | None = None
        self._failure: ModelUnusable | None = None
        self._failed_at = 0.0
        self._may_download = False  # when it failed

    def warm_up(self) -> None:
        self._model(may_download=False)

    def pieces(self, word: str) -> int:
        if self._loaded is None:
            return 0
        known = self._loaded.tokenizer.token_to_id
        is_whole = known(word) is not None or known("▁" + word) is not None
        # An unknown word may be one token, too.
        return 1 if is_whole else max(2, len(self._loaded.tokenizer.encode(word, add_special_tokens=False)))

    def longest_text(self) -> int:
        return max(AROUND, self._model().longest - AROUND)

    def count_tokens(self, texts: list[str]) -> list[int]:
        encodings = self._model().tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [len(encoding.ids) for encoding in encodings]

    async def embed_documents(self, texts: Sequence[str], titles: Sequence[str]) -> list[Embedding]:
        loaded = await to_thread.run_sync(self._model, abandon_on_cancel=True)
        inputs = inputs_of(texts, titles)
        # Texts of similar length are together: each is padded to the longest of its batch.
        order = sorted(range(len(inputs)), key=lambda place: len(inputs[place]))
        embeddings = [b""] * len(inputs)
        for start in range(0, len(order), BATCH):
            places = order[start : start + BATCH]
            batch = [inputs[place] for place in places]
            vectors = await to_thread.run_sync(loaded.passages, batch, abandon_on_cancel=True)
            for place, vector in zip(places, vectors.astype("<f2"), strict=True):
                embeddings[place] = vector.tobytes()
        return embeddings

    async def embed_query(self, text: str, weights: WordWeights) -> Floats | None:  # noqa: ARG002
        if not text.strip():
            return None

        def embed() -> Floats:
            vector: Floats = self._model(may_download=False).queries([text])[0]
            return vector

        return await to_thread.run_sync(embed, abandon_on_cancel=True)

    def _model(self, *, may_download: bool = True) -> Loaded:
        """Blocking. Raises EmbedderUnavailable."""
        if self._loaded is not None:
            return self._loaded
        if not self._lock.acquire(timeout=-1 if may_download else QUERY_SECONDS):
            raise EmbedderUnavailable(self.identity, "it is being loaded or downloaded", "Try again soon.")
        try:
            if self._loaded is None:
                loaded = self._load_or_fail(may_download)
                self.dimensions, self.scale, self._loaded = loaded.dimensions, loaded.scale, loaded
            return self._loaded
        except ModelUnusable as error:
            raise EmbedderUnavailable(self.identity, error.reason, error.hint) from error
        finally:
            self._lock.release()

    def _load_or_fail(self, may_download: bool) -> Loaded:
        is_recent = time.monotonic() < self._failed_at + DOWN_SECONDS
        if self._failure is not None and is_recent and self._may_download >= may_download:
            raise self._failure
        try:
            with using_fastembed():
                return load(self.model_name, self._cache, self._threads, may_download=may_download)
        except ModelUnusable as error:
            self._failure, self._failed_at, self._may_download = error, time.monotonic(), may_download
            raise


def load(wanted: str, cache: Path, threads: int, *, may_download: bool) -> Loaded:
    """Load a model and measure its scale. Raises ModelUnusable, and whatever fastembed raises."""
    from fastembed import TextEmbedding
    from fastembed.common.preprocessor_utils import load_tokenizer

    folder = as_folder(wanted)
    if folder is not None:
        name, prefixes = registered(folder), prefixes_of(folder)
    else:
        register_e5()
        name, folder = named_model(TextEmbedding, wanted, cache, may_download=may_download)
        prefixes = prefixes_for(name)
    tokenizer, _ = load_tokenizer(folder)
    longest = tokenizer.truncation["max_length"]
    tokenizer.no_truncation()
    tokenizer.no_padding()
    model = TextEmbedding(
        name,
        str(cache),
        threads,
        specific_model_path=str(folder),
        # Otherwise the memory of the largest batch is never freed.
        enable_cpu_mem_arena=False,
    )
    unmeasured = Loaded(
        model=model, tokenizer=tokenizer, prefixes=prefixes, longest=longest, scale=LOCAL, dimensions=0
    )
    try:
        questions = unmeasured.queries([question for question, _ in PAIRS])
    except ValueError as error:
        if folder is None or pooling_of(folder) != UNPOOLED:
            raise
        reason = f"{folder} does not record how the vectors of tokens become one"
        raise ModelUnusable(reason, f"Copy the whole folder of the model, with {POOLING}.") from error
    answers = unmeasured.passages([answer for _, answer in PAIRS])
    return unmeasured._replace(scale=scale_of(questions, answers), dimensions=answers.shape[1])


def registered(folder: Path) -> str:
    """Add the model in a folder to fastembed's list, and return its name there. Raises ModelUnusable."""
    file = model_file(folder)
    name = identity_of(str(folder))
    _register(name, file, pooling_of(folder))
    return name


def register_e5() -> None:
    _register(E5_SMALL, "onnx/model.onnx", "MEAN", size=0.47)


def _register(name: str, file: str, pooling: str, size: float = 0.0) -> None:
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    if any(entry["model"].lower() == name.lower() for entry in TextEmbedding.list_supported_models()):
        return
    TextEmbedding.add_custom_model(
        model=name,
        pooling=PoolingType[pooling],
        normalization=True,
        sources=ModelSource(hf=name),
        dim=0,  # fastembed only shows it
        model_file=file,
        size_in_gb=size,
    )


def pooling_of(folder: Path) -> str:
    """How the vectors of tokens become one, as sentence-transformers records it in a model's folder.

    UNPOOLED if there is no record: then the model itself must pool, or it cannot be used.
    """
    record = read_json(folder / POOLING)
    modes = {"cls_token": "CLS", "mean_tokens": "MEAN", "lasttoken": "LAST_TOKEN"}
    set_modes = [pooling for mode, pooling in modes.items() if record.get(f"pooling_mode_{mode}")]
    return set_modes[0] if len(set_modes) == 1 else UNPOOLED


def prefixes_of(folder: Path) -> Prefixes:
    """The prompts that the folder of a model records; else those that its name suggests."""
    prompts = read_json(folder / PROMPTS).get("prompts") or {}
    query, passage = prompts.get("query", ""), prompts.get("document") or prompts.get("passage", "")
    return Prefixes(query, passage) if query or passage else prefixes_for(folder.name)


def prefixes_for(name: str) -> Prefixes:
    lowered = name.rpartition("/")[2].lower()
    return next((prefixes for pattern, prefixes in PREFIXES if re.search(pattern, lowered)), Prefixes())


def _matrix(vectors: Iterable[NDArray[Any]]) -> Floats:
    import numpy as np

    from ragmemory.embedders.unit import unit

    return unit(np.array(list(vectors), np.float32))
