"""Query rewriting by a model: standalone questions for follow-ups, other wordings for weak searches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

import anyio
from msgspec import Struct
from msgspec.structs import replace as with_changes

from ragchat.answer import Candidate
from ragchat.grounding.citations import MARKER
from ragchat.grounding.words import content_words, index_terms
from ragchat.llm.client import Model
from ragchat.llm.errors import LimitReached, ModelError
from ragchat.llm.types import Message, Usage
from ragchat.sanitize import one_line
from ragchat.turn.limits import RetrievalLimits
from ragchat.turn.past_turns import bare_answer
from ragchat.turn.retrieval import Memory, Retrieval, retrieve_all
from ragchat.turn.types import Turn

MAX_WORDINGS = 3
WORDING_CHARACTERS = 200
# Characters of the answer before a follow-up: its beginning names what the follow-up refers to.
ANSWER_CHARACTERS = 500
# Bullets and numbers in a model's list.
_MARK = re.compile(r"^(?:[-*•]|\d+[.):])\s+")
# Two digits or more: a smaller number in a follow-up often refers to the answer before ("the 2 of them").
_NUMBER = re.compile(r"\d{2,}")
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th|er|e)\b")
_SEPARATOR = re.compile(r"(?<=\d)[.,'’\u00a0\u202f](?=\d{3}(?!\d))")


class Rewriting(Struct, frozen=True):
    """`wordings` to search for, the `usage` of the request, and why there was no answer."""

    wordings: Sequence[str] = ()
    usage: Usage = Usage()
    failure: str = ""


async def standalone(question: str, before: Turn, model: Model, prompt: str, seconds: float) -> Rewriting:
    """Ask a model to rewrite a follow-up as a standalone question. Raises as `rewrite`."""
    said = one_line(bare_answer(before), ANSWER_CHARACTERS)
    conversation = f"Question: {before.question}\nAnswer: {said}\n\nFollow-up: {question}"
    asked = await _ask(conversation, model, prompt, seconds)
    known, numbers = {*index_terms(conversation)}, _numbers(_ORDINAL.sub(" ", MARKER.sub(" ", question)))
    # A line without any word of the conversation is an answer, or about something else; so is one without the
    # numbers of the follow-up, which it would displace.
    usable = [
        line
        for line in asked.wordings
        if not known.isdisjoint(index_terms(" ".join(content_words(line)))) and numbers <= _numbers(line)
    ]
    return with_changes(asked, wordings=usable[:1])


def _numbers(text: str) -> set[str]:
    """The digits of each number, whatever its unit and separators: `1,200kg` and `1200 kg` have the same."""
    return {*_NUMBER.findall(_SEPARATOR.sub("", text))}


async def rewrite(query: str, model: Model, prompt: str, seconds: float) -> Rewriting:
    """Ask a model for other wordings of a question. The turn can go on without them.

    Raises a ModelError that the request for the answer would get as well.
    """
    asked = await _ask(query, model, prompt, seconds)
    wordings = [line for line in asked.wordings if line.casefold() != query.casefold()]
    return with_changes(asked, wordings=wordings[:MAX_WORDINGS])


async def _ask(text: str, model: Model, prompt: str, seconds: float) -> Rewriting:
    """The request, with all questions of the reply as wordings."""
    messages: list[Message] = [{"role": "system", "content": prompt}, {"role": "user", "content": text}]
    try:
        with anyio.fail_after(seconds):
            completion = await model.complete(messages, on_retry=_give_up)
    except TimeoutError:
        return Rewriting(failure=f"{model.name} did not rephrase the question within {seconds:g} s.")
    except ModelError as error:
        if not (error.is_temporary or isinstance(error, LimitReached)):
            raise
        return Rewriting(failure=f"{model.name} did not rephrase the question. {error}")
    return Rewriting(_lines(completion.text), completion.usage)


def _give_up(error: ModelError, _pause: float) -> None:
    """Leave waiting and trying again to the request for the answer."""
    raise error


async def search_again(
    memory: Memory, retrieval: Retrieval, wordings: Sequence[str], limits: RetrievalLimits
) -> Retrieval:
    """Search for each wording, and merge the hits: the searches take turns, the first one begins.

    By their scores, a wording that misses the point would displace all that the question itself has
    found. Each passage appears once, with its best score.
    """
    found = await retrieve_all(memory, wordings, limits)
    merged: dict[int, Candidate] = {}
    for turn in zip_longest(*(one.candidates for one in [retrieval, *found])):
        for candidate in filter(None, turn):
            known = merged.setdefault(candidate.hit.chunk_id, candidate)
            if candidate.hit.score > known.hit.score:
                merged[candidate.hit.chunk_id] = candidate
    return replace(retrieval, candidates=list(merged.values())[: limits.top_k])


def _lines(text: str) -> list[str]:
    """The questions in a model's reply, without list and quotation marks.

    A line with a citation is an answer; one that ends in a colon introduces the others.
    """
    lines = (_MARK.sub("", line.strip()).strip(" \"'“”*`") for line in text.splitlines())
    usable = (line for line in lines if line and not line.endswith(":") and not MARKER.search(line))
    return [*dict.fromkeys(one_line(line, WORDING_CHARACTERS) for line in usable)]
