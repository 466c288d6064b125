"""Cases: a question with what is known about its right answer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from ragchat.errors import PlaceUnusable, ScriptInvalid
from ragchat.evaluation.conditions import Conditions
from ragchat.formatting import utc_now
from ragchat.grounding.types import Citation
from ragchat.llm.types import OFFLINE
from ragchat.memory.matching import Catalogue, called
from ragchat.scripts.script import Expectation, Script, as_list
from ragchat.turn.followup import refers_back
from ragchat.turn.types import Turn
from ragchat.uris import exact_glob, passage_location, short_location, short_uri

Verdict = Literal["good", "bad"]
# The place of an answer that is in no document.
NOWHERE = "nowhere"
# The turns before a follow-up that are asked again with it.
MAX_AFTER = 3
_LINES = re.compile(r"(?P<name>.+):(?P<first>\d+)(?:[-–](?P<last>\d+))?$")


class RightPlace(Struct, frozen=True):
    """Where the answer is: a text in a document, "" for the whole of it."""

    uri: str
    text: str
    location: str  # as it is shown


class Case(Struct, frozen=True):
    """A question, and what is known about its right answer.

    A case of a script has its expectations, any other one the verdict on a turn, whose id it has: `places` of
    which any is right, and `answered`, whether the documents answer it at all; None: it is not known.
    """

    case_id: str
    question: str
    after: list[str] = []  # asked before it, in the same session
    expect: Expectation | None = None
    verdict: Verdict | None = None
    answer: str = ""
    sources: list[Citation] = []
    places: list[RightPlace] = []
    answered: bool | None = None
    conditions: Conditions | None = None
    created_at: str = ""

    @property
    def wanted(self) -> str:
        """What is known about the right answer, for a person; "" if nothing is."""
        return NOWHERE if self.answered is False else ", ".join(place.location for place in self.places)


def confirmation(case: Case) -> str:
    """What was saved, and what else can be said."""
    if case.answered is False:
        return "Saved: no document answers this. If one does, say which: /good N, or /bad PLACE."
    if case.places:
        return f"Saved: the answer is in {case.wanted}. `ragchat eval` asks again."
    return "Saved as a bad answer. /bad PLACE says where the right one is: 2, notes.md:3-5, or nowhere."


async def case_of(
    turn: Turn,
    earlier: Sequence[Turn],
    verdict: Verdict,
    place: str,
    memory: Catalogue,
    conditions: Conditions,
) -> Case:
    """The case of a turn that a user has judged; `earlier` are the turns before it.

    `place` is where the answer is: NOWHERE, the number of a source, a document, `file:line` or
    `file:first-last`; "" is, for a good answer, what it cites. Raises PlaceUnusable, NotOneDocument,
    and what `memory` raises.
    """
    sources, places = turn.answer.sources, list[RightPlace]()
    answered: bool | None = None
    if place:
        answered = place != NOWHERE
        places = await right_places(place, turn, memory) if answered else []
    elif verdict == "good":
        # A model's answer may be right although a word of the question is in no passage that it cites.
        answered = turn.answer.grounded or (turn.answer.model != OFFLINE and bool(sources))
        # Without a model, the first card is the answer, and the others are the next best.
        cited = sources[:1] if turn.answer.cards else sources
        places = [_cited(citation, turn) for citation in cited] if answered else []
    return Case(
        case_id=turn.turn_id,
        question=turn.question,
        after=[one.question for one in earlier[-MAX_AFTER:]] if refers_back(turn.question, earlier) else [],
        verdict=verdict,
        answer=turn.answer.text,
        sources=sources,
        places=places,
        answered=answered,
        conditions=conditions,
        created_at=utc_now(),
    )


async def right_places(place: str, turn: Turn, memory: Catalogue) -> list[RightPlace]:
    if re.fullmatch(r"\[?\d+\]?", place):
        cited = [one for one in turn.answer.sources if one.n == int(place.strip("[]"))]
        if not cited:
            raise PlaceUnusable(place, "the answer has no source of this number")
        return [_cited(citation, turn) for citation in cited]
    lines = _LINES.match(place)
    if lines and (await memory.documents(1, {"uri": exact_glob(place)})).total:
        lines = None  # A URI may end like this, too.
    document = await called(memory, lines["name"] if lines else place)
    if lines is None:
        return [RightPlace(document.uri, "", short_uri(document.uri, document.title))]
    first, last = int(lines["first"]), int(lines["last"] or lines["first"])
    all_lines = document.text.splitlines()
    if not 1 <= first <= last <= len(all_lines):
        raise PlaceUnusable(place, f"the document has the lines 1 to {len(all_lines):,}")
    if not (text := "\n".join(all_lines[first - 1 : last])).strip():
        raise PlaceUnusable(place, "these lines are empty")
    location = short_location(document.uri, [(first, last)], document.title, document.places)
    return [RightPlace(document.uri, text, location)]


def _cited(citation: Citation, turn: Turn) -> RightPlace:
    """The quotation, or else the whole passage."""
    hits = (one.hit for one in turn.answer.candidates if one.hit.chunk_id == citation.chunk_id)
    text = citation.quote if citation.verified else next((hit.text for hit in hits), "")
    return RightPlace(citation.uri, text, passage_location(citation))


def cases_of_script(script: Script, path: Path) -> list[Case]:
    """The `ask` steps of a script, each a case of its own. Raises ScriptInvalid."""
    cases = []
    for number, step in enumerate(script.step, 1):
        if step.ask is None:
            reason = f"step {number} does not ask: eval asks the memory in use, and each question by itself"
            raise ScriptInvalid(str(path), reason)
        case_id = hashlib.sha256(msgspec.json.encode(step)).hexdigest()[:12]
        cases.append(Case(case_id, step.ask, as_list(step.after), step.expect))
    return cases
