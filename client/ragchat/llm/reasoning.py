"""The thoughts of a reasoning model, taken out of its answer. Pure.

Some local servers send them as the beginning of the answer's own text, between <think> and </think> (Ollama,
llama.cpp and vLLM without a reasoning parser). They are neither shown, nor kept, nor checked for citations.
"""

from __future__ import annotations

BEGIN, END = "<think>", "</think>"


class WithoutThoughts:
    """Feed it the pieces of one answer; what comes back is for the user."""

    def __init__(self) -> None:
        self._held = ""  # what may still turn out to be thoughts
        self._answering = False

    def feed(self, text: str) -> str:
        """The part of the answer that is certain to be one now."""
        if self._answering:
            return text
        self._held += text
        begun = self._held.lstrip()
        if begun.startswith(BEGIN):
            _, end, answer = begun.partition(END)
            return self._answer(answer.lstrip()) if end and answer.strip() else ""
        return "" if BEGIN.startswith(begun) else self._answer(self._held)

    def finish(self) -> str:
        """What was held back and is no thought: the whole of a very short answer."""
        return "" if self._held.lstrip().startswith(BEGIN) else self._held

    def _answer(self, text: str) -> str:
        self._answering, self._held = True, ""
        return text
