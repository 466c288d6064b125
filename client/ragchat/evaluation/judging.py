"""Asks the questions of cases again, and judges the answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ragchat.conversation import Conversation, SaveMode
from ragchat.errors import RagChatError
from ragchat.evaluation.cases import Case, RightPlace
from ragchat.evaluation.conditions import prompt_hash
from ragchat.formatting import listed
from ragchat.grounding.citations import MARKER, marked_numbers
from ragchat.grounding.facts import lacking
from ragchat.grounding.pieces import piece_spans
from ragchat.llm import tokens
from ragchat.llm.types import OFFLINE
from ragchat.notebooks.definitions import folder_of, load
from ragchat.scripts.runner import StepResult, is_cited, normalized, notices_of, plain, text_of, unmet
from ragchat.scripts.script import Expectation, as_list
from ragchat.turn.scope import EVERYTHING
from ragchat.turn.types import Turn
from ragchat.uris import passage_location
from ragcommon.contract.search import Hit

# Characters of an answer on one screen of a terminal.
SCREEN = 1_700
# The share of the facts of a good answer that another answer may lack.
MAX_LACKING = 0.5

Texts = list[tuple[str, str]]  # URIs and texts


class Outcome(Struct, frozen=True):
    """What became of a case. What is not known, or does not apply, is None.

    `right`: the answer is as it should be. `screen`, `prompt`: the right place is on the first screen of the
    answer, and among the passages of the prompt, which without a model is not sent. `declined`: the answer
    is not grounded. `failures` are sentences. `failed`: it could not be asked.
    """

    case_id: str
    question: str
    right: bool | None = None
    screen: bool | None = None
    prompt: bool | None = None
    declined: bool = False
    failures: list[str] = []
    places: list[str] = []  # of the sources, as they are shown
    uris: list[str] = []
    tokens: int = 0
    seconds: float = 0.0
    judged_at: str = ""  # when the user gave the verdict
    system_prompt: str = ""  # as in Conditions; "": it could not be asked
    failed: bool = False
    notices: list[str] = []  # what else was said of the answer, such as that it was cut off

    @property
    def key(self) -> tuple[str, str]:
        """What two runs have in common: the case with the same verdict."""
        return self.case_id, self.judged_at


async def judge_cases(
    conversation: Conversation,
    cases: Sequence[Case],
    on_outcome: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Ask every case in a session of its own that is not saved, and judge the answers, in the same order.

    A case that cannot be asked has a failure. Raises RagChatError if none can.
    """
    conversation.save_mode = SaveMode.NOTHING
    outcomes: list[Outcome] = []
    failure: RagChatError | None = None
    for case in cases:
        try:
            if (then := case.conditions) is not None:
                folder = folder_of(conversation.settings)
                await conversation.use_notebook(load(folder, then.notebook) if then.notebook else None)
                conversation.use_role(then.role)
                await conversation.scope.narrow(then.scope or EVERYTHING)
            conversation.new_session()
            for question in case.after:
                await conversation.ask(question)
            turn = await conversation.ask(case.question)
            outcome = await judged(case, turn, await _prompt_passages(conversation, turn))
            outcome = replace(outcome, system_prompt=prompt_hash(conversation))
        except RagChatError as error:
            failure = error
            outcome = Outcome(
                case.case_id,
                case.question,
                failures=[str(error)],
                judged_at=case.created_at,
                failed=True,
            )
        outcomes.append(outcome)
        on_outcome(outcome)
    if failure and all(outcome.failed for outcome in outcomes):
        raise failure
    return outcomes


async def _prompt_passages(conversation: Conversation, turn: Turn) -> list[Hit]:
    """The passages in the prompt of a turn; of one without a model, those that a prompt would have."""
    from ragchat.turn.grounding import judge_passages
    from ragchat.turn.passages import number
    from ragchat.turn.retrieval import retrieve

    if turn.answer.model != OFFLINE:
        return [one.hit for one in turn.answer.candidates if one.n]
    limits, memory = conversation.limits, conversation.scope.searched
    query = turn.trace.query or turn.question
    found = await retrieve(memory, query, limits.retrieval)
    grounding = await judge_passages(turn.question, query, found, memory, limits.retrieval.seconds)
    budget = limits.budget
    room = budget.context - budget.answer - tokens.at_most(conversation.instructions)
    return [*number(grounding.candidates, room, budget=budget.passages).numbered().values()]


