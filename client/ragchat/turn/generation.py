"""The answer of a model: prompt, rounds, and the check of the answer against its passages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ragchat.answer import Answer
from ragchat.grounding.citations import check
from ragchat.grounding.facts import unsupported
from ragchat.grounding.judging import Closeness
from ragchat.llm import tokens
from ragchat.llm.images import IMAGE_TOKENS, MAX_IMAGES
from ragchat.sanitize import without_escapes
from ragchat.turn.events import Delta, Emit, Notice, Retrieved
from ragchat.turn.grounding import Grounding
from ragchat.turn.limits import Budget, TurnLimits
from ragchat.turn.passages import ATTACHED
from ragchat.turn.past_turns import NOT_GROUNDED, NOT_SEARCHED
from ragchat.turn.prompt import Prompt, build
from ragchat.turn.rounds import Answerer, Exchange, Rounds
from ragchat.turn.types import Turn
from ragchat.turn.why import flaws
from ragchat.uris import short_uri
from ragcommon.concurrency import in_daemon_thread


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
    for text in _left_out(prompt, history, grounding, limits.budget):
        emit(Notice(text))
    earlier = [name for turn in history[prompt.dropped_turns :] for name in turn.answer.untrusted]
    exchange = await Rounds(answerer, prompt, limits, emit, earlier).run()
    hits = exchange.passages.numbered()
    asked = " ".join([question, grounding.question.text, *(word.text for word in grounding.question.carried)])
    other = _other_sources(history, exchange)
    text = without_escapes(exchange.text)  # the numbers of a colour are no facts
    checked, wrong = await in_daemon_thread(
        lambda: (check(text, hits), unsupported(text, hits, asked, other))
    )
    cited = [*dict.fromkeys(c.n for c in checked.citations if c.verified is not False)]
    judged, parts = await grounding.of({n: hits[n] for n in cited} or hits)
    grounded = bool(cited) and not wrong and judged.state is Closeness.GROUNDED
    if cited and not grounded:
        _, parts = await grounding.of(hits)
    ungrounded = "" if hits else f"\n\n{NOT_GROUNDED if grounding.was_searched else NOT_SEARCHED}"
    answer = Answer(
        exchange.text + ungrounded,
        checked.citations,
        exchange.passages.candidates,
        grounded=grounded,
        nearest=[] if grounded else parts,
        missing=judged.missing if hits else [],
        model=answerer.model.name,
        usage=exchange.usage,
        passages_tokens=exchange.passages.tokens,
        prompt_tokens=prompt.tokens,
        dropped_turns=prompt.dropped_turns,
        unknown_citations=checked.unknown,
        unsupported=wrong,
        messages=exchange.messages,
        cut_off=exchange.cut_off,
        untrusted=exchange.untrusted,
        judgement=judged.recorded,
    )
    for text in flaws(question, answer):
        emit(Notice(text))
    if ungrounded:
        emit(Delta(ungrounded))
    return answer


def _other_sources(history: Sequence[Turn], exchange: Exchange) -> str:
    """The other texts that support a sentence without a citation: the conversation, and tool results."""
    texts = [turn.question for turn in history]
    texts += [turn.answer.text for turn in history if turn.answer.grounded]
    texts += [one["content"] for one in exchange.messages if one["role"] == "tool"]
    return "\n".join(texts)


def _left_out(prompt: Prompt, history: Sequence[Turn], grounding: Grounding, budget: Budget) -> Iterator[str]:
    """Notices of attached documents that are cut, and of turns that no longer fit, once."""
    if grounding.is_attached:
        cut = [one for one in prompt.passages.candidates if one.reason != ATTACHED]
        yield from dict.fromkeys(f"{short_uri(one.hit.uri, one.hit.title)} is {one.reason}." for one in cut)
    dropped, before = prompt.dropped_turns, history[-1].answer.dropped_turns if history else 0
    if dropped > before:
        turns = "The oldest turn" if dropped == 1 else f"The {dropped} oldest turns"
        yield (
            f"{turns} of this session no longer fit and were left out: after passages, tools and the answer, "
            f"{prompt.history_room:,} of the context's {budget.context:,} tokens are left for the history."
        )
