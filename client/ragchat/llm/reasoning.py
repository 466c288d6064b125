"""Separates the reasoning of a model from its answer. Pure.

Some local servers (Ollama, llama.cpp and vLLM without a reasoning parser) send it at the beginning of the
answer, between <think> and </think>. It is neither saved nor checked, and shown only on request.
"""

from __future__ import annotations

import re
from enum import Enum, auto

BEGIN, END = "<think>", "</think>"
# White space before BEGIN, in characters.
MAX_MARGIN = 1_000


# END where an answer does not quote it.
_BARE_END = re.compile(rf"(?<![`'\"“‘]){END}(?![`'\"”’])")


class _Phase(Enum):
    BEGINNING = auto()  # undecided
    REASONING = auto()
    REASONED = auto()  # before the first word of the answer
    ANSWERING = auto()


def split_whole(text: str) -> tuple[str, str]:
    """The reasoning and the answer, if BEGIN was in the prompt: some chat templates put it there.

    Then only END marks the reasoning, which has already been shown as text.
    """
    end = _BARE_END.search(text)
    if end is None or BEGIN in text[: end.start()]:
        return "", text
    return text[: end.start()], text[end.end() :].lstrip()


class ReasoningSplitter:
    """Splits the text of one answer, which arrives in pieces."""

    def __init__(self) -> None:
        self._phase = _Phase.BEGINNING
        self._buffer = ""

    def feed(self, text: str) -> tuple[str, str]:
        """The reasoning and the answer text that can be told apart by now."""
        self._buffer += text
        reasoning = answer = ""
        if self._phase is _Phase.BEGINNING:
            self._begin()
        if self._phase is _Phase.REASONING:
            reasoning = self._reason()
        if self._phase is _Phase.REASONED:
            self._buffer = self._buffer.lstrip()
            if self._buffer:
                self._phase = _Phase.ANSWERING
        if self._phase is _Phase.ANSWERING:
            answer, self._buffer = self._buffer, ""
        return reasoning, answer

    def finish(self) -> tuple[str, str]:
        """The rest: a very short answer, or reasoning that was cut off."""
        if self._phase is _Phase.REASONING:
            return self._buffer, ""
        return "", self._buffer

    def _begin(self) -> None:
        begun = self._buffer.lstrip()
        if begun.startswith(BEGIN):
            self._phase, self._buffer = _Phase.REASONING, begun.removeprefix(BEGIN)
        elif not BEGIN.startswith(begun) or len(self._buffer) > MAX_MARGIN:
            self._phase = _Phase.ANSWERING

    def _reason(self) -> str:
        reasoning, end, rest = self._buffer.partition(END)
        if end:
            self._phase, self._buffer = _Phase.REASONED, rest
            return reasoning
        # The buffer may end with a part of END.
        held = next(size for size in range(len(END), -1, -1) if reasoning.endswith(END[:size]))
        self._buffer = reasoning[len(reasoning) - held :]
        return reasoning[: len(reasoning) - held]
