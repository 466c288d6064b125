"""The map of the memory: its documents as points, near each other if they are about the same, in clusters.

It is derived from the store alone, so it is the same with each kind of index; the last one is cached.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from heapq import nsmallest
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from ragcommon.contract.documents import MapCluster, MapPoint
from ragmemory.stores.embeddings import Sampled
from ragmemory.stores.store import Store
from ragmemory.text.analysis import grams, has_content_words, is_gapless, plain_words, stemmer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The vector of a document is the mean of those of about this many chunks.
VECTORS = 16
# The words of a document are counted in about this many chunks.
TEXTS = 4
# Documents that are read at a time.
PAGE = 500
MAX_CLUSTERS = 36
# Documents of a cluster, those nearest to its centre, whose words are counted to name it.
NAMED_BY = 30
# Words that name a cluster.
WORDS = 4
# Decimal places of coordinates.
DIGITS = 4


class DocumentMap:
    """Documents without an embedding are not on it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = anyio.Lock()
        self._known = ((-1, -1), 0)  # version and limit of `_made`
        self._made: tuple[list[MapPoint], list[MapCluster]] = [], []

    async def make(self, limit: int, *, is_begun: bool = False) -> tuple[list[MapPoint], list[MapCluster]]:
        """At most `limit` documents, and their clusters, largest first; the points are in this order.

        `is_begun`: further points of the map that was made last are wanted, even if memory has changed.
        """
        async with self._lock:
            wanted = await self._store.engine.version(), limit
            if wanted != self._known and not (is_begun and self._known[1] == limit):
                self._made = await self._make(limit)
                self._known = wanted
            return self._made

    async def _make(self, limit: int) -> tuple[list[MapPoint], list[MapCluster]]:
        import numpy as np

        from ragmemory.search.projection import clusters, layout

        documents, vectors = await self._vectors(await self._store.embeddings.sample(limit))
        if not documents:
            return [], []
        work = layout(vectors)
        while (points := await to_thread.run_sync(next, work)) is None:
            pass
        count = min(MAX_CLUSTERS, max(1, math.isqrt(len(documents) // 2)))
        found = await to_thread.run_sync(clusters, points, count)
        members = sorted(
            (np.flatnonzero(found == number) for number in np.unique(found)), key=len, reverse=True
        )
        centres = [points[rows].mean(axis=0) for rows in members]
        near = [
            rows[((points[rows] - centre) ** 2).sum(axis=1).argsort(kind="stable")]
            for rows, centre in zip(members, centres, strict=True)
        ]

        def of(rows: NDArray[np.int64]) -> list[Sampled]:
            return [documents[row] for row in rows.tolist()]

        names = await self._names([of(rows[:NAMED_BY]) for rows in near])
        return (
            [
                MapPoint(one.document_id, one.uri, one.title, *_rounded(points[row]), number)
                for number, rows in enumerate(near)
                for row, one in zip(rows, of(rows), strict=True)
            ],
            [
                MapCluster(words, len(rows), *_rounded(centre))
                for words, rows, centre in zip(names, near, centres, strict=True)
            ],
        )

    async def _vectors(self, documents: Sequence[Sampled]) -> tuple[list[Sampled], NDArray[np.float32]]:
        """Those of the documents that have embeddings, and the (n, d) means of these, of unit length."""
        import numpy as np

        _, dimensions = await self._store.embedder() or ("", 0)
        sums = np.zeros((len(documents), dimensions), np.float32)
        row_of = {one.number: row for row, one in enumerate(documents)}
        for page in _pages([*row_of]):
            found = [
                pair
                for pair in await self._store.embeddings.vectors(page, VECTORS)
                if len(pair[1]) == 2 * dimensions  # during a reembedding some are empty
            ]
            await to_thread.run_sync(_add, sums, [row_of[pair[0]] for pair in found], [p[1] for p in found])
        lengths = np.linalg.norm(sums, axis=1)
        used = np.flatnonzero(lengths)
        return [documents[row] for row in used.tolist()], sums[used] / lengths[used, None]

    async def _names(self, groups: Sequence[Sequence[Sampled]]) -> list[list[str]]:
        """The telling words of each group of documents."""
        texts: dict[int, str] = {one.number: one.title for group in groups for one in group}
        for page in _pages([*texts]):
            for number, text in await self._store.embeddings.texts(page, TEXTS):
                texts[number] += f"\n{text}"
        split = [[texts[one.number] for one in group] for group in groups]
        return await to_thread.run_sync(telling, split)


def _pages(numbers: Sequence[int]) -> Iterable[Sequence[int]]:
    return (numbers[start : start + PAGE] for start in range(0, len(numbers), PAGE))


def _rounded(point: NDArray[np.float32]) -> tuple[float, float]:
    x, y = point.tolist()
    return round(x, DIGITS), round(y, DIGITS)


def _add(sums: NDArray[np.float32], rows: Sequence[int], vectors: Sequence[bytes]) -> None:
    import numpy as np

    from ragmemory.search.index.segments import as_float32

    stored = np.frombuffer(b"".join(vectors), "<f2").reshape(len(rows), sums.shape[1])
    np.add.at(sums, rows, as_float32(stored))


def telling(groups: Sequence[Sequence[str]]) -> list[list[str]]:
    """The words that distinguish each group of texts from the others, the most telling first.

    A word counts by the share of the group's texts that hold it, and by how few of all groups' do (after
    c-TF-IDF, Grootendorst 2022). Of several forms of a word, the most frequent one is shown.
    """
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    shares: list[dict[str, float]] = []
    for texts in groups:
        holding: Counter[str] = Counter()
        for text in texts:
            stems: set[str] = set()
            for word, count in _words(text).items():
                stem = stemmer().stemWord(word)
                forms[stem][word] += count
                stems.add(stem)
            holding.update(stems)
        shares.append({stem: texts_with / len(texts) for stem, texts_with in holding.items()})
    everywhere: Counter[str] = Counter()
    for share in shares:
        everywhere.update(share)

    names = []
    for share in shares:
        # One more group, or a single one would have no telling words.
        rarity = {stem: math.log((len(groups) + 1) / everywhere[stem]) for stem in share}
        scores = [(-part * rarity[stem], -forms[stem].total(), stem) for stem, part in share.items()]
        names.append([forms[stem].most_common(1)[0][0] for _, _, stem in nsmallest(WORDS, scores)])
    return names


def _words(text: str) -> Counter[str]:
    """The words of a text that may name a cluster; of scripts without spaces, pairs of characters."""
    found: Counter[str] = Counter()
    for word, count in Counter(plain_words(text)).items():
        if is_gapless(word):
            found.update({pair: count for pair in grams(word) if len(pair) == 2})
        elif _is_telling(word):
            found[word] = count
    return found


@lru_cache(10_000)
def _is_telling(word: str) -> bool:
    return len(word) > 2 and not word.isdigit() and has_content_words(word)
