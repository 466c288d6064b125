"""Runs of all cases, and what became better and worse from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from ragchat.conversation import Conversation
from ragchat.evaluation.cases import Case
from ragchat.evaluation.conditions import Conditions, changed_documents, conditions, differences
from ragchat.evaluation.judging import Outcome, judge_cases
from ragchat.formatting import local, utc_now
from ragchat.llm.types import OFFLINE
from ragchat.uris import short_uri
from ragcommon.text.rules import counted

# What is counted, most telling first.
MEASURES = ("right", "screen", "prompt")


class Change(Struct, frozen=True):
    """A case that became better or worse, and the documents that it quoted before or now and that changed."""

    case_id: str
    question: str
    better: bool
    measure: str  # the first that differs
    failures: list[str]
    changed: list[str]  # URIs


class Run(Struct, frozen=True):
    """`script` is the file of its cases, "" for the saved ones. `last`: when the run before began, or "".

    `differs` are the differences of the conditions since then, `changes` the cases with another outcome.
    """

    at: str  # ISO 8601, UTC
    script: str
    conditions: Conditions
    outcomes: list[Outcome]
    last: str = ""
    differs: list[str] = []
    changes: list[Change] = []

    def count(self, measure: str) -> int:
        return sum(getattr(outcome, measure) is True for outcome in self.outcomes)

    @property
    def worse(self) -> list[Change]:
        return [change for change in self.changes if not change.better]

    @property
    def known(self) -> int:
        """The cases of which it is known whether the answer is right."""
        return sum(outcome.right is not None for outcome in self.outcomes)

    @property
    def places(self) -> int:
        """The cases whose right place is known."""
        return sum(outcome.screen is not None for outcome in self.outcomes)

    def public(self) -> dict[str, Any]:
        """The shape of `ragchat eval --json`."""
        return {
            "at": self.at,
            "script": self.script,
            "of": len(self.outcomes),
            **{measure: self.count(measure) for measure in (*MEASURES, "declined", "failed")},
            "seconds": sum(outcome.seconds for outcome in self.outcomes),
            "last": self.last,
            "differs": self.differs,
            "better": [change for change in self.changes if change.better],
            "worse": self.worse,
            "conditions": self.conditions,
            "cases": self.outcomes,
        }

    def summary(self) -> Iterator[str]:
        """The counts, and what differs from the last run, as lines."""
        failed = self.count("failed")
        unknown = len(self.outcomes) - self.known - failed
        yield (
            f"{self.count('right')} of {self.known} right; of {counted(self.places, 'right place')} "
            f"{self.count('screen')} on the first screen, {self.count('prompt')} in the prompt; "
            f"{self.count('declined')} declined"
            + (f"; {unknown} not known" if unknown else "")
            + (f"; {failed} could not be asked" if failed else "")
            + "."
        )
        if self.last:
            better = len(self.changes) - len(self.worse)
            yield f"Since {local(self.last)}: {better} better, {len(self.worse)} worse."
            yield from (f"  {line}" for line in self.differs or ["Nothing else differs."])


async def run_cases(
    conversation: Conversation,
    cases: Sequence[Case],
    script: str,
    last: Run | None,
    on_outcome: Callable[[Outcome], None] = lambda _: None,
) -> Run:
    """Ask all cases, and compare with the last run. Raises RagChatError."""
    model = await conversation.model.find()
    now, at = await conditions(conversation, model.name if model else OFFLINE), utc_now()
    outcomes = await judge_cases(conversation, cases, on_outcome)
    # What the notebooks and roles of cases say may differ, too.
    for case, outcome in zip(cases, outcomes, strict=True):
        named = (case.conditions.notebook, case.conditions.role) if case.conditions else ()
        if outcome.system_prompt and any(named):
            now.settings[f"system_prompt of {' and '.join(filter(None, named))}"] = outcome.system_prompt
    if last is None:
        return Run(at, script, now, outcomes)
    changed = await changed_documents(conversation.memory, last.at)
    differs = [*differences(last.conditions, now, changed)]
    return Run(at, script, now, outcomes, last.at, differs, compare(last.outcomes, outcomes, changed))


def compare(before: Sequence[Outcome], now: Sequence[Outcome], changed: Sequence[str] = ()) -> list[Change]:
    """The cases that are better or worse than before; `changed` are the documents written since."""
    known = {one.key: one for one in before}
    changes = []
    for outcome in now:
        previous = known.get(outcome.key)
        measure = _first_difference(previous, outcome) if previous else ""
        if previous and measure:
            quoted = {*previous.uris, *outcome.uris}
            changes.append(
                Change(
                    case_id=outcome.case_id,
                    question=outcome.question,
                    better=getattr(outcome, measure),
                    measure=measure,
                    failures=outcome.failures,
                    changed=[uri for uri in changed if uri in quoted],
                )
            )
    return changes


def _first_difference(before: Outcome, now: Outcome) -> str:
    """The first measure that is known both times and differs; "" if there is none."""
    for measure in MEASURES:
        one, other = getattr(before, measure), getattr(now, measure)
        if None not in (one, other) and one != other:
            return measure
    return ""


def sentence(change: Change) -> str:
    """`worse: What is …? does not show tea.md:3 (tea.md has changed)`"""
    names = {"right": "right", "screen": "on the first screen", "prompt": "in the prompt"}
    became = "better" if change.better else "worse"
    what = f"{'now' if change.better else 'no longer'} {names[change.measure]}"
    because = f" ({', '.join(map(short_uri, change.changed))} changed)" if change.changed else ""
    reasons = "".join(f"; it {failure}" for failure in change.failures)
    return f"{became}: {change.question}: {what}{reasons}{because}"
