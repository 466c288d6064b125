"""How an embedder's cosines spread, so that one model of relevance serves all embedders.

`search.ranking.relevance` was fitted with the local embedder. Other models have other scales: unrelated texts
have cosines around 0 with some, and around .75 with others. The mean and the deviation of the cosines between
a few questions and answers that have nothing to do with each other place a model's cosines on the local one.
Then the rate of false positives is that of the local embedder, and a model that separates texts better gives
relevant ones higher scores. The order of passages does not change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

# A question, and a passage that answers it.
PAIRS = (
    ("How long do eggs have to boil?", "Cook them in simmering water for seven minutes, then cool them."),
    ("Who founded the observatory?", "The astronomer Maria Lindqvist opened the telescope site in 1911."),
    ("What causes ocean tides?", "The gravity of the moon pulls the sea and raises its level twice a day."),
    ("When is the rent due?", "Tenants transfer the monthly payment by the third working day."),
    ("How do I reverse a list in Python?", "Call reverse() to change it in place, or slice it with [::-1]."),
    ("Which medicine lowers a fever?", "Paracetamol brings down a high body temperature within an hour."),
    ("Why did the company dismiss its director?", "The board let the manager go after profits collapsed."),
    (
        "Where can I park near the station?",
        "A garage for cars behind the railway building is open all night.",
    ),
)
# Below this deviation the scale is unknown, and cosines are used unchanged.
MIN_DEVIATION = 0.005


class CosineScale(Struct, frozen=True):
    """Mean and standard deviation of the cosines of each question of PAIRS with the answers of the others."""

    mean: float
    deviation: float

    def to_local(self, cosines: Floats) -> Floats:
        """Cosines of this scale on that of the local embedder; any shape."""
        if self.deviation < MIN_DEVIATION:
            return cosines
        stretch = LOCAL.deviation / self.deviation
        return (LOCAL.mean + stretch * (cosines - self.mean)).astype(cosines.dtype)


# Measured; a test measures it again.
LOCAL = CosineScale(mean=0.003, deviation=0.064)


def scale_of(questions: Floats, answers: Floats) -> CosineScale:
    """The scale of a model; both are (n, d) of unit length, in the order of PAIRS."""
    import numpy as np

    cosines = questions @ answers.T
    unrelated = cosines[~np.eye(len(cosines), dtype=bool)]
    return CosineScale(float(unrelated.mean()), float(unrelated.std()))
