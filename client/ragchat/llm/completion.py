"""The answer to one request, assembled from the chunks of its stream. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from ragchat.llm import tokens
from ragchat.llm.reasoning import ReasoningSplitter, split_whole
from ragchat.llm.types import NOT_REPORTED, Message, ToolRequest, Usage

if TYPE_CHECKING:
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionMessage
    from openai.types.chat.chat_completion_chunk import ChoiceDelta, ChoiceDeltaToolCall

OnText = Callable[[str], None]

# The maximum characters passed on at once: the screen is drawn in between.
PIECE = 4_096
# The size of a tool call without its arguments.
CALL_CHARACTERS = 100
# The notice for an incomplete answer, by the finish_reason of the API.
CUT_OFF = {
    "length": "The answer was cut off: the model reached its limit of tokens.",
    "content_filter": "The answer was cut off by the server's content filter.",
}
CUT_AT = "The answer was cut off at the limit {setting}."


class Completion(Struct, frozen=True):
    """The answer to one request. `cut_off` is the notice for an incomplete one, "" for a complete one."""

    text: str
    requests: list[ToolRequest]
    usage: Usage
    cut_off: str = ""

    @property
    def message(self) -> Message:
        """The answer as a message of the next prompt."""
        message: Message = {"role": "assistant", "content": self.text}
        if self.requests:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    # Many servers refuse a prompt with malformed arguments.
                    "function": {
                        "name": call.name,
                        "arguments": call.arguments if call.is_readable else "{}",
                    },
                }
                for call in self.requests
            ]
        return message

    def estimated(self, sent: Iterable[Message]) -> Completion:
        """With estimates for what was `sent`, tools included, and for the answer."""
        estimate = Usage(
            estimated_prompt_tokens=tokens.about(sent),
            estimated_completion_tokens=tokens.about([self.message]),
        )
        return replace(self, usage=self.usage + estimate)


class Assembly:
    """Collects the chunks of one stream, and passes on the text and the reasoning as they arrive.

    It accepts `most` characters of text, reasoning and tool calls. `add` and `add_whole` are generators: a
    chunk is consumed step by step.
    """

    def __init__(self, on_text: OnText, on_reasoning: OnText, most: int) -> None:
        self._room = most
        self.begun = False  # whether `on_text` was called
        self.finish_reason: str | None = None  # None: the answer has not ended
        self._on_text = on_text
        self._on_reasoning = on_reasoning
        self._reasoned = False  # whether `on_reasoning` was called
        self._texts: list[str] = []
        self._splitter = ReasoningSplitter()
        self._calls: dict[int, _Call] = {}
        self._usage = NOT_REPORTED

    def add(self, chunk: ChatCompletionChunk) -> Iterator[None]:
        if chunk.usage is not None:
            self._usage = _usage(chunk.usage)
        for choice in chunk.choices[:1]:
            self.finish_reason = self.finish_reason or choice.finish_reason
            yield from self._add_text(choice.delta)
            self._add_calls(choice.delta.tool_calls or ())

    def add_whole(self, answer: ChatCompletion) -> Iterator[None]:
        """Add an answer that was not streamed."""
        if answer.usage is not None:
            self._usage = _usage(answer.usage)
        for choice in answer.choices[:1]:
            self.finish_reason = choice.finish_reason or "stop"
            yield from self._add_text(choice.message)
            for index, call in enumerate(choice.message.tool_calls or ()):
                if call.type == "function":
                    self._add_call(index, call.id, call.function.name, call.function.arguments)

    @property
    def is_full(self) -> bool:
        """Whether more characters have arrived than are accepted."""
        return self._room < 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing has arrived: no text, reasoning, tool call or finish_reason."""
        return not (self.begun or self._reasoned or self._calls or self.finish_reason)

    def completion(self) -> Completion:
        """The completion, once the stream has ended."""
        text = self._finish()
        requests = [
            ToolRequest(call.id or f"call_{index}", call.name, "".join(call.arguments))
            for index, call in sorted(self._calls.items())
        ]
        cut_off = CUT_OFF.get(self.finish_reason or "", "")
        return Completion(text, requests, self._usage, cut_off)

    def cut_off(self, setting: str) -> Completion:
        """The completion of an answer that was cut off at a limit, without tool calls."""
        return Completion(self._finish(), [], self._usage, CUT_AT.format(setting=setting))

    def _finish(self) -> str:
        """Pass on the rest. Returns the whole text."""
        self._say(*self._splitter.finish())
        text = "".join(self._texts)
        if self._reasoned:
            return text
        reasoning, text = split_whole(text)
        self._say(reasoning, "")
        return text

    def _add_text(self, message: ChoiceDelta | ChatCompletionMessage) -> Iterator[None]:
        # Extensions of the API: DeepSeek, vLLM, llama.cpp; Ollama, OpenRouter.
        for name in ("reasoning_content", "reasoning"):
            if isinstance(reasoning := getattr(message, name, None), str):
                for piece in self._accepted(reasoning):
                    self._say(piece, "")
                    yield
                break
        # OpenAI's models decline in a field of its own.
        for piece in self._accepted(message.content or message.refusal or ""):
            self._say(*self._splitter.feed(piece))
            yield

    def _accepted(self, text: str) -> Iterator[str]:
        """As much of a text as still fits, in pieces."""
        accepted = text[: max(0, self._room)]
        self._room -= len(text)
        return (accepted[start : start + PIECE] for start in range(0, len(accepted), PIECE))

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
            function = call.function
            name, arguments = (function.name, function.arguments) if function else ("", "")
            self._add_call(call.index, call.id, name, arguments)

    def _add_call(self, index: int, id: str | None, name: str | None, arguments: str | None) -> None:
        if index not in self._calls:
            self._calls[index] = _Call()
            self._room -= CALL_CHARACTERS
        call = self._calls[index]
        call.id, call.name = call.id or id or "", call.name or name or ""
        call.arguments += self._accepted(arguments or "")


class _Call(Struct):
    """A tool call while it arrives."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


def _usage(usage: CompletionUsage) -> Usage:
    details = usage.prompt_tokens_details
    cached = details.cached_tokens if details is not None else None
    # Some servers report 0 for what they have not counted.
    return Usage(usage.prompt_tokens or None, usage.completion_tokens or None, cached)
