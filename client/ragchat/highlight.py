"""Finds the significant words of a question in a text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragchat.grounding.words import content_words, index_terms, is_general, is_unspaced
from ragcommon.text.rules import MARKS, UNSPACED

# A run of a script without spaces, or a word; an identifier is one word.
_WORD = re.compile(rf"[{UNSPACED}]+|[^\W{UNSPACED}]++(?:[{MARKS}]++[^\W{UNSPACED}]*+)*+")


class Highlight:
    """Finds the words of a question in texts, also inflected, and as parts of identifiers.

    `prefix` is a word that the user is still typing: what begins with it is found as well.
    """

    def __init__(self, question: str, prefix: str = "") -> None:
        self._prefix = prefix.lower()
        significant = (word for word in content_words(question) if not is_general(word))
        self._terms = {term for word in significant for term in index_terms(word)}

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where such words begin and end, in order."""
        # Texts repeat most words, and few are sought.
        sought = {word for word in set(_WORD.findall(text)) if self._is_sought(word)}
        for found in _WORD.finditer(text) if sought else ():
            word, covered = found.group(), found.start()
            if word in sought and not is_unspaced(word):
                yield found.span()
            elif word in sought:
                for place in range(found.start(), found.end()):
                    if text[place : place + 2] in self._terms and place + 2 > covered:
                        yield max(place, covered), min(place + 2, found.end())
                        covered = place + 2

    def _is_sought(self, word: str) -> bool:
        is_begun = bool(self._prefix) and word.lower().startswith(self._prefix)
        return is_begun or not self._terms.isdisjoint(index_terms(word))

    def parts(self, text: str) -> Iterator[tuple[str, bool]]:
        """The text in parts, each with whether it stands out."""
        end = 0
        for start, stop in self.spans(text):
            yield text[end:start], False
            yield text[start:stop], True
            end = stop
        yield text[end:], False
