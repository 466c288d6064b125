"""The answer to one request, assembled from the chunks of its stream. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from ragchat.llm.reasoning import ReasoningSplitter
from ragchat.types import NOT_REPORTED, ToolRequest, Usage

if TYPE_CHECKING:
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionMessage
    from openai.types.chat.chat_completion_chunk import ChoiceDelta, ChoiceDeltaToolCall

OnText = Callable[[str], None]

# The notice for an incomplete answer, by the finish_reason of the API.
CUT_OFF = {
    "length": "The answer was cut off: the model reached its limit of tokens.",
    "content_filter": "The answer was cut off by the server's content filter.",
}


class Completion(Struct, frozen=True):
    """The answer to one request. `cut_off` is the notice for an incomplete one, "" for a complete one."""

    text: str
    requests: list[ToolRequest]
    usage: Usage
    cut_off: str = ""


class Assembly:
    """Takes the chunks of one stream, and passes on the text and the reasoning as they arrive."""

    def __init__(self, on_text: OnText, on_reasoning: OnText) -> None:
        self.begun = False  # whether `on_text` was called
        self.finish_reason: str | None = None  # None: the answer has not ended
        self._on_text = on_text
        self._on_reasoning = on_reasoning
        self._reasoned = False  # whether `on_reasoning` was called
        self._texts: list[str] = []
        self._splitter = ReasoningSplitter()
        self._calls: dict[int, list[str]] = {}  # index -> id, name, arguments
        self._usage = NOT_REPORTED

    def add(self, chunk: ChatCompletionChunk) -> None:
        if chunk.usage is not None:
            self._usage = _usage(chunk.usage)
        for choice in chunk.choices[:1]:
            self.finish_reason = self.finish_reason or choice.finish_reason
            self._add_text(choice.delta)
            self._add_calls(choice.delta.tool_calls or ())

    def add_whole(self, answer: ChatCompletion) -> None:
        """Take an answer that comes in one piece."""
        if answer.usage is not None:
            self._usage = _usage(answer.usage)
        for choice in answer.choices[:1]:
            self.finish_reason = choice.finish_reason or "stop"
            self._add_text(choice.message)
            for index, call in enumerate(choice.message.tool_calls or ()):
                if call.type == "function":
                    self._calls[index] = [call.id, call.function.name, call.function.arguments]

    @property
    def is_empty(self) -> bool:
        """Whether nothing has arrived: no text, no reasoning, no call, no end."""
        return not (self.begun or self._reasoned or self._calls or self.finish_reason)

    def completion(self) -> Completion:
        """The completion, once the stream has ended."""
        self._say(*self._splitter.finish())
        requests = [
            ToolRequest(id or f"call_{index}", name, arguments)
            for index, (id, name, arguments) in sorted(self._calls.items())
        ]
        cut_off = CUT_OFF.get(self.finish_reason or "", "")
        return Completion("".join(self._texts), requests, self._usage, cut_off)

    def _add_text(self, message: ChoiceDelta | ChatCompletionMessage) -> None:
        # Fields beyond OpenAI's: of DeepSeek, vLLM and llama.cpp; of Ollama and OpenRouter.
        for name in ("reasoning_content", "reasoning"):
            if isinstance(reasoning := getattr(message, name, None), str):
                self._say(reasoning, "")
                break
        self._say(*self._splitter.feed(message.content or ""))

    def _say(self, reasoning: str, text: str) -> None:
        if reasoning:
            self._reasoned = True
            self._on_reasoning(reasoning)
        if text:
            self.begun = True
            self._texts.append(text)
            self._on_text(text)

    def _add_calls(self, calls: Sequence[ChoiceDeltaToolCall]) -> None:
        for call in calls:
            parts = self._calls.setdefault(call.index, ["", "", ""])
            parts[0] = parts[0] or call.id or ""
            if call.function is not None:
                parts[1] = parts[1] or call.function.name or ""
                parts[2] += call.function.arguments or ""


def _usage(usage: CompletionUsage) -> Usage:
    details = usage.prompt_tokens_details
    cached = details.cached_tokens if details is not None else None
    # No prompt and no answer has 0 tokens: some servers report 0 for what they have not counted.
    return Usage(usage.prompt_tokens or None, usage.completion_tokens or None, cached)