async def judged(case: Case, turn: Turn, passages: Sequence[Hit]) -> Outcome:
    """Judge the answer `turn` to a case; `passages` are those of its prompt."""
    answer, sources = turn.answer, turn.answer.sources
    in_prompt = [(hit.uri, hit.full_text) for hit in passages]
    outcome = Outcome(
        case.case_id,
        case.question,
        declined=not answer.grounded,
        places=[*map(passage_location, sources)],
        uris=list(dict.fromkeys(one.uri for one in sources)),
        tokens=sum(answer.usage.best),
        seconds=turn.timings["total"],
        judged_at=case.created_at,
        notices=notices_of(turn),
    )
    if case.expect is not None:
        return await _met(outcome, case.expect, turn, in_prompt)
    if case.answered is False:
        failures = ["does not decline"] if answer.grounded else []
        return replace(outcome, right=not failures, failures=failures)
    if case.places:
        failures = _failures(case, turn)
        screen, prompt = (_has_place(case.places, texts) for texts in (shown(turn, SCREEN), in_prompt))
        return replace(outcome, right=not failures, failures=failures, screen=screen, prompt=prompt)
    if normalized(answer.text) == normalized(case.answer):
        return replace(outcome, right=False, failures=["is the same bad answer"])
    return outcome


async def _met(outcome: Outcome, expect: Expectation, turn: Turn, in_prompt: Texts) -> Outcome:
    """Whether an expectation is met by the answer, its first screen, and the passages of the prompt."""
    seconds = turn.timings["total"]
    uris = [uri for uri, _ in shown(turn)]
    text = text_of(turn.answer)
    failures = await unmet(expect, StepResult(text, uris, turn.answer.grounded), seconds)
    right = not failures if expect != Expectation() else None
    place = Expectation(expect.contains, matches=expect.matches, cites=expect.cites)
    if place == Expectation():
        return replace(outcome, right=right, failures=failures)
    cut = StepResult(text[:SCREEN], [uri for uri, _ in shown(turn, SCREEN)])
    cites = as_list(place.cites) or ["*"]
    found = [(uri, text) for uri, text in in_prompt if any(is_cited(one, uri) for one in cites)]
    texts = StepResult("\n".join(passage for _, passage in found), [uri for uri, _ in found])
    # Most answers are on one screen: then their place is not looked for twice.
    screen = right if right and len(text) <= SCREEN else not await unmet(place, cut, seconds)
    prompt = not await unmet(place, texts, seconds)
    return replace(outcome, right=right, failures=failures, screen=screen, prompt=prompt)


def shown(turn: Turn, characters: int | None = None) -> Texts:
    """What an answer shows of documents: its cards, or the passages that it cites.

    With `characters`, what is in that many first ones.
    """
    answer, texts = turn.answer, list[tuple[str, str]]()
    if not answer.cards:
        markers = MARKER.findall(answer.text[:characters])
        numbers = {n for marker in markers for n in marked_numbers(marker)}
        return [(one.hit.uri, one.hit.full_text) for one in answer.candidates if one.n in numbers]
    uris = {source.n: source.uri for source in answer.sources}
    room = len(answer.text) if characters is None else characters
    for card in answer.cards:
        if room > 0:
            texts.append((uris.get(card.n, ""), card.text[:room]))
        room -= len(card.text)
    return texts


def _text(turn: Turn) -> str:
    """The text of an answer, without the marks of quotations."""
    cards = turn.answer.cards
    return "\n".join(f"{one.location} {one.headings}\n{one.text}" for one in cards) or turn.answer.text


def _failures(case: Case, turn: Turn) -> list[str]:
    failures = [] if _has_place(case.places, shown(turn)) else [f"does not show {case.wanted}"]
    # What the user found right may be said again, although no passage holds it.
    good = plain(case.answer) if case.verdict == "good" else ""

    def is_new(said: str) -> bool:
        whole_words = rf"(?<!\w){re.escape(plain(said))}(?!\w)"
        return not re.search(whole_words, good)

    facts = [*filter(is_new, (fact for one in turn.answer.unsupported for fact in one.facts))]
    if facts:
        failures.append(f"says what its sources do not: {listed(facts)}")
    if any(one.verified is False and is_new(one.quote) for one in turn.answer.citations):
        failures.append("has a quotation that is not in its source")
    was_written = case.conditions is not None and case.conditions.model != OFFLINE
    if case.verdict == "good" and was_written:
        needed = lacking(case.answer, case.question)
        missing = lacking(case.answer, case.question, _text(turn))
        if len(missing) > MAX_LACKING * len(needed):
            failures.append(f"lacks {', '.join(missing)}")
    return failures


def _has_place(places: Sequence[RightPlace], texts: Texts) -> bool:
    return any(place.uri == uri and _holds(text, place.text) for place in places for uri, text in texts)


def _holds(text: str, wanted: str) -> bool:
    """Whether a text holds half of the sentences and lines of another one; of many, two are enough.

    Another cut of the same passage is as right.
    """
    pieces = [plain(wanted[start:end]) for start, end in piece_spans(wanted)]
    return sum(piece in plain(text) for piece in pieces) >= min((len(pieces) + 1) // 2, 2)
