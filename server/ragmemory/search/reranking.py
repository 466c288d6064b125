"""Rerank the best passages with a cross-encoder, which reads question and passage together (fastembed).

It changes the order of hits and gives them `rerank_score`. Their `score` stays the estimated relevance: the
thresholds of a query and of grounded answers mean the same with and without a reranker.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import anyio
from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

from ragcommon.text.rules import passage_names
from ragmemory.embedders import DOWN_SECONDS
from ragmemory.embedders.onnx_files import (
    ModelUnusable,
    as_folder,
    identity_of,
    model_file,
    named_model,
    using_fastembed,
)
from ragmemory.errors import RerankerUnavailable

if TYPE_CHECKING:
    from ragcommon.contract.search import Hit

# Pairs that are scored at a time: more are no faster on a processor, and take more memory.
BATCH = 8
# Seconds that a query waits for the model. A download takes longer, and continues in the background.
LOADING_SECONDS = 5.0


class RerankerSettings(Struct, frozen=True):
    """The table [reranker]."""

    kind: Literal["none", "fastembed"]
    model: str
    passages: int
    deadline_seconds: float
    threads: int


class Reranker:
    """`cache` is the folder of downloaded models.

    The first query starts loading, and if needed downloading, the model in the background and waits
    LOADING_SECONDS for it. The process exits without waiting for it.
    """

    def __init__(self, settings: RerankerSettings, cache: Path) -> None:
        self.settings = settings
        self._cache = cache
        self._model: Any = None  # fastembed's `TextCrossEncoder`
        self._failure: ModelUnusable | None = None
        self._failed_at = 0.0
        self._loading: threading.Thread | None = None
        # One query at a time: abandoned ones are still being computed.
        self._limiter = anyio.CapacityLimiter(1)

    async def rerank(self, query: str, hits: Sequence[Hit], first: set[int]) -> list[Hit]:
        """All hits, the best `settings.passages` of them in a new order, with new ranks.

        Hits whose chunk ids are in `first` stay before the others. Raises RerankerUnavailable.
        """
        judged, rest = hits[: self.settings.passages], hits[self.settings.passages :]
        texts = [
            "\n".join([*passage_names(hit.title, hit.heading), hit.context + hit.text]) for hit in judged
        ]
        model = await self._loaded()
        with anyio.move_on_after(self.settings.deadline_seconds) as deadline:
            scores = await self._scores(model, query, texts)
        if deadline.cancelled_caught:
            reason = f"it took longer than {self.settings.deadline_seconds:g} s"
            raise RerankerUnavailable(self.settings.model, reason, "Raise reranker.deadline_seconds.")
        scored = sorted(
            zip(scores, judged, strict=True), key=lambda pair: (pair[1].chunk_id not in first, -pair[0])
        )
        ordered = [*(replace(hit, rerank_score=score) for score, hit in scored), *rest]
        return [replace(hit, rank=rank) for rank, hit in enumerate(ordered, 1)]

    async def _scores(self, model: Any, query: str, texts: Sequence[str]) -> list[float]:
        def score() -> list[float]:
            with using_fastembed():
                return [probability(value) for value in model.rerank(query, texts, BATCH)]

        try:
            return await to_thread.run_sync(score, abandon_on_cancel=True, limiter=self._limiter)
        except ModelUnusable as error:
            raise RerankerUnavailable(self.settings.model, error.reason, error.hint) from error

    async def _loaded(self) -> Any:
        """Raises RerankerUnavailable."""
        is_down = self._failure is not None and time.monotonic() < self._failed_at + DOWN_SECONDS
        is_loading = self._loading is not None and self._loading.is_alive()
        if self._model is None and not is_down and not is_loading:
            self._failure = None
            # A thread of its own: a download must not keep the process from ending.
            self._loading = threading.Thread(target=self._load, name="reranker", daemon=True)
            self._loading.start()
            # Only the query that started it waits.
            join = partial(self._loading.join, LOADING_SECONDS)
            await to_thread.run_sync(join, abandon_on_cancel=True)
        if self._failure is not None:
            raise RerankerUnavailable(self.settings.model, self._failure.reason, self._failure.hint)
        if self._model is None:
            reason = "it is being loaded or downloaded"
            raise RerankerUnavailable(self.settings.model, reason, "Later questions will find it ready.")
        return self._model

    def _load(self) -> None:
        try:
            with using_fastembed():
                self._model = load(self.settings, self._cache)
        except ModelUnusable as error:
            self._failed_at = time.monotonic()
            self._failure = error


def load(settings: RerankerSettings, cache: Path) -> Any:
    """Load the model; download it if it has a name. Raises ModelUnusable, and whatever fastembed raises."""
    from fastembed.common.model_description import ModelSource
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    folder = as_folder(settings.model)
    if folder is None:
        name, folder = named_model(TextCrossEncoder, settings.model, cache, may_download=True)
    else:
        name, file = identity_of(str(folder)), model_file(folder)
        if all(entry["model"] != name for entry in TextCrossEncoder.list_supported_models()):
            TextCrossEncoder.add_custom_model(name, ModelSource(hf=name), file)
    return TextCrossEncoder(
        name,
        str(cache),
        settings.threads,
        specific_model_path=str(folder),
        enable_cpu_mem_arena=False,
    )


def probability(logit: float) -> float:
    """The probability that a cross-encoder was trained to give."""
    import math

    return 1 / (1 + math.exp(-min(max(float(logit), -50.0), 50.0)))
