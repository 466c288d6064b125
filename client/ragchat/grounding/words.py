"""Function words, content words, and the index terms by which words are compared. Pure.

The word lists are in `ragconfig/words.toml`.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Sequence
from importlib import import_module
from string import ascii_lowercase
from typing import Any

from ragcommon.text.rules import MARKS, PART_END, UNSPACED
from ragconfig.settings import packaged

# § belongs to its number: § 7 is not any 7.
_LETTERS = rf"(?:§{{1,2}}\s?(?=\d))?[^\W_{UNSPACED}]++(?:[{MARKS}]++[^\W_{UNSPACED}]*+)*+"
# A comma belongs to a word only within a number: the cells of a CSV file have no spaces between them.
_WORD = re.compile(
    rf"[{UNSPACED}]+|(?>\d+(?:[.,]\d+)+)(?![^\W_]|['’.-][^\W_])|{_LETTERS}(?:['’.-](?=[^\W_]){_LETTERS})*"
)
_PART_END = re.compile(rf"{PART_END}|(?<=[^\W\d_])\.|\.(?=[^\W\d_])")
SNAKE_CASE = re.compile(r"(?<![^\W_])[^\W_]+(?:_+[^\W_]+)+")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")  # U.S. as people write US
_GROUPED = re.compile(r"[1-9]\d{0,2}(?:[.,]\d{3})+")  # 31,500 as people write 31500
# 2026-02-03 and 03.02.2026, whose month a question may name, have the terms of 3 February 2026.
_DATE = re.compile(r"(\d{4})-(0[1-9]|1[0-2])(?:-0?(\d\d?))?|0?(\d\d?)\.(0?[1-9]|1[0-2])\.(\d{4})")
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
# Elisions: l'eau, d'Anna, qu'elle.
_ELIDED = re.compile(rf"(?:[cdjlmnst]|(?:jus|lors|puis)?qu)['’](?=[^\W\d_](?:[^\W\d_]|[{MARKS}]))", re.I)
# After one of these, or nothing, a capital letter may only begin a sentence.
_ENDS_SENTENCE = {"", *".!?:;\"“„«»('"}


def folded(word: str) -> str:
    """Lower case without accents, which people often omit. As in memory, the ı of Turkish is an i."""
    word = word.casefold().replace("’", "'").replace("ı", "i")
    if word.isascii():
        return word
    return "".join(sign for sign in unicodedata.normalize("NFKD", word) if not unicodedata.combining(sign))


_LISTS = packaged("words.toml")
_FUNCTION_WORDS = _LISTS["function_words"].items()
_LANGUAGES = {name: {*words.split(), *folded(words).split()} for name, words in _FUNCTION_WORDS}
# The function words that identify a language, with their accents: fur is not für.
_NO_SIGNS = {*_LISTS["ambiguous"].split(), *ascii_lowercase}
_SIGNS = {name: {*words.split()} - _NO_SIGNS for name, words in _FUNCTION_WORDS}
# Words that share their stem with words of other meanings: note with "not", Seite with "seit".
_APART = {*_LISTS["apart"].split()} | (_SIGNS["english"] | _SIGNS["german"]) - {*_LISTS["general"].split()}
_SIGNS["german"] |= {*_LISTS["german_verbs"].split()}
_MONTHS = _LISTS["numbers"]["months"]
MONTHS = {folded(word): at for names in _MONTHS for at, word in enumerate(names.split(), 1)}
_FUNCTION_RUNS = re.compile("|".join(sorted(_LISTS["function_runs"].split(), key=len, reverse=True)))


def words(text: str) -> list[str]:
    """All words in lower case. A run in a script without spaces is one word."""
    return [_plain(word) for word in _WORD.findall(text)]


def content_words(text: str) -> list[str]:
    """All words except the function words of the text's language, in order and as written.

    A word in capitals within other words is a name: NAS is not the Portuguese "nas".
    """
    written = _WORD.findall(without_elisions(text))
    function_words = frozenset[str]().union(*map(_LANGUAGES.__getitem__, _languages([*map(_plain, written)])))
    found, has_capitals = list[str](), text.upper() != text
    for word in written:
        if _UNSPACED_RUN.fullmatch(word):
            found += [part for part in _FUNCTION_RUNS.split(word) if part]
        elif _plain(word) not in function_words or (has_capitals and is_acronym(word)):
            found.append(word)
    return found


def is_acronym(word: str) -> bool:
    """Whether a word or a part of it has several capitals, such as NAS, IPv6 or ISBN-13."""
    return any(part[:1].isalpha() and sum(map(str.isupper, part)) > 1 for part in word.split("-"))


def names_in(text: str) -> set[str]:
    """Words with a digit, acronyms, and words that are capitalised inside a sentence."""
    every = {word for word in content_words(text) if any(map(str.isdigit, word))}
    if text == text.upper() and not is_unspaced(text):
        return every
    every |= {word for word in content_words(text) if is_acronym(word)}
    if not is_german(text):
        text = without_elisions(text)
        found = re.finditer(r"[^\W\d_][^\W_]+(?:['’-][^\W_]+)*", text)
        capitals = (word for word in found if word[0][0].isupper())
        every |= {word[0] for word in capitals if text[: word.start()].rstrip()[-1:] not in _ENDS_SENTENCE}
    return every


def is_german(text: str) -> bool:
    """Whether a text is most likely German, where every noun is capitalised."""
    return "german" in _languages(words(text))


def without_elisions(text: str) -> str:
    """Remove elided words: l'eau becomes eau."""
    return _ELIDED.sub(" ", text) if "'" in text or "’" in text else text


