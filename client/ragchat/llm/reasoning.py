"""Removes the reasoning of a model from its answer. Pure.

Some local servers send it as the beginning of the answer's own text, between <think> and </think> (Ollama,
llama.cpp and vLLM without a reasoning parser). It is neither shown, nor saved, nor checked for citations.
"""

from __future__ import annotations

BEGIN, END = "<think>", "</think>"


class WithoutReasoning:
    """Takes the pieces of one answer and returns those that are for the user."""

    def __init__(self) -> None:
        self._buffer = ""  # may still turn out to be reasoning
        self._answering = False

    def feed(self, text: str) -> str:
        """The part of the answer that is certain by now not to be reasoning."""
        if self._answering:
            return text
        self._buffer += text
        begun = self._buffer.lstrip()
        if begun.startswith(BEGIN):
            _, end, answer = begun.partition(END)
            return self._answer(answer.lstrip()) if end and answer.strip() else ""
        return "" if BEGIN.startswith(begun) else self._answer(self._buffer)

    def finish(self) -> str:
        """The rest of the buffer if it is not reasoning: all of a very short answer."""
        return "" if self._buffer.lstrip().startswith(BEGIN) else self._buffer

    def _answer(self, text: str) -> str:
        self._answering, self._buffer = True, ""
        return text
