"""An answer made of several places, each quoted under a number of its own. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragchat.offline.answer import NO_MODEL
from ragchat.types import Answer, Candidate, Citation, Hit


@dataclass(frozen=True)
class Place:
    """What is quoted from a passage, which need not be a chunk: a list or a section may be longer.

    `lines` are those of the quotation; None: where it is first found in the passage.
    """

    hit: Hit
    quote: str
    lines: tuple[int, int] | None = None

    def citation(self, n: int) -> Citation:
        return Citation.of(n, self.hit, self.quote, self.quote in self.hit.text, self.lines)


def answer_of(
    parts: Sequence[str],
    places: Sequence[Place],
    candidates: Sequence[Candidate],
    *,
    grounded: bool,
    missing: Sequence[str] = (),
) -> Answer:
    """The answer that consists of these paragraphs; `places` are numbered in their order, from 1.

    `candidates` are all that was found; those that are not quoted are marked as unused.
    """
    citations = [place.citation(n) for n, place in enumerate(places, start=1)]
    quoted = {place.hit.chunk_id for place in places}
    return Answer(
        "\n\n".join([*filter(None, parts), NO_MODEL]),
        citations if grounded else [],
        [
            *(Candidate(place.hit, True, "quoted", n) for n, place in enumerate(places, start=1)),
            *(
                Candidate(candidate.hit, False, "not the place that was asked for")
                for candidate in candidates
                if candidate.hit.chunk_id not in quoted
            ),
        ],
        grounded=grounded,
        nearest=[] if grounded else citations,
        missing=list(missing),
    )