def _plain(word: str) -> str:
    return word.lower().replace("’", "'")


def _languages(plain: Sequence[str]) -> list[str]:
    """The languages with the most identifying words among these; ties included."""
    counts = {name: sum(word in signs for word in plain) for name, signs in _SIGNS.items()}
    return [name for name, count in counts.items() if 0 < count == max(counts.values())]


def index_terms(text: str) -> list[str]:
    """The terms by which texts are compared: stems of words, and of identifiers both whole and in parts.

    So retry_after and retryAfter have the same terms. A hyphen separates words. Scripts without spaces give
    pairs of characters.
    """
    found = [_stem(name.replace("_", "")) for name in SNAKE_CASE.findall(text)] if "_" in text else []
    for word in _WORD.findall(without_elisions(text)):
        if not word.isascii() and _UNSPACED_RUN.fullmatch(word):
            found += [word[i : i + 2] for i in range(len(word) - 1)] or [word]
        else:
            found += _terms_of(word)
    return found


# Texts repeat most words.
@functools.lru_cache(20_000)
def _terms_of(word: str) -> Sequence[str]:
    date = _DATE.fullmatch(word)
    month = int(date[2] or date[5]) if date else MONTHS.get(folded(word))
    found = [f"month {month}"] if month else []
    word = "-".join(filter(None, date.group(1, 3, 4, 6))) if date else re.sub(r"§+\s?", "§", word)
    word = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b", "", word)  # May the 3rd as people write 3 May
    for part in word.split("-"):
        plain = re.sub(r"[.,]", "", part) if _GROUPED.fullmatch(part) or _DOTTED.fullmatch(part) else part
        parts = [one for one in _PART_END.split(plain) if len(one) > 1]  # retryAfter, engine.start
        # It may be two cells, or a whole number such as 10.0.
        found += filter(None, cut) if len(cut := re.split(r",|\.0\Z", plain)) > 1 else ()
        found += map(_stem, [plain, *(parts if len(parts) > 1 else ()), *filter(None, plain.split("§")[1:])])
    return tuple(found)


def is_general(word: str) -> bool:
    """Whether a word says little about what a question asks."""
    return _general_terms().issuperset(index_terms(word))


@functools.cache
def _general_terms() -> frozenset[str]:
    return frozenset(index_terms(_LISTS["general"]))


def is_unspaced(text: str) -> bool:
    """Whether most letters of a text belong to scripts without spaces."""
    return sum(map(len, _UNSPACED_RUN.findall(text))) * 2 > sum(map(str.isalpha, text))


def _stem(word: str) -> str:
    stem = _stemmer()(folded(word).removesuffix("'s"))
    return f"{stem}'" if stem in _APART and _plain(word).removesuffix("'s") not in _APART else stem


@functools.cache
def _stemmer() -> Callable[[str], str]:
    """English stems, then German ones; names rarely inflect in other languages.

    Memory uses the English stems, so words that match there also match here, except for function words.
    """
    make: Callable[[str], Any] = import_module("Stemmer").Stemmer  # a C module without type stubs
    english, german = make("english").stemWord, make("german").stemWord
    return lambda word: str(german(english(word)))
