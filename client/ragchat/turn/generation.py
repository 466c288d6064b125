"""The answer of a model: prompt, rounds, and the check of the answer against its passages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ragchat.answer import Answer
from ragchat.grounding.citations import Checked, check
from ragchat.grounding.facts import unsupported
from ragchat.grounding.judging import Closeness
from ragchat.grounding.types import Unsupported
from ragchat.llm import tokens
from ragchat.llm.images import IMAGE_TOKENS, MAX_IMAGES
from ragchat.offline.small_talk import small_talk
from ragchat.turn.events import Delta, Emit, Notice, Retrieved
from ragchat.turn.grounding import Grounding
from ragchat.turn.limits import Budget, TurnLimits
from ragchat.turn.passages import ATTACHED, markers
from ragchat.turn.past_turns import NOT_GROUNDED, NOT_SEARCHED
from ragchat.turn.prompt import Prompt, build
from ragchat.turn.rounds import Answerer, Exchange, Rounds
from ragchat.turn.types import Turn
from ragchat.uris import short_uri
from ragmcp.concurrency import in_daemon_thread

UNCITED = "The answer cites no passage: nothing in it was checked against your documents."


async def generate(
    question: str,
    history: Sequence[Turn],
    grounding: Grounding,
    answerer: Answerer,
    limits: TurnLimits,
    emit: Emit,
) -> Answer:
    """The answer of a model, with its citations checked. Raises ModelError."""
    tools = await answerer.toolbox.descriptions()
    prompt = build(
        f"{answerer.instructions}\n\n{question}".lstrip(),
        history,
        grounding,
        answerer.prompts,
        limits.budget,
        other_tokens=tokens.prompt_at_most(tools) + IMAGE_TOKENS * len(answerer.images[:MAX_IMAGES]),
    )
    emit(Retrieved(prompt.passages.candidates))
    if grounding.is_attached:
        cut = (one for one in prompt.passages.candidates if one.reason != ATTACHED)
        for text in dict.fromkeys(f"{short_uri(one.hit.uri, one.hit.title)} is {one.reason}." for one in cut):
            emit(Notice(text))
    if text := _dropped(prompt, history, limits.budget):
        emit(Notice(text))
    earlier = [name for turn in history[prompt.dropped_turns :] for name in turn.answer.untrusted]
    exchange = await Rounds(answerer, prompt, limits, emit, earlier).run()
    hits = exchange.passages.numbered()
    asked = " ".join([question, grounding.question.text, *(word.text for word in grounding.question.carried)])
    other = _other_sources(history, exchange)
    checked, wrong = await in_daemon_thread(
        lambda: (check(exchange.text, hits), unsupported(exchange.text, hits, asked, other))
    )
    cited = [*dict.fromkeys(c.n for c in checked.citations if c.verified is not False)]
    judged, parts = await grounding.of({n: hits[n] for n in cited} or hits)
    grounded = bool(cited) and not wrong and judged.state is Closeness.GROUNDED
    if cited and not grounded:
        _, parts = await grounding.of(hits)
    missing = judged.missing if hits else []
    for text in _flaws(checked, wrong):
        emit(Notice(text))
    if hits and not checked.citations and not checked.unknown and not small_talk(question):
        emit(Notice(UNCITED))
    if missing and cited and not grounded:
        emit(Notice(f"Not mentioned in the cited passages: {', '.join(missing)}."))
    ungrounded = "" if hits else f"\n\n{NOT_GROUNDED if grounding.was_searched else NOT_SEARCHED}"
    if ungrounded:
        emit(Delta(ungrounded))
    return Answer(
        exchange.text + ungrounded,
        checked.citations,
        exchange.passages.candidates,
        grounded=grounded,
        nearest=[] if grounded else parts,
        missing=missing,
        model=answerer.model.name,
        usage=exchange.usage,
        passages_tokens=exchange.passages.tokens,
        prompt_tokens=prompt.tokens,
        dropped_turns=prompt.dropped_turns,
        unknown_citations=checked.unknown,
        unsupported=wrong,
        messages=exchange.messages,
        untrusted=exchange.untrusted,
        judgement=judged.recorded,
    )


def _other_sources(history: Sequence[Turn], exchange: Exchange) -> str:
    """The other texts that support a sentence without a citation: the conversation, and tool results."""
    texts = [turn.question for turn in history]
    texts += [turn.answer.text for turn in history if turn.answer.grounded]
    texts += [one["content"] for one in exchange.messages if one["role"] == "tool"]
    return "\n".join(texts)


def _dropped(prompt: Prompt, history: Sequence[Turn], budget: Budget) -> str:
    """The notice that turns no longer fit; "" if the previous turn already showed it."""
    dropped, before = prompt.dropped_turns, history[-1].answer.dropped_turns if history else 0
    if dropped <= before:
        return ""
    turns = "The oldest turn" if dropped == 1 else f"The {dropped} oldest turns"
    return (
        f"{turns} of this session no longer fit and were left out: after passages, tools and the answer, "
        f"{prompt.history_room:,} of the context's {budget.context:,} tokens are left for the history."
    )


def _flaws(checked: Checked, facts: Sequence[Unsupported]) -> Iterator[str]:
    """Notices for unknown citations, for wrong quotations, and for facts that the passages do not hold."""
    if checked.unknown:
        yield f"The answer cites {markers(checked.unknown)}, but no such passage was given."
    if wrong := sorted({citation.n for citation in checked.citations if citation.verified is False}):
        yield f"A quotation attributed to {markers(wrong)} is not in it word for word."
    for found in facts:
        yield f"{', '.join(found.facts)}: not in {markers(found.passages) or 'any passage'}."
