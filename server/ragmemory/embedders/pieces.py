"""A word → its tokens, for the few words of a question. Many words are faster with `tokenizers`.

But that takes 0.1 s to load, half of what a first question waits for; the vocabulary alone takes 15 ms, and
is enough: whenever two neighbouring pieces make a third, the one with the lowest number is made first, and
what no piece can write is spelled in bytes (byte pair encoding as SentencePiece does it).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import msgspec

# What a piece at the beginning of a word begins with.
SPACE = "▁"
# The characters after which a word is cut: the time grows with the square of its length.
LONGEST = 64
# Words whose tokens are kept at hand.
REMEMBERED = 10_000
NONE = 1 << 31


class Model(msgspec.Struct):
    vocab: dict[str, int]


class TokenizerFile(msgspec.Struct):
    """The part of a tokenizer's file that is used."""

    model: Model


class Pieces:
    """Safe for several threads."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self._numbers = numbers
        self._remembered = lru_cache(REMEMBERED)(self._tokens)

    @classmethod
    def load(cls, path: Path) -> Pieces:
        """Raises OSError, msgspec.DecodeError."""
        return cls(msgspec.json.decode(path.read_bytes(), type=TokenizerFile).model.vocab)

    def tokens(self, word: str) -> list[int]:
        """Those of a word in lower case that holds no white space. Longer ones are no words to remember."""
        return self._remembered(word) if len(word) <= LONGEST else self._tokens(word)

    def _tokens(self, word: str) -> list[int]:
        marked = SPACE + word
        cuts = [marked[i : i + LONGEST] for i in range(0, len(marked), LONGEST)]
        return [self._numbers[piece] for cut in cuts for piece in self._merged(self._spelled(cut))]

    def _spelled(self, text: str) -> list[str]:
        known = self._numbers
        return [
            piece
            for character in text
            for piece in ([character] if character in known else map("<0x{:02X}>".format, character.encode()))
        ]

    def _merged(self, pieces: list[str]) -> list[str]:
        while True:
            made = [self._numbers.get(first + second, NONE) for first, second in pairwise(pieces)]
            lowest = min(made, default=NONE)
            if lowest == NONE:
                return pieces
            at = made.index(lowest)
            pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
