"""The terms of a text for BM25: one analysis for texts and queries."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from hashlib import blake2b
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from ragcommon.text.rules import MARKS, without_accents

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

# Scripts without spaces (Thai to Tibetan, Myanmar, Khmer, kana, Han), and Hangul, whose words include their
# particles: overlapping pairs of characters replace words.
GAPLESS = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff"
    "\u2e80-\u2fdf\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uac00-\ud7af\U00020000-\U0003ffff"
)
# Translates ASCII letters to lower case and other ASCII except digits to spaces; three times as fast as a
# regular expression.
ASCII = bytes(ord(chr(i).lower() if chr(i).isalnum() else " ") for i in range(128)) + bytes(range(128, 256))
# Emoji and dingbats: each is a word.
PICTURES = "\u2600-\u27bf\U0001f300-\U0001faff"
# Compiled at first use: that takes 10 ms, and English texts never need them.
WORD = rf"[{GAPLESS}]+|(?:[^\W_{GAPLESS}]|[{MARKS}])+|[{PICTURES}]"
GAPLESS_START = rf"[{GAPLESS}]"
PLAIN_WORD = r"[^\W_]+"
JOINED_WORDS = r"(?<![A-Za-z0-9])[A-Za-z0-9]++(?:[-_.:+][A-Za-z0-9]++){2,}+"
ISO_DATE = r"\d{4}-\d\d-\d\d"

# Non-ASCII words are folded once and cached (about 10 MB), unless they are too long.
CACHED_PARTS = 50_000
MAX_CACHED = 100

# Stop words, as `words` folds them. Words that mean something in the other language ("die", "war") are left
# out: their document frequency decides.
ENGLISH = (
    "a about above after again against all am an and any are aren as at be because been before "
    "being below between both but by can could couldn d did didn do does doesn doing don down "
    "during each few for from further had hadn has hasn have haven having he her here hers "
    "herself him himself his how i if in into is isn it its itself just ll m me more most mustn "
    "my myself no nor not now o of off on once only or other our ours ourselves out over own re "
    "s same shan she should shouldn so some such t than that the their theirs them themselves "
    "then there these they this those through to too under until up ve very was wasn we were "
    "weren what when where which while who whom why will with won would wouldn y you your yours "
    "yourself yourselves"
)
GERMAN = (
    "aber alle allem allen aller alles als also am an ander andere anderem anderen anderer "
    "anderes auch auf aus bei bis bist da damit dann das dass dein deine dem den denn der "
    "des dessen dich dies diese diesem diesen dieser dieses dir doch dort du durch ein eine "
    "einem einen einer eines er es etwas euch euer eure fur gegen gewesen hab habe haben hat "
    "hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres im in ist "
    "ja jede jedem jeden jeder jedes jene kann kein keine keinem keinen keiner konnen man "
    "manche mein meine mich mir mit muss nach nicht nichts noch nun nur ob oder ohne sehr sein "
    "seine seinem seinen seiner seit sich sie sind so soll sollte sondern uber um und uns unser "
    "unter viel vom von vor wann waren warum was weil welche welchem welchen welcher "
    "welches wenn wer werde werden wie wieder wir wird wo wurde wurden zu zum zur zwischen"
)
STOP_WORDS = frozenset(f"{ENGLISH} {GERMAN}".split())


class Stemmer(Protocol):
    """The part of PyStemmer that is used."""

    def stemWord(self, word: str) -> str: ...  # noqa: N802
    def stemWords(self, words: Sequence[str]) -> list[str]: ...  # noqa: N802


def words(text: str) -> list[str]:
    """The words of a text in order, case and accents folded. A run of a script without spaces is one word."""
    return folded(text).decode().split()


def folded(text: str) -> bytes:
    """The folded words, separated by spaces, in UTF-8."""
    if not text.isascii():
        text = " ".join(
            part if part.isascii() else _cached_folded(part) if len(part) <= MAX_CACHED else _folded(part)
            for part in text.split()
        )
    return text.encode().translate(ASCII)


def _folded(text: str) -> str:
    return " ".join(re.findall(WORD, unicodedata.normalize("NFC", without_accents(text))))


_cached_folded = lru_cache(CACHED_PARTS)(_folded)


def stems(text: str) -> list[str]:
    """The words of a text, stemmed."""
    return stemmer().stemWords(words(text))


def query_stems(text: str) -> list[str]:
    """The stems of a query with repetitions, without stop words unless there are no other words."""
    found = words(text)
    return stemmer().stemWords(_without_stop_words(found) or found)


def query_terms(text: str) -> list[str]:
    """The terms of a query, with repetitions."""
    from ragmemory.text.identifiers import JOINT, identifier_words

    more = identifier_words([text])[0].decode().split() if JOINT.search(text) else []
    return terms(query_stems(text)) + stemmer().stemWords(_without_stop_words(more))


def has_content_words(text: str) -> bool:
    """Whether a query has words other than stop words; otherwise no passage can be relevant."""
    return bool(_without_stop_words(words(text)))


def content_words(text: str) -> list[str]:
    """The distinct words without stop words, in order."""
    return list(dict.fromkeys(_without_stop_words(words(text))))


def plain_words(text: str) -> list[str]:
    """The words in lower case, in order; accents are kept."""
    return re.findall(PLAIN_WORD, text.lower())


def telling_words(text: str) -> list[str]:
    """The plain words without stop words, unless there are no other words."""
    found = plain_words(text)
    return [word for word in found if has_content_words(word)] or found


def is_one_word(text: str) -> bool:
    """Whether a query has exactly one word, split at white space, besides stop words."""
    return sum(map(has_content_words, text.split())) == 1


def numbered_names(text: str) -> list[str]:
    """The names of three parts or more, two with a digit, such as CVE-2021-44228 or 192.168.1.10.

    Others are written in several ways: "Covid-19", "a 20-year lease", and days, to which the client adds the
    form of ISO 8601.
    """
    names = re.findall(JOINED_WORDS, text)
    return [one for one in names if len(re.findall(r"\d\w*+", one)) > 1 and not re.fullmatch(ISO_DATE, one)]


def _without_stop_words(words: list[str]) -> list[str]:
    return [word for word in words if word not in STOP_WORDS]


def terms(words: list[str]) -> list[str]:
    """The terms of words or stems: a run of a script without spaces becomes its characters and bigrams."""
    if "".join(words).isascii():
        return words
    return [term for word in words for term in (grams(word) if is_gapless(word) else (word,))]


def is_gapless(word: str) -> bool:
    """Whether a word contains a script without spaces."""
    return re.search(GAPLESS_START, word) is not None


def grams(run: str) -> list[str]:
    """All characters, then all overlapping bigrams."""
    return [*run, *(run[i : i + 2] for i in range(len(run) - 1))]


@lru_cache(10_000)
def terms_of_word(word: str) -> tuple[str, ...]:
    """The terms of one word."""
    return tuple(terms(stems(word)))


def hashes(stems: Iterable[str]) -> NDArray[np.uint64]:
    """(n,) 64-bit hashes of terms: among a million, two collide in one of 40 million indexes."""
    import numpy as np

    return np.frombuffer(b"".join([blake2b(stem.encode(), digest_size=8).digest() for stem in stems]), "<u8")


@cache
def stemmer() -> Stemmer:
    """The English stemmer, used for all languages with spaces, in texts and queries alike."""
    # A compiled module without type stubs. Its own cache is slower than stemming. It is safe for several
    # threads only because it never releases the GIL.
    stemmer: Stemmer = import_module("Stemmer").Stemmer("english", 0)
    return stemmer
