"""All indexes over the same rows, and which chunk each row is. Not a search: see `retriever`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragmemory.indexes.lexicon import Lexicon, Terms
from ragmemory.indexes.matrix import Matrix
from ragmemory.indexes.sequences import SequenceIndex
from ragmemory.indexes.vectors import VectorIndex
from ragmemory.indexes.words import WordIndex

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.ranking import RankingSettings
    from ragmemory.types import Changes

CHUNK_IDS, GONE = "chunk_ids.npy", "gone.npy"
# Removed rows still count in the statistics of words, and are skipped by searches; then they are dropped.
MOST_GONE = 0.25


@dataclass
class ChunkIndexes:
    """Row r of every index is the chunk `chunk_ids[r]`."""

    chunk_ids: Matrix  # (n,) int64, ascending
    gone: NDArray[np.int64]  # rows whose chunk was removed, ascending
    vectors: VectorIndex
    words: WordIndex
    sequences: SequenceIndex
    lexicon: Lexicon = field(default_factory=Lexicon)

    @classmethod
    def empty(cls, dimensions: int, settings: RankingSettings) -> ChunkIndexes:
        import numpy as np

        ids = np.empty(0, np.int64)
        words = WordIndex.empty(settings.k1, settings.b)
        return cls(Matrix(ids), ids, VectorIndex.empty(dimensions), words, SequenceIndex.empty())

    @classmethod
    def load(cls, folder: Path, settings: RankingSettings) -> ChunkIndexes:
        """Raises OSError, ValueError."""
        import numpy as np

        loaded = cls(
            Matrix.load(folder / CHUNK_IDS),
            np.load(folder / GONE),
            VectorIndex.load(folder),
            WordIndex.load(folder, settings.k1, settings.b),
            SequenceIndex.load(folder),
        )
        if len({len(loaded.chunk_ids), len(loaded.vectors), len(loaded.words), len(loaded.sequences)}) > 1:
            raise ValueError("The indexes are of different lengths.")
        return loaded

    def save(self, folder: Path) -> None:
        """Raises OSError."""
        import numpy as np

        self.chunk_ids.save(folder / CHUNK_IDS)
        np.save(folder / GONE, self.gone)
        for index in (self.vectors, self.words, self.sequences):
            index.save(folder)

    def __len__(self) -> int:
        return len(self.chunk_ids) - len(self.gone)

    def add(self, changes: Changes, title_weight: float) -> None:
        """Append the new chunks."""
        import numpy as np

        if self.lexicon.is_full:
            self.lexicon = Lexicon()
        texts = self.lexicon.analyse(changes.texts)
        titles = self.lexicon.analyse(
            [" ".join(above) for above in zip(changes.titles, changes.headings, strict=True)]
        )
        self.chunk_ids.add(np.array(changes.chunk_ids, np.int64))
        self.vectors.add(changes.embeddings)
        self.words.add(*weighed(texts.terms, titles.terms, title_weight))
        self.sequences.add(texts.stems)

    def remove(self, chunk_ids: NDArray[np.int64]) -> None:
        """Chunks that are not known are passed over."""
        import numpy as np

        self.gone = np.union1d(self.gone, self.rows_of(chunk_ids))
        if len(self.gone) > MOST_GONE * len(self.chunk_ids):
            rows = np.delete(np.arange(len(self.chunk_ids)), self.gone)
            self.chunk_ids = self.chunk_ids.kept(rows)
            self.gone = self.gone[:0]
            self.vectors = self.vectors.kept(rows)
            self.words = self.words.kept(rows)
            self.sequences = self.sequences.kept(rows)

    def rows_of(self, chunk_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of those chunks that are known, ascending."""
        import numpy as np

        found, before = [], 0
        for part in self.chunk_ids.parts:  # ascending, so each is searched by bisection
            rows = np.searchsorted(part, chunk_ids)
            known = rows < len(part)
            known[known] = part[rows[known]] == chunk_ids[known]
            found.append(np.unique(rows[known]) + before)
            before += len(part)
        return np.concatenate(found)


def weighed(texts: Terms, titles: Terms, title_weight: float) -> tuple[Terms, NDArray[np.float32]]:
    """The terms of each text and of its title; an occurrence in the title counts `title_weight`."""
    import numpy as np

    both = Terms(
        titles.names,
        np.concatenate([texts.numbers, titles.numbers]),
        np.concatenate([texts.owners, titles.owners]),
        texts.texts,
    )
    sizes = [len(texts.numbers), len(titles.numbers)]
    return both, np.repeat(np.array([1, title_weight], np.float32), sizes)
