"""The notes of a day, a week or a month that a question is about, by the names of their files."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from ragchat.grounding.facts import DATE
from ragchat.grounding.words import MONTHS, content_words, folded, is_general, words
from ragchat.turn.followup import days_in
from ragchat.turn.retrieval import Memory
from ragchat.uris import exact_glob
from ragcommon.contract.documents import DocumentInfo
from ragcommon.contract.search import Hit
from ragcommon.text.places import file_name
from ragconfig.settings import packaged

FOUND = 100  # passages of a note; memory returns no more at once
MAX_CHARACTERS = 100  # of a question about nothing else than such a time
# In globs: any year, which a question seldom names, and any day.
ANY_YEAR, ANY_DAY = "[12]???", "??"

_WORDS = packaged("views.toml")["days"]
_ASKING, _AROUND = ({*folded(_WORDS[key]).split()} for key in ("asking", "around"))
_AGO, _WEEKDAYS = (
    {word: at for at, names in enumerate(_WORDS[key]) for word in folded(names).split()}
    for key in ("ago", "weekdays")
)
_WEEKS, _RECENT_MONTHS = ([re.compile(folded(one)) for one in _WORDS[key]] for key in ("weeks", "months"))
_NAMES = "|".join(sorted(MONTHS, key=len, reverse=True))
# "In May", "May 2025"; not "may".
_MONTH = re.compile(rf"\b(?:(?:in|im|en|em|of|for|from) )?({_NAMES})\b\.?,?(?:(?: of| de)? (\d{{4}})\b)?")
_NAMED = re.compile(r"(.*)(?<!\d)(\d{4})\D?(\d\d)\D?(\d\d)(?!\d)(.*)")


async def note_of_day(question: str, memory: Memory) -> DocumentInfo | None:
    """The note of the day that a question is about, of the last year that has one."""
    for day in _asked_days(question):
        if noted := await _noted(day, memory):
            return noted[0]
    return None


async def notes_of_period(question: str, memory: Memory) -> list[list[Hit]]:
    """The passages of each note of the week or month that a question is about, in order.

    A month without a year is that of the last one with notes.
    """
    noted = [note for glob in _asked_period(question) for note in await _noted(glob, memory)]
    found = [await memory.query(file_name(one.uri), FOUND, {"uri": exact_glob(one.uri)}) for one in noted]
    return [sorted(one.hits, key=lambda hit: hit.start_line) for one in found if one.hits]


def asks_for_notes(question: str) -> bool:
    """Whether a question is for the notes of a day, a week or a month."""
    return bool(_asked_days(question) or _asked_period(question))


def is_from_today(question: str) -> bool:
    """Whether a question names only a time such as "last week". Weekdays are also those of timetables."""
    text = _short(question)
    is_named = (
        DATE.search(text) or _MONTH.search(text) or not _WEEKDAYS.keys().isdisjoint(content_words(text))
    )
    return not is_named and asks_for_notes(question)


def day_of(uri: str) -> str:
    """The day of a note by the name of its file, as 2025-03-09; "" for names that say more than that."""
    path = PurePosixPath(unquote(urlsplit(uri).path).replace("_", "-")).with_suffix("")
    if (found := _NAMED.fullmatch(str(path))) is None:
        return ""
    before, *day, after = found.groups()
    rest = [word for word in words(folded(f"{before.rpartition('/')[2]} {after}")) if not _is_weekday(word)]
    return "-".join(day) if _says_nothing_else(" ".join(rest)) else ""


async def _noted(day: str, memory: Memory) -> list[DocumentInfo]:
    """The notes of the days that a glob matches, in order, of the last year that has any."""
    found = (await memory.documents(None, {"uri": f"*{day.replace('-', '?')}*"})).documents
    days = {one.uri: day_of(one.uri) for one in found}
    last = max(days.values(), default="")[:4]
    noted = [one for one in found if last and days[one.uri].startswith(last)]
    return sorted(noted, key=lambda one: (days[one.uri], len(one.uri), one.uri))


def _asked_days(question: str) -> list[str]:
    """The day that a question is about, as 2025-03-09, if it says nothing else; of 9/3/2025 both readings."""
    text, today = _short(question), datetime.date.today()
    ago = _AGO | {word: (today.weekday() - at) % 7 or 7 for word, at in _WEEKDAYS.items()}
    if named := [word for word in content_words(text) if word in ago]:
        days = [(today - datetime.timedelta(ago[named[0]])).isoformat()] if len(named) == 1 else []
        text = text.replace(named[0], " ")
    else:
        days, (text, dates) = days_in(text) or [*_of_any_year(text)], DATE.subn(" ", text)
        days = days if dates == 1 else []
    return days if days and _says_nothing_else(text) else []


def _asked_period(question: str) -> list[str]:
    """Globs for the days of the week or month that a question is about, if it says nothing else."""
    text, today = _short(question), datetime.date.today()
    globs = list[str]()
    if named := next((one for one in _MONTH.finditer(text) if " " in one[0] and not DATE.search(text)), None):
        globs = [f"{named[2] or ANY_YEAR}-{MONTHS[named[1]]:02}-{ANY_DAY}"]
    for ago, pattern in enumerate(_WEEKS):
        if found := pattern.search(text):
            named, monday = found, today - datetime.timedelta(today.weekday() + 7 * ago)
            globs = [(monday + datetime.timedelta(day)).isoformat() for day in range(7)]
    for ago, pattern in enumerate(_RECENT_MONTHS):
        if found := pattern.search(text):
            named = found
            globs = [f"{today.replace(day=1) - datetime.timedelta(ago):%Y-%m}-{ANY_DAY}"]
    return globs if named and _says_nothing_else(text.replace(named[0], " ")) else []


def _short(question: str) -> str:
    return folded(question) if len(question) <= MAX_CHARACTERS else ""


def _of_any_year(text: str) -> Iterator[str]:
    for date in DATE.finditer(text):
        day, *others = re.findall(r"\d+", date[0])
        if not others and (month := next((MONTHS[word] for word in words(date[0]) if word in MONTHS), 0)):
            yield f"{ANY_YEAR}-{month:02}-{int(day):02}"


def _says_nothing_else(text: str) -> bool:
    is_around = not _AROUND.isdisjoint(words(text))
    return not is_around and all(word in _ASKING or is_general(word) for word in content_words(text))


def _is_weekday(word: str) -> bool:
    """Whether a word in the name of a note is a weekday or the beginning of one, as "Sat"."""
    return any(day.startswith(word) for day in _WEEKDAYS)
