"""Follow-up questions: the query to memory for a question that refers to earlier ones. Pure.

"and in 2019?" and "who wrote it?" find nothing by themselves. With a model, `rewriting` makes them standalone
questions. Without one, the content words of the last query are appended to them. The words by which questions
refer to each other are in `ragconfig/followups.toml`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from ragchat.answer import Candidate
from ragchat.grounding.facts import DATE, folded
from ragchat.grounding.question import Question, Word
from ragchat.grounding.words import (
    MONTHS,
    content_words,
    index_terms,
    is_general,
    is_german,
    is_unspaced,
    words,
)
from ragchat.turn.small_talk import small_talk
from ragchat.turn.topics import topic_of
from ragchat.turn.types import Turn
from ragcommon.text.rules import MAX_QUERY_CHARACTERS, query_part
from ragconfig.settings import packaged

_FILE = packaged("followups.toml")
_ELLIPTIC, _OPENER, _REFERENCE = (
    re.compile("|".join(_FILE[kind]), re.IGNORECASE) for kind in ("elliptic", "opener", "reference")
)
# What may be small talk before a question: "thanks, and the price?", "ok so who wrote it?".
_PRELUDE = re.compile(rf"(.+?)(?:[,;.!?]+\s+|\s+(?={_OPENER.pattern}))", re.IGNORECASE | re.DOTALL)
_CORRECTION = re.compile(f"(?:{'|'.join(_FILE['correction'])})+", re.IGNORECASE)
# The number of a source that was shown: "what does [2] say about fees?"
_SHOWN = re.compile(r"(?<![\w\])])\[(\d{1,2})\]")
_PRONOUNS, _VERBS, _OF_THE_USER = (
    frozenset(_FILE[kind].split()) for kind in ("pronouns", "verbs", "of_the_user")
)
_QUESTION_WORDS = _VERBS.union(_FILE["question_words"].split())
_UNSPACED_PRONOUN, _UNSPACED_END = map(re.compile, (_FILE["unspaced_pronoun"], _FILE["unspaced_end"]))
# "May 2024", "mai de 2024"
_MONTH = re.compile(r"([^\W\d_]{3,})\.?,?(?: de| of)? (\d{4})\b")

# A question with at most this many content words (characters in scripts without spaces) may be incomplete.
FEW_WORDS = 3
FEW_CHARACTERS = 8
# With a reference to something before, also with up to this many.
REFERRING_WORDS = 6
# After this much text, a pronoun refers to its own question: "When did Tesla say that he …".
ANTECEDENT_WORDS = 2
ANTECEDENT_CHARACTERS = 3
# "Berlin?", "in 2019?"
BARE_WORDS = 3
CARRIED_WORDS = 12


def question_of(message: str, history: Sequence[Turn]) -> str:
    """The question that a message asks, without small talk before it; or the topic of `topic_of`.

    A correction of the last question has that question before it, without what it replaces, and the number of
    a source becomes its title.
    """
    question = _without_small_talk(message)
    if not history:
        return topic_of(question)
    correction = _CORRECTION.match(message)
    if correction and len(content_words(message)) <= REFERRING_WORDS:
        right, wrong = message[correction.end() :], correction["wrong"]
        if _QUESTION_WORDS.isdisjoint(words(right)[:1]):
            question = _corrected(_before(history).question, wrong or "", right)
        elif wrong is None:
            question = right
    last = history[-1].answer
    titles = {one.n: one.title for one in [*last.citations, *last.nearest]}
    return topic_of(_SHOWN.sub(lambda found: titles.get(int(found[1]), found[0]), question))


def _without_small_talk(message: str) -> str:
    rest = message
    while (found := _PRELUDE.match(rest)) and small_talk(found[1]):
        rest = rest[found.end() :]
    return rest or message


def _corrected(question: str, wrong: str, right: str) -> str:
    replaced = {*words(wrong)}
    kept = (
        word
        for word in question.split()
        if replaced.isdisjoint(words(word)) and not (_has_digit(right) and _has_digit(word))
    )
    return " ".join([*kept, right])


def search_text(question: str, history: Sequence[Turn]) -> str:
    """The query for a question after the turns in `history`. A question of many pages is not a follow-up.

    Days and months are repeated as journals, files and tables have them: "9 March 2025" as "2025-03-09".
    """
    if len(question) > MAX_QUERY_CHARACTERS:
        return question
    days = _iso_dates(question)
    if not history or not (depends(question) or _is_of_shown(question, _before(history))):
        return " ".join([question, *days])
    own = [*content_words(question), *days]
    before = _before(history)
    # Its own words are repeated to give them more weight than the carried ones.
    return " ".join([question.strip(), *own, *_carried(before, own)])


def _is_of_shown(question: str, before: Turn) -> bool:
    """Whether a question of few words asks about what was shown last."""
    own = Question.of(question).words
    terms = {*index_terms(" ".join(f"{card.heading} {card.text}" for card in before.answer.cards))}
    return len(own) <= FEW_WORDS and all(word.is_in(terms) for word in own)


def goes_on(question: str) -> bool:
    """Whether a question begins as one that goes on: "and in July?"."""
    return bool(_OPENER.match(question) or _ELLIPTIC.match(question))


def _before(history: Sequence[Turn]) -> Turn:
    """The last turn that asked memory: small talk asks nothing of it."""
    return next((turn for turn in reversed(history) if turn.trace.query), history[-1])


def may_change_topic(question: str) -> bool:
    """Whether a question that looks like a follow-up is a whole sentence, with words of a topic.

    "And how many lockers does the lido have?" may have one of its own; "and in the lido?" has not.
    """
    refers = _ELLIPTIC.match(question) or _REFERENCE.search(question)
    is_whole = not refers and not _VERBS.isdisjoint(words(question))
    return is_whole and bool(_topic(question, _telling(question)))


def changes_topic(question: str, history: Sequence[Turn], found: Sequence[Candidate]) -> bool:
    """Whether what was cited last lacks most of a question's topic, and another document has most words.

    `found` are the passages for the question alone.
    """
    answer, telling = _before(history).answer, _telling(question)
    last = {one.document_id for one in [*answer.citations, *answer.nearest]}
    cited, others = set[str](), list[set[str]]()
    for hit in (candidate.hit for candidate in found):
        terms = {*index_terms(f"{hit.title} {hit.heading} {hit.full_text}")}
        if hit.document_id in last:
            cited |= terms
        else:
            others.append(terms)
    is_elsewhere = any(2 * sum(word.is_in(terms) for word in telling) > len(telling) for terms in others)
    topic = _topic(question, telling)
    return is_elsewhere and 2 * sum(word.is_in(cited) for word in topic) < len(topic)


def _telling(question: str) -> list[Word]:
    return [word for word in Question.of(question).words if not word.is_general]


def _topic(question: str, telling: Sequence[Word]) -> list[Word]:
    """The telling words that name a topic. Next to a pronoun only names do, and a single name does not."""
    names = [word for word in telling if word.is_name]
    if _has_loose_pronoun(question):
        return names
    return [] if len(telling) == len(names) == 1 else [*telling]


def refers_back(question: str, history: Sequence[Turn]) -> bool:
    """Whether a question would be searched otherwise without the turns before it."""
    alone = search_text(question_of(question, []), [])
    return search_text(question_of(question, history), history) != alone


def _iso_dates(text: str) -> list[str]:
    """The days and months that a text names with their year, as 2025-03-09; none already in that form."""
    text = folded(text)
    months = _MONTH.findall(DATE.sub(" ", text))
    found = [*days_in(text), *(f"{year}-{MONTHS[word]:02}" for word, year in months if word in MONTHS)]
    return [date for date in dict.fromkeys(found) if date not in text]


def days_in(text: str) -> list[str]:
    """The days that a text names with their year, as 2025-03-09. Of 9/3/2025, both readings."""
    return [day for date in DATE.finditer(folded(text)) for day in _days(date)]


def _days(date: re.Match[str]) -> Iterator[str]:
    month = next((MONTHS[word] for word in re.findall(r"[^\W\d_]+", date[0]) if word in MONTHS), 0)
    numbers = [int(digits) for digits in re.findall(r"\d+", date[0])]
    first, *others = reversed(numbers) if numbers[0] > 999 else numbers
    if not others or others[-1] < 1000:
        return
    readings = [(first, month or others[0])]
    if date[1] == "/":
        readings.append((others[0], first))
    for day, of_month in readings:
        with suppress(ValueError):
            yield datetime.date(others[-1], of_month, day).isoformat()


def depends(question: str) -> bool:
    """Whether a question looks like a follow-up."""
    question = question.strip()
    content = content_words(question)
    if not content or _ELLIPTIC.match(question):
        return True
    if is_unspaced(question):
        return _depends_unspaced(question, sum(map(len, content)))
    if len(content) <= REFERRING_WORDS and _REFERENCE.search(question):
        return True
    if len(content) > FEW_WORDS:
        return False
    return bool(_OPENER.match(question)) or _says_little(question, content) or _has_loose_pronoun(question)


def _depends_unspaced(question: str, characters: int) -> bool:
    if characters > FEW_CHARACTERS:
        return False
    pronoun = _UNSPACED_PRONOUN.search(question)
    loose = pronoun is not None and pronoun.start() < ANTECEDENT_CHARACTERS
    return loose or bool(_OPENER.match(question) or _UNSPACED_END.search(question))


def _says_little(question: str, content: Sequence[str]) -> bool:
    """Whether one content word is all there is: "Berlin?", "in 2019?", "for how many days?".

    "What is photosynthesis?" asks for a definition, "What is my ferritin?" is about the user, and "are there
    tests of Qdrant" has a name.
    """
    first, *others = words(question)
    if len(content) > 1 or not question.endswith("?"):
        return False
    if first not in _QUESTION_WORDS and len(others) < BARE_WORDS:
        return True
    is_short = {first, *others} <= {*_QUESTION_WORDS, *_OF_THE_USER, content[0].lower()}
    is_definition = is_short and not _VERBS.isdisjoint(others)
    return not is_definition and content[0].islower()


def _has_loose_pronoun(question: str) -> bool:
    """Whether a pronoun has no antecedent within the question."""
    all_words = question.rstrip("?!. ").split()
    for index, word in enumerate(all_words):
        polite = index > 0 and word[0].isupper()  # German "Sie", "Ihr"
        if word.lower().strip(",;:'\"") in _PRONOUNS and not polite:
            before = [one for one in content_words(" ".join(all_words[:index])) if not is_general(one)]
            # Every German noun is capitalised, and a month is no antecedent.
            named = not is_german(question) and any(
                word[0].isupper() and word != all_words[0] and folded(word) not in MONTHS for word in before
            )
            return len(before) < ANTECEDENT_WORDS and not named
    return False


def _carried(turn: Turn, own: Sequence[str]) -> list[str]:
    """Content words of the last query and of the first cited title, without those in `own`.

    The last query, not the last question: it still has the topic of a chain of follow-ups.
    """
    title = next((citation.title for citation in turn.answer.citations), "")
    known = {word.lower() for word in own}
    numbers = any(map(_has_digit, own))
    carried: list[str] = []
    searched = query_part(turn.trace.query or turn.question)
    for word in [*content_words(searched), *content_words(title)]:
        replaced = numbers and _has_digit(word)  # "and in 2019?" replaces 2018
        if word.lower() not in known and not replaced:
            known.add(word.lower())
            carried.append(word)
    return carried[:CARRIED_WORDS]


def _has_digit(word: str) -> bool:
    return any(sign.isdigit() for sign in word)
