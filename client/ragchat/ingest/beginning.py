"""Where to begin after the first load: what the documents are about, and questions that they answer.

A question is made from a heading or a definition, and asked: it is offered only if the answer without a model
is grounded, and quotes the place from which it was made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from operator import itemgetter
from textwrap import shorten

import anyio
from msgspec import structs

from ragchat.grounding.words import is_german
from ragchat.memory.client import MemoryClient
from ragchat.memory.types import DocumentText
from ragchat.offline.views import MAX_ENTRIES, OutlineEntry, highest, outline
from ragchat.sanitize import one_line
from ragchat.turn.limits import RetrievalLimits
from ragchat.turn.offline import answer_offline
from ragchat.turn.retrieval import retrieve
from ragchat.turn.small_talk import small_talk
from ragcommon.contract.documents import MapCluster, MapPoint
from ragcommon.contract.search import is_code
from ragcommon.text.places import file_name

SECONDS = 10.0
# Documents on the map, and those that are read.
MAPPED, READ = 500, 12
GROUPS, QUESTIONS, ASKED = 5, 3, 24
MAX_CHARACTERS = 1_000_000
MAX_HEADING = 60
SHOWN = 4  # titles or headings of a group
BEGINNING = 2_000  # characters
# "Gyokuro is a green tea …", "Der Zapfen ist das Ende der Welle …"
_ARTICLE = r"(?:(?:The|An?|Der|Die|Das|Eine?) )?"
_DEFINITION = re.compile(
    rf"[*_`\"“„]*(?P<whole>{_ARTICLE}(?P<name>[^\W_][\w-]*(?: [\w-]+){{0,3}}?))[*_`\"”“]* "
    r"(?:\([^)]*\) |, [^,]*, )?(?P<verb>is|are|was|were|ist|sind|war|waren) "
    r"(?:an?|the|one of|eine?r?|der|die|das) \w"
)
# What no name begins with.
_NO_NAME = re.compile(
    r"(?:it|this|that|there|these|those|here|he|she|they|we|you|i|what|which|who|how|why|where|each|every|all|another|other|some|many|most|several|such|one|if|when|"
    r"es|dies\w*|das|hier|er|sie|wir|man|ich|was|wie|warum|wo|wer|jede\w*|alle\w*|wenn|my|your|our|his|her|their|its|"
    r"mein\w*|unser\w*|sein\w*|ihr\w*|and|but|so|or|und|aber|in|on|at|for|as|im|am|bei)\b",
    re.IGNORECASE,
)
# A question is shown in a command to paste: nothing in it may mean something to a shell.
_HARMLESS = re.compile(r"[\w ,.;:?'’()/–-]+")
_NUMBERED = re.compile(r"^(?:\d+[.)]|\d+(?:\.\d+)+\.?)\s+")


@dataclass
class Group:
    """Documents about the same: the telling words, how many, and their titles, or the headings of one."""

    words: Sequence[str]
    documents: int
    about: str


@dataclass
class Beginning:
    groups: list[Group] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    documents: list[DocumentText] = field(default_factory=list)  # the middle of each group

    @property
    def beginnings(self) -> list[DocumentText]:
        """The first lines of the documents, for a model."""
        return [
            one if len(one.text) <= BEGINNING else structs.replace(one, text=_beginning(one.text))
            for one in self.documents
        ]

    def lines(self, columns: int) -> Iterator[str]:
        """The screen, of so many columns; nothing if there is nothing to say."""
        if self.groups:
            yield ""
            yield "What is in your documents:"
        for group in self.groups:
            count = f" ({group.documents:,} documents)" if group.documents > 1 else ""
            yield f"  {', '.join(group.words)}{count}"
            yield f"    {shorten(group.about, max(columns - 4, 1), placeholder=' …')}"
        if self.questions:
            yield ""
            yield "They answer, for example:"
            yield from (f'  ragchat ask "{question}"' for question in self.questions)


@dataclass(frozen=True)
class _Candidate:
    question: str
    document_id: str
    heading: str  # that the passage of the answer has; "": it has the sentence
    sentence: str


async def where_to_begin(memory: MemoryClient, limits: RetrievalLimits) -> Beginning:
    """What was found within SECONDS. Raises RagChatError."""
    found = Beginning()
    with anyio.move_on_after(SECONDS):
        page = await memory.map(MAPPED)
        documents = [
            await memory.show(one.document_id) for one in _spread(page.points, len(page.clusters), READ)
        ]
        documents = [one for one in documents if len(one.text) <= MAX_CHARACTERS]
        found.documents = documents
        found.groups = list(_groups(page.clusters, page.points, documents))
        await _ask(memory, limits, documents, found.questions)
    return found


def _beginning(text: str) -> str:
    """The whole lines of the first BEGINNING characters; part of the line if it is longer."""
    return text[: text.rfind("\n", 0, BEGINNING) + 1] or text[:BEGINNING]


def _spread(points: Sequence[MapPoint], clusters: int, count: int) -> list[MapPoint]:
    """Points of all clusters in turn, those nearest to the centres first."""
    of = [[point for point in points if point.cluster == number] for number in range(clusters)]
    return [point for row in zip_longest(*of) for point in row if point is not None][:count]


def _groups(
    clusters: Sequence[MapCluster], points: Sequence[MapPoint], documents: Sequence[DocumentText]
) -> Iterator[Group]:
    texts = {one.document_id: one for one in documents}
    for number, cluster in enumerate(clusters[:GROUPS]):
        members = [point for point in points if point.cluster == number]
        titles = [_cut(one.title or file_name(one.uri)) for one in members[:SHOWN]]
        if len(members) == 1 and (only := texts.get(members[0].document_id)):
            headings = [_cut(one.heading) for one in highest(_outline(only)) if one.heading]
            shown = [one for one in dict.fromkeys(headings) if one != titles[0]][:SHOWN]
            titles = [": ".join(filter(None, [titles[0], " · ".join(shown)]))]
        yield Group(cluster.words, cluster.documents, " · ".join(titles))


def _cut(name: str) -> str:
    return one_line(name, MAX_HEADING)


async def _ask(
    memory: MemoryClient,
    limits: RetrievalLimits,
    documents: Sequence[DocumentText],
    questions: list[str],
) -> None:
    """Add QUESTIONS that memory answers, of as many documents as possible."""
    by_kind = [list(_interleaved(kind(one) for one in documents)) for kind in (_asked, _defined, _headed)]
    candidates = [one for kind in by_kind for one in kind]
    used: set[str] = set()
    for repeated in (False, True):
        for candidate in candidates[:ASKED]:
            if len(questions) == QUESTIONS:
                return
            if candidate.question in questions or (candidate.document_id in used) is not repeated:
                continue
            if not _HARMLESS.fullmatch(candidate.question):
                continue
            if await _is_answered(memory, limits, candidate):
                questions.append(candidate.question)
                used.add(candidate.document_id)


def _interleaved(lists: Iterable[Iterator[_Candidate]]) -> Iterator[_Candidate]:
    for row in zip_longest(*lists):
        yield from (one for one in row if one is not None)


async def _is_answered(memory: MemoryClient, limits: RetrievalLimits, candidate: _Candidate) -> bool:
    question = candidate.question
    if small_talk(question):
        return False
    answer = await answer_offline(
        question, question, await retrieve(memory, question, limits), memory, limits
    )
    if not (answer.grounded and answer.citations and answer.cards):
        return False
    cited, card = answer.citations[0], answer.cards[0]
    if cited.document_id != candidate.document_id:
        return False
    if candidate.heading:
        return one_line(card.heading).endswith(candidate.heading)
    return candidate.sentence in " ".join(card.text.split())


def _asked(document: DocumentText) -> Iterator[_Candidate]:
    """Headings that are questions."""
    for heading in _headings(document):
        if heading.endswith("?") and len(heading.split()) > 2:
            yield _Candidate(heading, document.document_id, heading, "")


def _defined(document: DocumentText) -> Iterator[_Candidate]:
    """What the first sentences of sections define, what the document names most often first."""
    lower, found = document.text.lower(), list[tuple[int, _Candidate]]()
    for entry in _outline(document)[: MAX_ENTRIES * 2]:
        sentence = " ".join(document.text[slice(*entry.sentence)].split())
        definition = _DEFINITION.match(sentence)
        if not definition or _NO_NAME.match(definition["whole"]) or not definition["whole"][0].isupper():
            continue
        whole, name, verb = definition["whole"], definition["name"], definition["verb"]
        small = whole[0].lower() + whole[1:]
        if name != whole or small in document.text:
            whole = small
        elif sum(word[0].isupper() for word in name.split()) > 1:
            continue  # It may be a person.
        what = "Was" if verb in ("ist", "sind", "war", "waren") else "What"
        question = f"{what} {verb} {whole}?"
        if (count := lower.count(name.lower())) > 1:
            found.append((-count, _Candidate(question, document.document_id, "", sentence[:MAX_HEADING])))
    yield from (one for _, one in sorted(found, key=itemgetter(0)))


def _headed(document: DocumentText) -> Iterator[_Candidate]:
    """Headings of several words, in the words of the document."""
    about = "Was steht über" if is_german(document.text[:BEGINNING]) else "What is said about"
    for heading in _headings(document):
        words = heading.split()
        if heading == document.title or not 1 < len(words) <= 6 or not heading[-1].isalnum():
            continue
        if words[0].lower() == "how" and words[1] == "to":
            yield _Candidate(f"{heading}?", document.document_id, heading, "")
        elif not _NO_NAME.match(heading):
            is_sentence = words[0][1:].islower() and all(word.islower() for word in words[1:])
            name = heading[0].lower() + heading[1:] if is_sentence and about.isascii() else heading
            yield _Candidate(f"{about} {name}?", document.document_id, heading, "")


def _outline(document: DocumentText) -> list[OutlineEntry]:
    return outline(document.text, is_code=is_code(document.uri, document.metadata))


def _headings(document: DocumentText) -> list[str]:
    names = [one_line(one.heading) for one in highest(_outline(document)) if one.heading]
    return [one for one in names if len(one) <= MAX_HEADING and not _NUMBERED.match(one)]
