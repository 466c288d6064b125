"""Chat completions in OpenAI's protocol: what a request says, and the parts of its answer. Pure.

Source: the types of the package `openai`, `types/chat/`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from msgspec import Struct

from ragchat.answer import Answer
from ragchat.grounding.citations import markers_in
from ragchat.llm.completion import CUT_OFF
from ragchat.sanitize import one_line, sanitize
from ragchat.turn.prompt import packaged_prompt
from ragchat.turn.types import Trace, Turn
from ragchat.web.errors import BadRequest, NotSupported
from ragcommon.text.places import file_name, location

# The configured model, also if that is none.
OWN_MODEL = "ragchat"
# The name of what other programs send, which the user has not typed: tools that change something are refused.
SENDER = "the request of another program"
_NO_TOOLS = "ragchat answers from the user's documents, and calls no tools of other programs"


class Part(Struct, frozen=True):
    type: str
    text: str = ""


class Message(Struct, frozen=True):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None


class StreamOptions(Struct, frozen=True):
    include_usage: bool | None = None


class Asked(Struct, frozen=True):
    """The body of a request. Parameters that are not named here are ignored."""

    model: str
    messages: list[Message]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    store: bool | None = None
    n: int | None = None
    tools: Any = None
    functions: Any = None
    logprobs: Any = None
    audio: Any = None
    response_format: dict[str, Any] | None = None

    def check(self) -> None:
        """Raises NotSupported for a parameter without which the answer would not be what was asked for."""
        wanted = {
            "tools": (self.tools, _NO_TOOLS),
            "functions": (self.functions, _NO_TOOLS),
            "n": (self.n not in (None, 1), "there is one answer to a question"),
            "logprobs": (self.logprobs, "they are not known"),
            "audio": (self.audio, "an answer is text"),
            "response_format": (
                (self.response_format or {}).get("type", "text") != "text",
                "an answer is Markdown with citations",
            ),
        }
        for name, (is_wanted, reason) in wanted.items():
            if is_wanted:
                raise NotSupported(name, reason)


@dataclass(frozen=True)
class Dialogue:
    """The messages of a request: instructions, earlier turns, and the question.

    `instructions` are those of the program, "" if it sends none.
    """

    instructions: str
    turns: list[Turn]
    question: str


def dialogue(messages: Sequence[Message]) -> Dialogue:
    """Raises BadRequest, NotSupported.

    Messages of the user that follow each other are one question: some programs send a text, and then what
    to do with it. What the assistant says before the first question is left out.
    """
    instructions, questions, answers = list[str](), list[str](), list[str]()
    turns: list[Turn] = []
    for number, message in enumerate(messages):
        text = _text(message, f"messages[{number}]")
        match message.role:
            case "user":
                if answers:
                    turns.append(_turn(questions, answers))
                    questions, answers = [], []
                questions.append(text)
            case "assistant":
                answers += [text] if questions and text.strip() else []
            case "system" | "developer":
                instructions.append(text)
            case _:
                raise NotSupported(f"messages[{number}]", _NO_TOOLS)
    if answers or not questions:
        raise BadRequest("the last message is no question of the user")
    told = "\n\n".join(filter(str.strip, instructions))
    template = packaged_prompt("program")
    return Dialogue(template.format(instructions=told) if told else "", turns, "\n\n".join(questions))


def _text(message: Message, name: str) -> str:
    parts = message.content or ""
    if isinstance(parts, str):
        return parts
    for number, part in enumerate(parts):
        if part.type != "text":
            raise NotSupported(f"{name}.content[{number}]", "a question is text")
    return "\n\n".join(part.text for part in parts)


def _turn(questions: Sequence[str], answers: Sequence[str]) -> Turn:
    # Not grounded: another program says that this was the answer.
    answer = Answer("\n\n".join(answers), model=OWN_MODEL, untrusted=[SENDER])
    return Turn("", "", "\n\n".join(questions), answer, {}, "", Trace())


def url_citations(answer: Answer, text: str) -> list[dict[str, Any]]:
    """The annotations of `text`, the answer as it was sent: its citations, but those that quote wrongly."""
    cited = {one.n: one for one in reversed(answer.sources) if one.verified is not False}
    return [
        {
            "type": "url_citation",
            "url_citation": {
                "start_index": marker.start,
                "end_index": marker.end,
                "title": one_line(cited[n].location),
                "url": _url(cited[n].uri, cited[n].start_line, cited[n].end_line),
            },
        }
        for marker in markers_in(text)
        for n in marker.numbers
        if n in cited
    ]


def open_webui_event(answer: Answer) -> dict[str, Any]:
    """The passages as Open WebUI takes sources: [n] is the one with the nth distinct name."""
    rows = {
        one.n: (_url(one.uri, one.start_line, one.end_line), one.location, one.quote)
        for one in answer.sources
    }
    for candidate in answer.candidates:
        if candidate.n:
            hit, lines = candidate.hit, (candidate.hit.start_line, candidate.hit.end_line)
            place = location(file_name(hit.uri, hit.title), [lines], hit.places)
            rows[candidate.n] = _url(hit.uri, *lines), place, hit.text
    listed = sorted(rows.items())
    return {
        "type": "source",
        "data": {
            "source": {"name": OWN_MODEL},
            "document": [sanitize(text) for _, (_, _, text) in listed],
            "metadata": [
                {"source": url, "name": f"[{n}] {one_line(place)}"} for n, (url, place, _) in listed
            ],
        },
    }


def _url(uri: str, first: int, last: int) -> str:
    return f"{one_line(uri)}#L{first}-L{last}"


def usage(answer: Answer) -> dict[str, int]:
    """The tokens of all requests to the model, as its server reports them, or else as estimated."""
    prompt, completion = answer.usage.best
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def finish_reason(turn: Turn) -> str:
    return next((reason for reason, text in CUT_OFF.items() if text in turn.trace.notices), "stop")


def own_fields(turn: Turn) -> dict[str, Any]:
    """What the protocol has no field for."""
    return {
        "grounded": turn.answer.grounded,
        "missing": _clean(turn.answer.missing),
        "notices": _clean(turn.trace.notices),
        "timings": turn.timings,
    }


def _clean(texts: Iterable[str]) -> list[str]:
    return [one_line(text) for text in texts]
