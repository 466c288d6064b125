"""The query syntax: "quoted phrases" and prefix*, and what a query wants of an index.

Any text is a valid query. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ragcommon.text.rules import query_part
from ragmemory.errors import EmbedderMismatch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.embedders import Embedder
    from ragmemory.stores.engine import Condition

# Straight, typographic, German, French and CJK quotation marks.
# A phrase cannot contain its own opening mark, so that many unclosed marks take linear time.
PHRASE = re.compile(r'"([^"]*)"|“([^“”]*)”|„([^„“”]*)[“”]|«([^«»]*)»|「([^「」]*)」')
MARKS = re.compile(r'["“”„«»「」*]')
# Anchored at the beginning of a word and possessive: a word of a million letters is read once.
PREFIX = re.compile(r"(?<!\w)(\w{2,}+)\*")


@dataclass(frozen=True)
class ParsedQuery:
    """`text` is the query without quotation marks and asterisks; it includes the words of phrases."""

    text: str
    phrases: list[str]
    prefixes: list[str]


def parse(text: str) -> ParsedQuery:
    """Parse the part of a query that is searched for."""
    text = query_part(text)
    phrases = [next(filter(None, match.groups()), "").strip() for match in PHRASE.finditer(text)]
    return ParsedQuery(MARKS.sub(" ", text), [phrase for phrase in phrases if phrase], PREFIX.findall(text))


class SearchRequest(NamedTuple):
    """What one query wants of an index."""

    query: ParsedQuery
    vector: NDArray[np.float32] | None  # (d,) of `embedder`, unit length; None: search by words alone
    embedder: Embedder
    filter: Condition | None
    boosted: set[int]  # ids of the chunks that contain the quoted phrases and prefixes; they come first
    top_k: int

    def for_index(self, identity: str, dimensions: int) -> SearchRequest:
        """The request to an index, without the vector if the embeddings were switched since it was made.

        Raises EmbedderMismatch for other dimensions.
        """
        if self.vector is None or self.embedder.identity != identity:
            return self._replace(vector=None)
        if len(self.vector) != dimensions:
            raise EmbedderMismatch(identity, dimensions, identity, len(self.vector))
        return self
