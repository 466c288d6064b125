"""One research, from the question to the checked report. Progress is saved, so that a later run continues."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import anyio
import msgspec
from msgspec.structs import replace as with_changes

from ragchat.answer import Answer, Candidate
from ragchat.errors import RagChatError
from ragchat.formatting import utc_now
from ragchat.grounding.citations import check
from ragchat.grounding.evidence import Evidence, gather
from ragchat.grounding.facts import unsupported
from ragchat.grounding.judging import Closeness, judge
from ragchat.grounding.question import Question
from ragchat.llm import tokens
from ragchat.llm.errors import EmptyAnswer, ModelError
from ragchat.llm.types import OFFLINE
from ragchat.offline.answer import NEAREST, NO_MODEL, NOTHING, nothing
from ragchat.research.checking import Unproven, check_meaning, check_words, claims_of, marked
from ragchat.research.context import ResearchContext, prompt
from ragchat.research.listing import answering, cited_passages, list_findings
from ragchat.research.plan import parts, plan
from ragchat.research.reading import read
from ragchat.research.requests import Metered, TokensUsedUp
from ragchat.research.search import fused
from ragchat.research.state import Finding, ResearchState, StateFile, SubQuestion
from ragchat.turn.approval import untrusted_texts
from ragchat.turn.events import Delta, Emit, Event, Notice, Retrieved, Retrieving, Step
from ragchat.turn.grounding import judge_passages
from ragchat.turn.passages import Passages, number, quote
from ragchat.turn.retrieval import Retrieval, retrieve_all
from ragchat.turn.types import Trace, Turn
from ragchat.turn.why import UNCITED
from ragcommon.contract.search import Hit
from ragcommon.errors import os_reason
from ragcommon.text.rules import counted

# The share of tokens and time before the report is written and checked.
GATHERING_SHARE = 0.75
# Sub-questions that are read concurrently: local servers handle few requests at once.
READ_AT_ONCE = 3
NOTHING_FOUND = "The model found nothing on this question in what it was given: {passages}."
NOT_VERBATIM = (
    "None of what the model quoted from {passages} stands there word for word, so there is nothing to "
    "report. Another model may quote better."
)
UNREADABLE = "{passages} as a whole, because the model's findings could not be read"
RAN_OUT = "The limit research.{limit} is reached: {consequence}."


@dataclass(frozen=True)
class Report:
    """The report as a turn, with the claims that its sources do not support."""

    turn: Turn
    sub_questions: Sequence[SubQuestion]
    unproven: Sequence[Unproven]

    def public(self) -> dict[str, Any]:
        """The JSON of `ragchat research --json`: that of `ask`, and how the report was made."""
        numbers = {one.hit.chunk_id: one.n for one in self.turn.answer.candidates if one.n}
        questions = [
            {
                "question": sub.text,
                "wordings": sub.wordings,
                "findings": [
                    {"n": numbers.get(one.hit.chunk_id), "uri": one.hit.uri, "quote": one.quote}
                    for one in sub.findings
                ],
            }
            for sub in self.sub_questions
        ]
        unproven = msgspec.to_builtins(self.unproven)
        return {**self.turn.public(), "sub_questions": questions, "not_supported": unproven}


class Research:
    """Takes `state` to its report. `file` keeps it after each step."""

    def __init__(self, state: ResearchState, file: StateFile, context: ResearchContext, emit: Emit) -> None:
        self._state = state
        self._file: StateFile | None = file
        self._context = context
        self._forward = emit
        self._notices: list[str] = []
        self._unproven: list[Unproven] = []
        self._failure: RagChatError | None = None  # why memory did not answer

    async def run(self, session_id: str) -> Report:
        """The report as a turn of that session. If this is cancelled or fails, the progress is kept.

        Raises ModelError, and errors of memory if nothing else was found.
        """
        started, created_at = time.perf_counter(), utc_now()
        try:
            written = await (self._offline() if self._context.model is None else self._online())
        except anyio.get_cancelled_exc_class():
            self._keep()
            found = counted(len(self._state.findings), "finding")
            self._emit(Notice(f"{found} kept: the same question goes on from here."))
            raise
        self._emit(Delta(written.text))
        turn = await self._turn(written, session_id, created_at, time.perf_counter() - started)
        return Report(turn, self._state.sub_questions, self._unproven)

    def _emit(self, event: Event) -> None:
        if isinstance(event, Notice):
            self._notices.append(event.text)
        self._forward(event)

    def _keep(self) -> None:
        """Save the state. If that fails, the research continues but cannot be resumed."""
        if self._file is not None:
            try:
                self._file.save(self._state)
            except OSError as error:
                self._file = None
                self._emit(Notice(f"This research cannot be resumed: {os_reason(error)}."))

    # Without a model

    async def _offline(self) -> Answer:
        state, context = self._state, self._context
        subs = parts(state.question, context.settings.sub_questions)
        self._emit(Retrieving(state.question))
        found = await retrieve_all(context.memory, [sub.text for sub in subs], context.limits.retrieval)
        self._note(found)
        if self._failure is not None:
            raise self._failure
        candidates = fused([one.candidates for one in found])
        self._emit(Retrieved(candidates))
        judged = await judge_passages(
            state.question,
            state.question,
            Retrieval(candidates, weights=found[0].weights),
            context.memory,
            context.limits.retrieval.seconds,
        )
        grounded = judged.state is Closeness.GROUNDED
        chosen = judged.candidates if grounded else candidates
        relevant = [candidate.hit for candidate in chosen if candidate.used]
        if judged.state is Closeness.NOTHING or not relevant:
            text = nothing(candidates, empty=found[0].empty).text
            return Answer(text, candidates=candidates)
        ids = {hit.chunk_id for hit in relevant}
        for sub, one in zip(subs, found, strict=True):
            own = {candidate.hit.chunk_id for candidate in one.candidates} & ids
            sub.findings = [Finding(hit) for hit in relevant if hit.chunk_id in own]
        state.sub_questions = subs
        written = await self._listed([Finding(hit) for hit in relevant])
        if not written.citations:
            return with_changes(written, text=nothing(candidates, empty=False).text, candidates=candidates)
        self._emit(Notice(NO_MODEL))
        shown = [*([] if grounded else [NEAREST]), written.text]
        return with_changes(written, text="\n\n".join(shown))

    def _note(self, found: Sequence[Retrieval]) -> None:
        """Show each notice of memory once."""
        for notice in dict.fromkeys(one.notice for one in found if one.notice):
            if notice not in self._notices:
                self._emit(Notice(notice))
        self._failure = next((one.failure for one in found if one.failure), None)

    # With a model

    async def _online(self) -> Answer:
        context, state = self._context, self._state
        assert context.model is not None
        model = Metered(context.model, context.settings.tokens, context.limits.budget.answer, state.usage)
        clock = context.toolbox.clock
        deadline = clock.now() + context.settings.seconds
        if state.sub_questions:
            found = counted(len(state.findings), "finding")
            self._emit(Notice(f"Going on with the research that was stopped: {found} kept."))
        if not state.draft:
            model.most = int(context.settings.tokens * GATHERING_SHARE)
            with clock.limited(context.settings.seconds * GATHERING_SHARE) as scope:
                await self._gather(model)
            if scope.cancelled_caught:
                self._ran_out("seconds", "the report is written from what was found")
            if not state.sub_questions:  # there was no time to plan
                state.sub_questions = [SubQuestion(state.question)]
                await self._search(state.sub_questions)
            model.most = context.settings.tokens
        findings = state.findings
        if not findings:
            return self._without_findings()
        asked, passages = self._passages(findings)
        with clock.until(deadline) as scope:
            try:
                await self._write(model, asked, passages)
            except TokensUsedUp:
                self._ran_out("tokens", "the findings are listed instead of a report")
        if scope.cancelled_caught:
            self._ran_out("seconds", "the findings are listed instead of a report")
        written = (
            await self._checked(model, passages, deadline) if state.draft else await self._listed(findings)
        )
        state.usage = model.usage
        return written

    def _without_findings(self) -> Answer:
        """Raises the error of memory, if that did not answer."""
        if self._failure is not None:
            raise self._failure
        given = sum(sub.passages for sub in self._state.sub_questions)
        text = NOT_VERBATIM if any(sub.left_out for sub in self._state.sub_questions) else NOTHING_FOUND
        return Answer(text.format(passages=counted(given, "passage")) if given else NOTHING)

    def _ran_out(self, limit: str, consequence: str) -> None:
        self._emit(Notice(RAN_OUT.format(limit=limit, consequence=consequence)))

    async def _gather(self, model: Metered) -> None:
        """Plan, search memory for all sub-questions concurrently, and read the passages."""
        state, context = self._state, self._context
        if not state.sub_questions:
            self._emit(Retrieving(state.question))
            try:
                most = context.settings.sub_questions
                state.sub_questions = await plan(state.question, model, prompt("plan"), most, self._emit)
            except TokensUsedUp:
                state.sub_questions = [SubQuestion(state.question)]
            self._step(model)
        for position, sub in enumerate(state.sub_questions, 1):
            self._emit(Step(f"{position}. {sub.text}"))
        unread = [sub for sub in state.sub_questions if not sub.read]
        found = await self._search(unread)
        limiter = anyio.CapacityLimiter(READ_AT_ONCE)
        async with anyio.create_task_group() as group:
            for sub, candidates in zip(unread, found, strict=True):
                group.start_soon(self._read, sub, candidates, limiter, model)

    async def _search(self, subs: Sequence[SubQuestion]) -> list[list[Candidate]]:
        """The ranked passages of each sub-question; the relevant ones become its findings."""
        context = self._context
        queries = [*dict.fromkeys(query for sub in subs for query in sub.queries)]
        found = dict(
            zip(queries, await retrieve_all(context.memory, queries, context.limits.retrieval), strict=True)
        )
        self._note([*found.values()])
        self._emit(Retrieved(fused([one.candidates for one in found.values()])))
        ranked = [fused([found[query].candidates for query in sub.queries]) for sub in subs]
        for sub, candidates in zip(subs, ranked, strict=True):
            sub.findings = [Finding(one.hit) for one in candidates if one.used]
        return ranked

    async def _read(
        self,
        sub: SubQuestion,
        candidates: Sequence[Candidate],
        limiter: anyio.CapacityLimiter,
        model: Metered,
    ) -> None:
        """Read the passages of a sub-question; if that fails, its findings remain as they were."""
        async with limiter:
            try:
                await read(sub, candidates, model, self._context, self._emit)
            except TokensUsedUp:
                self._emit(Notice(f"Not read, as the limit research.tokens is reached: {sub.text}"))
                return
            except ModelError as error:
                self._emit(Notice(f"Not read: {sub.text} {error}"))
                return
            self._emit((Step if sub.read else Notice)(f"{_found(sub)}: {sub.text}"))
            self._step(model)

    def _step(self, model: Metered) -> None:
        self._state.usage = model.usage
        self._keep()

    # The report

    def _passages(self, findings: Sequence[Finding]) -> tuple[str, Passages]:
        """The end of the prompt for the report, and the passages that fit into it."""
        state, budget = self._state, self._context.limits.budget
        listed = ["The parts of the question:", *(f"- {sub.text}" for sub in state.sub_questions)]
        asked = "\n".join([*listed, "", state.question])
        fixed = tokens.at_most(prompt("report") + asked + self._context.prompts.passages)
        candidates = [Candidate(hit, True, "found") for hit in cited_passages(findings)]
        return asked, number(candidates, budget.context - 2 * budget.answer - fixed)

    async def _write(self, model: Metered, asked: str, passages: Passages) -> None:
        """Write the draft, unless an earlier run has. Raises ModelError, TokensUsedUp."""
        if self._state.draft:
            return
        self._emit(Step(f"Writing the report from {counted(len(passages.numbered()), 'passage')}."))
        quoted = f"{self._context.prompts.passages}\n\n{quote(passages.numbered())}"
        completion = await model.complete(
            [
                {"role": "system", "content": prompt("report")},
                {"role": "user", "content": f"{quoted}\n\n{asked}"},
            ]
        )
        if not completion.text.strip():
            raise EmptyAnswer(model.name)
        if completion.cut_off:
            self._emit(Notice(completion.cut_off))
        self._state.draft = completion.text.strip()
        self._step(model)

    async def _checked(self, model: Metered, passages: Passages, deadline: float) -> Answer:
        """The draft with its claims checked, also by the model if there is time."""
        draft, hits = self._state.draft, passages.numbered()
        claims = claims_of(draft)
        self._emit(Step(f"Checking {counted(len(claims), 'claim')} against {counted(len(hits), 'source')}."))
        flaws = check_words(claims, hits, self._state.question)
        judged = None
        with self._context.toolbox.clock.until(deadline), suppress(TokensUsedUp, ModelError):
            judged = await check_meaning(model, prompt("check"), claims, flaws, hits)
        if judged is None:
            self._emit(
                Notice("The model did not check the claims: only quotations, numbers, dates and names were.")
            )
        flaws |= judged or {}
        if flaws:
            self._emit(
                Notice(f"{counted(len(flaws), 'claim')} not supported: marked, and listed at the end.")
            )
        checked = check(draft, hits)
        if not (checked.citations or checked.unknown):
            self._emit(Notice(UNCITED))
        self._unproven = [Unproven(claims[index].bare, flaws[index]) for index in sorted(flaws)]
        return Answer(
            marked(draft, claims, flaws),
            checked.citations,
            passages.candidates,
            unsupported=unsupported(draft, hits, self._state.question),
            unknown_citations=checked.unknown,
        )

    async def _listed(self, findings: Sequence[Finding]) -> Answer:
        """The findings, instead of a report."""
        question = Question.of(self._state.question)
        found = answering(findings, await self._evidence(question, cited_passages(findings)))
        text, citations = list_findings(found)
        findings = [finding for finding, _ in found]
        candidates = [Candidate(hit, True, "quoted", n) for n, hit in enumerate(cited_passages(findings), 1)]
        return Answer(text, citations, candidates)

    async def _evidence(self, question: Question, hits: Sequence[Hit]) -> list[Evidence]:
        return await gather(question, hits, self._context.memory, self._context.limits.retrieval.seconds)

    async def _turn(self, written: Answer, session_id: str, created_at: str, seconds: float) -> Turn:
        state, model = self._state, self._context.model
        question, subs = state.question, state.sub_questions
        cited = [one.hit for one in written.candidates if one.n in {c.n for c in written.citations}]
        asked = Question.of(question)
        judged = judge(asked, await self._evidence(asked, cited))
        untrusted = [*(name for sub in subs for name in sub.untrusted), *untrusted_texts(cited)]
        queries = dict.fromkeys(query for sub in subs for query in sub.queries if query != question)
        answer = with_changes(
            written,
            grounded=bool(cited) and not written.unsupported and judged.state is Closeness.GROUNDED,
            missing=judged.missing if cited else [],
            model=model.name if model else OFFLINE,
            usage=state.usage,
            wordings=[*queries],
            untrusted=[*dict.fromkeys(untrusted)],
        )
        return Turn(
            turn_id=secrets.token_hex(6),
            session_id=session_id,
            question=question,
            answer=answer,
            timings={"total": round(seconds, 6)},
            created_at=created_at,
            trace=Trace(question, notices=self._notices, is_report=True),
        )


def _found(sub: SubQuestion) -> str:
    """What reading the passages of a sub-question has brought."""
    if not sub.read:
        return UNREADABLE.format(passages=counted(len(sub.findings), "passage"))
    places = {finding.hit.uri for finding in sub.findings}
    where = counted(len(places), "source") if places else counted(sub.passages, "passage")
    return f"{counted(len(sub.findings), 'finding')} in {where}"
