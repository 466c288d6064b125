"""The model reads the passages of a sub-question, calls tools for more, and quotes what answers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from msgspec import Struct

from ragchat.answer import Candidate
from ragchat.grounding.citations import is_verbatim
from ragchat.llm import tokens
from ragchat.llm.client import Model
from ragchat.research.context import ResearchContext, prompt
from ragchat.research.evidence import EvidenceTools
from ragchat.research.requests import as_json
from ragchat.research.state import Finding, SubQuestion
from ragchat.turn.events import Emit, Event, Notice, ToolFinished, ToolStarted
from ragchat.turn.passages import number, quote
from ragchat.turn.prompt import Prompt
from ragchat.turn.rounds import Answerer, Rounds
from ragcommon.contract.search import Hit

# The maximum per sub-question: the report has room for the best of each.
MAX_FINDINGS = 8


class _Quoted(Struct):
    passage: int
    quote: str


class _Found(Struct):
    findings: list[_Quoted]


async def read(
    sub: SubQuestion,
    candidates: Sequence[Candidate],
    model: Model,
    context: ResearchContext,
    emit: Emit,
) -> None:
    """Replace the findings of `sub` by the model's quotations, if its reply can be read.

    Raises ModelError, TokensUsedUp.
    """
    limits = replace(context.limits, rounds=context.settings.rounds)
    budget, prompts = limits.budget, context.prompts
    frame = [{"role": "system", "content": prompt("read")}, {"role": "user", "content": sub.text}]
    room = budget.context - 2 * budget.answer - tokens.prompt_at_most(frame)
    passages = number(candidates, room, budget=budget.passages)
    quoted = f"{prompts.passages}\n\n{quote(passages.numbered())}" if passages.tokens else ""
    messages = [frame[0], {"role": "user", "content": f"{quoted}\n\n{sub.text}".strip()}]
    tools = EvidenceTools(context.toolbox, room - passages.tokens, asks=context.approve is not None)
    answerer = Answerer(model, prompts, tools, context.approve)
    asked = Prompt(messages, passages, 0, tokens.prompt_at_most(messages))
    exchange = await Rounds(answerer, asked, limits, _without_text(emit)).run()
    sub.untrusted = exchange.untrusted
    hits = exchange.passages.numbered()
    found = await as_json(model, exchange.messages, _Found)
    if found is not None:
        sub.findings, sub.left_out = _verified(found.findings, hits, emit)
        sub.read, sub.passages = True, len(hits)


def _verified(quoted: Sequence[_Quoted], hits: Mapping[int, Hit], emit: Emit) -> tuple[list[Finding], int]:
    """The distinct quotations that are verbatim in their passages, and the number of the others."""
    found: dict[tuple[int, str], Finding] = {}
    wrong = 0
    for one in quoted:
        text = one.quote.strip()
        if text and one.passage in hits and is_verbatim(text, hits[one.passage].full_text):
            found.setdefault((one.passage, text), Finding(hits[one.passage], text))
        else:
            wrong += 1
    if wrong:
        emit(Notice(f"Left out {wrong} of the model's quotations: not in their passages word for word."))
    return [*found.values()][:MAX_FINDINGS], wrong


def _without_text(emit: Emit) -> Emit:
    """Forward only tool calls and notices."""

    def forward(event: Event) -> None:
        if isinstance(event, ToolStarted | ToolFinished | Notice):
            emit(event)

    return forward
