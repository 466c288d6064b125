"""How an answer was made, as names with values, and what the checks found in it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ragchat.answer import Answer
from ragchat.formatting import listed, seconds
from ragchat.llm.types import OFFLINE
from ragchat.sanitize import one_line
from ragchat.turn.passages import markers
from ragchat.turn.small_talk import small_talk
from ragchat.turn.types import Turn
from ragcommon.text.rules import counted

STOPPED = "The answer was stopped."
UNCITED = "The answer cites no passage: nothing in it was checked against your documents."


def summary(turn: Turn) -> str:
    """`offline · 0.1 s`, or `gpt-5-mini · 1,204 + 210 tokens · 2.1 s`; "about" before our own estimate."""
    parts = [turn.answer.model]
    if turn.answer.model != OFFLINE:
        prompt, completion = turn.answer.usage.best
        about = "" if turn.answer.usage.is_reported else "about "
        parts.append(f"{about}{prompt:,} + {completion:,} tokens")
    if "total" in turn.timings:
        parts.append(seconds(turn.timings["total"]))
    return " · ".join(parts)


def searched(turn: Turn) -> Iterator[tuple[str, str]]:
    """What was searched for."""
    trace, answer = turn.trace, turn.answer
    yield "Question", turn.question
    if trace.query and trace.query != turn.question:
        yield "Searched for", trace.query
    if answer.wordings:
        yield "Also searched for", " | ".join(answer.wordings)
    if not answer.candidates:
        yield "Found", "nothing"


def answered(turn: Turn) -> Iterator[tuple[str, str]]:
    """What was made of the passages that were found."""
    answer = turn.answer
    yield "Passages", _passages(answer)
    yield "History", _history(turn)
    yield "Model", answer.model
    if answer.model != OFFLINE:
        yield "Tokens", _tokens(answer)
    yield "Times", _times(turn)
    if answer.judgement:
        yield "Judged", _judgement(answer.judgement)
    if not answer.grounded:
        yield "Grounded", f"no: {_lacking(answer)}"
    for citation in answer.citations:
        if citation.verified is False:
            yield "Quotation", f"[{citation.n}] does not contain “{one_line(citation.quote, 60)}”"
    for notice in turn.trace.notices:
        yield "Notice", notice


def _judgement(judgement: Mapping[str, float]) -> str:
    """`the passages answer with probability 0.83: best late 0.91, words 1.1, …`"""
    parts = ", ".join(f"{name} {value:.2f}" for name, value in judgement.items() if name != "probability")
    said = f"the passages answer with probability {judgement.get('probability', 0.0):.2f}"
    return f"{said}: {parts}" if parts else said


def _lacking(answer: Answer) -> str:
    if not answer.citations and not answer.nearest:
        return "memory has nothing on the topic"
    if answer.model != OFFLINE and not answer.citations:
        return "the answer cites none of the passages"
    if answer.citations and all(citation.verified is False for citation in answer.citations):
        return "the cited passages do not contain the quotations"
    if answer.unsupported:
        facts = [fact for found in answer.unsupported for fact in found.facts]
        return f"the passages do not contain {listed(facts)}"
    if answer.missing:
        return f"the passages do not mention {listed(answer.missing)}"
    return "no passage clearly holds what is asked"


def _times(turn: Turn) -> str:
    """`retrieval 12 ms, first token 0.8 s, total 2.1 s`; without a model, there are no tokens."""
    names = [name for name in turn.timings if turn.answer.model != OFFLINE or name != "first_token"]
    return ", ".join(f"{name.replace('_', ' ')} {seconds(turn.timings[name])}" for name in names)


def _passages(answer: Answer) -> str:
    used = sum(candidate.used for candidate in answer.candidates)
    text = f"{used} of {len(answer.candidates)} used"
    return f"{text}, about {answer.passages_tokens:,} tokens" if answer.passages_tokens else text


def _history(turn: Turn) -> str:
    turns = counted(turn.trace.history_turns, "earlier turn")
    dropped = turn.answer.dropped_turns
    return f"{turns}; {dropped} left out, the budget was full" if dropped else turns


def _tokens(answer: Answer) -> str:
    prompt, completion = answer.usage.best
    if not answer.usage.is_reported:
        return f"prompt about {prompt:,}, answer about {completion:,} (the server reported none)"
    return f"prompt {prompt:,} (our estimate {answer.prompt_tokens:,}), answer {completion:,}"


def flaws(question: str, answer: Answer) -> Iterator[str]:
    """What the checks found in the answer of a model: a sentence for each flaw.

    A grounded answer can lack a word, too: "how hot is the boiler" finds what the boiler needs.
    """
    if answer.model == OFFLINE:
        return
    if answer.unknown_citations:
        yield f"The answer cites {markers(answer.unknown_citations)}, but no such passage was given."
    if wrong := sorted({citation.n for citation in answer.citations if citation.verified is False}):
        yield f"A quotation attributed to {markers(wrong)} is not in it word for word."
    for found in answer.unsupported:
        yield f"{listed(found.facts)}: not in {markers(found.passages) or 'any passage'}."
    has_passages = any(candidate.n for candidate in answer.candidates)
    cites = answer.citations or answer.unknown_citations
    # The citation of a sentence is at its end, which an answer that was stopped may not have reached.
    if has_passages and not cites and not small_talk(question) and answer.cut_off != STOPPED:
        yield UNCITED
    rests = any(citation.verified is not False for citation in answer.citations)
    if answer.missing and rests:
        yield f"Not mentioned in the cited passages: {listed(answer.missing)}."


def marks(turn: Turn) -> list[str]:
    """The flaws of a saved answer as lines below it. A report has its own marks, in its text."""
    if turn.trace.is_report:
        return []
    return [f"! {flaw}" for flaw in filter(None, [turn.answer.cut_off, *flaws(turn.question, turn.answer)])]
