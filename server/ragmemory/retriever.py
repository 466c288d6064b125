"""Both indexes kept in step with the store, and the search over them. Blocking; called by one thread at a time.

Not a store: what it holds is derived, can be deleted, and is rebuilt from the store's changes.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ragmemory.indexes.matrix import Matrix
from ragmemory.indexes.terms import counted, query_terms
from ragmemory.indexes.vectors import VectorIndex
from ragmemory.indexes.words import WordIndex
from ragmemory.ranking import RankingSettings, Scored, fuse
from ragmemory.types import Mark

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.queries import ParsedQuery
    from ragmemory.types import Changes

# A snapshot of another form is not read.
FORM = 1


class Header(msgspec.Struct):
    """What a snapshot says of itself."""

    form: int
    fingerprint: str
    mark: Mark


class Retriever:
    """`folder` holds the snapshot (None: memory only)."""

    def __init__(self, folder: Path | None, dimensions: int, settings: RankingSettings) -> None:
        self.folder = folder
        self.dimensions = dimensions
        self.settings = settings
        self.fingerprint = ""
        self._empty()

    def open(self, fingerprint: str) -> None:
        """Map the snapshot if it was made of the same store with the same embedder; else start from nothing."""
        self.fingerprint = fingerprint
        self._empty()
        if self.folder is None:
            return
        try:
            self._load(self.folder)
        except (OSError, ValueError, msgspec.DecodeError):
            self._empty()

    def _empty(self) -> None:
        import numpy as np

        self.mark = Mark()
        self.chunk_ids = Matrix(np.empty(0, np.int64))
        self.gone = np.empty(0, np.int64)  # rows, ascending
        self.vectors = VectorIndex.empty(self.dimensions)
        self.words = WordIndex.empty(self.settings.k1, self.settings.b)

    def _load(self, folder: Path) -> None:
        import numpy as np

        header = msgspec.json.decode((folder / "header.json").read_bytes(), type=Header)
        if (header.form, header.fingerprint) != (FORM, self.fingerprint):
            return
        chunk_ids = Matrix.load(folder / "chunk_ids.npy")
        vectors = VectorIndex.load(folder)
        words = WordIndex.load(folder, self.settings.k1, self.settings.b)
        if not len(chunk_ids) == len(vectors) == len(words):
            return
        self.chunk_ids, self.vectors, self.words, self.mark = chunk_ids, vectors, words, header.mark
        self.gone = np.load(folder / "gone.npy")

    def save(self) -> None:
        """Write the snapshot beside the old one and put it in its place. Raises OSError."""
        import numpy as np

        if self.folder is None:
            return
        fresh = self.folder.with_name(self.folder.name + ".new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700, parents=True)
        self.chunk_ids.save(fresh / "chunk_ids.npy")
        np.save(fresh / "gone.npy", self.gone)
        self.vectors.save(fresh)
        self.words.save(fresh)
        header = Header(FORM, self.fingerprint, self.mark)
        (fresh / "header.json").write_bytes(msgspec.json.encode(header))
        shutil.rmtree(self.folder, ignore_errors=True)
        fresh.rename(self.folder)

    def __len__(self) -> int:
        return len(self.chunk_ids) - len(self.gone)

    def apply(self, changes: Changes) -> None:
        """Take in what the store has written since `mark`."""
        import numpy as np

        if changes.chunk_ids:
            self.chunk_ids.add(np.array(changes.chunk_ids, np.int64))
            self.vectors.add(changes.embeddings)
            self.words.add(
                [
                    counted(text, f"{title} {heading}", self.settings.title_weight)
                    for text, title, heading in zip(
                        changes.texts, changes.titles, changes.headings, strict=True
                    )
                ]
            )
        if changes.removed:
            self.gone = np.union1d(self.gone, self._rows(np.array(changes.removed, np.int64)))
            if 4 * len(self.gone) > len(self):
                self._compact()
        self.mark = changes.mark

    def _rows(self, chunk_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of those chunks that are known."""
        import numpy as np

        known = np.concatenate(self.chunk_ids.parts)
        rows = np.searchsorted(known, chunk_ids)
        rows[rows == len(known)] = 0
        return np.unique(rows[known[rows] == chunk_ids]) if len(known) else rows[:0]

    def _compact(self) -> None:
        """Removed rows still count in document frequencies and lengths; a few do no harm, a quarter would."""
        import numpy as np

        rows = np.delete(np.arange(len(self.chunk_ids)), self.gone)
        self.chunk_ids.keep(rows)
        self.vectors.keep(rows)
        self.words.keep(rows)
        self.gone = self.gone[:0]

    def search(
        self,
        query: ParsedQuery,
        vector: NDArray[np.float32] | None,
        allowed: NDArray[np.int64] | None,
        boosted: set[int],
        top_k: int,
    ) -> list[Scored]:
        """The best `top_k` chunks, best first.

        `vector` is (d,) float32 of unit length, None: by words alone; `allowed` are the chunk ids that pass the
        filter, None: all; `boosted` those that hold the quoted phrases or prefixes.
        """
        import numpy as np

        if not len(self):
            return []
        words = self.words.search(query_terms(query.text))
        meaning = None if vector is None else self.vectors.search(vector)
        closed = (
            self.gone if allowed is None else np.delete(np.arange(len(self.chunk_ids)), self._rows(allowed))
        )
        lists = [self._rows(np.array(sorted(boosted), np.int64))] if boosted else []
        for scores in (words, meaning):
            if scores is not None:
                scores.scores[closed] = 0
                scores.scores[self.gone] = 0
                lists.append(scores.best(self.settings.candidates))
        rows = np.unique(np.concatenate(lists))
        rows = rows[~np.isin(rows, closed)]
        if not len(rows):
            return []
        bm25 = words.at(rows)
        cosines = np.zeros(len(rows), np.float32) if meaning is None else meaning.at(rows)
        fused = fuse(cosines, bm25, self.settings.alpha if meaning is not None else 0.0)
        if boosted:
            fused += np.isin(self.chunk_ids.take(rows), list(boosted))
        order = np.argsort(-fused, kind="stable")[:top_k]
        ids = self.chunk_ids.take(rows)
        return [
            Scored(int(ids[i]), float(min(1.0, fused[i])), float(cosines[i]), float(bm25[i])) for i in order
        ]
