"""A real, scripted OpenAI-compatible server on loopback: /v1/models and /v1/chat/completions.

In tests:

    with OpenAIServer([Reply("Forty-two [1]."), Reply(status=429)]) as server:
        … point model.base_url at server.base_url; what came in stands in server.requests …

Each request takes the first rule whose pattern its last user message matches, else the next reply of the
script; an exhausted script repeats its last reply. Requests to put a question in other words are no part of
the script: `server.rewritings` keeps them, and `rewriting` answers them. As a program,
`python -m tests.support.openai_server [SCRIPT.json]` prints its base URL and serves until its stdin ends;
SCRIPT.json holds {"models": […], "replies": [{"text": "…"}, …], "rules": {"pattern": {"text": "…"}}}.
"""

from __future__ import annotations

import json
import re
import socket
import sys
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ragconfig.settings import packaged_text

# No handler may outlive its test, however long the test makes it wait.
LONGEST_WAIT = 30.0
MOST_POURED = 1 << 30

ERRORS: dict[int, tuple[str, str]] = {
    400: ("invalid_request_error", "The request is not valid"),
    401: ("invalid_api_key", "Incorrect API key provided"),
    403: ("permission_denied", "You may not use this model"),
    404: ("model_not_found", "The model does not exist"),
    429: ("rate_limit_exceeded", "Rate limit reached"),
    500: ("server_error", "The server had an error"),
    503: ("overloaded", "The server is overloaded"),
}


@dataclass(frozen=True)
class Reply:
    """One scripted answer.

    `tool_calls` are (name, arguments) pairs. A `status` other than 200 is an error with `code` and `message`.
    `prompt_tokens` is what usage reports (None: counted roughly from the request; -1: no usage at all).
    `whole`: JSON in one piece, even if a stream is requested. `empty`: a stream has no event, and a request
    without streaming gets the next reply. `page` of `content_type` is sent instead of an answer; so is
    `pours`, whose last piece is repeated until the client hangs up. `hangs_up`: the connection is closed
    without an answer; `break_after` so many pieces it is cut. Before each piece from `hold_after` on, `go` is
    waited for.
    """

    text: str = ""
    reasoning: str = ""  # in the field `reasoning_content`
    tool_calls: Sequence[tuple[str, Mapping[str, Any] | str]] = ()
    status: int = 200
    code: str = ""
    message: str = ""
    retry_after: float | None = None
    finish: str = ""  # finish_reason, where it is not the usual one
    prompt_tokens: int | None = None
    whole: bool = False
    empty: bool = False
    page: str = ""
    content_type: str = "text/html"
    pours: Sequence[bytes] = ()
    encoding: str = ""  # the content-encoding of `pours`
    hangs_up: bool = False
    break_after: int | None = None
    hold_after: int | None = None
    go: threading.Event = field(default_factory=threading.Event)
    reached: threading.Event = field(default_factory=threading.Event)  # set when it begins to wait for `go`


CITED = Reply("This is in your documents [1].")
# The system prompts of requests to put a question in other words.
REWRITING = [packaged_text(f"prompts/{name}.md").strip() for name in ("rewrite", "standalone")]


class OpenAIServer:
    """Serves from entering to leaving, on a port of its own.

    `models` are what /v1/models lists and chat accepts (empty: any is accepted). `key`: others get 401.
    `context_tokens`: a longer prompt gets 400 context_length_exceeded. `stream_options=False`: a request that
    carries them gets 400, as some servers do. `page`: HTML in place of the list of models; `pours` as for
    `Reply`. `hangs_up`: the connection is closed on a prompt that is too long. `fields` are added to each
    listed model; `pages` are JSON at paths outside of the API, or its bytes, or functions from the body of a
    request to JSON, or to an iterator of lines.
    """

    def __init__(
        self,
        replies: Sequence[Reply] = (CITED,),
        *,
        rules: Mapping[str, Reply] | None = None,
        rewriting: Reply = CITED,  # what cites is no wording: nothing more is searched for
        models: Sequence[str] = ("test-model",),
        key: str | None = None,
        context_tokens: int | None = None,
        stream_options: bool = True,
        page: str = "",
        pours: Sequence[bytes] = (),
        hangs_up: bool = False,
        fields: Mapping[str, Any] | None = None,
        pages: Mapping[str, Any] | None = None,
        port: int = 0,
    ) -> None:
        self.replies = list(replies)
        self.rules = {re.compile(pattern, re.IGNORECASE): reply for pattern, reply in (rules or {}).items()}
        self.rewriting = rewriting
        self.models = list(models)
        self.key = key
        self.context_tokens = context_tokens
        self.stream_options = stream_options
        self.page = page
        self.pours = pours
        self.hangs_up = hangs_up
        self.fields = dict(fields or {})
        self.pages = dict(pages or {})
        self.requests: list[dict[str, Any]] = []  # the bodies of the scripted requests
        self.rewritings: list[dict[str, Any]] = []  # and those of the others
        self.embedded = 0  # texts
        self.poured = 0  # bytes of `pours` that clients took
        self.connections = 0
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._http = _Server(("127.0.0.1", port), _Handler, self)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        for reply in [*self.replies, *self.rules.values()]:
            reply.go.set()
        self._http.shutdown()
        self._http.server_close()

    def reply_to(self, body: dict[str, Any]) -> Reply:
        """Record a request and choose its answer."""
        with self._lock:
            if body["messages"][0]["content"] in REWRITING:
                self.rewritings.append(body)
                return self.rewriting
            self.requests.append(body)
            if refusal := self._refusal(body):
                return refusal
            asked = last_user_text(body)
            for pattern, reply in self.rules.items():
                if pattern.search(asked):
                    return reply
            return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    def _refusal(self, body: dict[str, Any]) -> Reply | None:
        if self.models and body["model"] not in self.models:
            return Reply(
                status=404, code="model_not_found", message=f"The model `{body['model']}` does not exist"
            )
        if "stream_options" in body and not self.stream_options:
            return Reply(status=400, message="Unrecognized request argument supplied: stream_options")
        if self.context_tokens is not None and rough_tokens(body) > self.context_tokens:
            if self.hangs_up:
                return Reply(hangs_up=True)
            message = f"This model's maximum context length is {self.context_tokens} tokens"
            return Reply(status=400, code="context_length_exceeded", message=message)
        return None


def bag_of_words(text: str, dimensions: int = 64) -> list[float]:
    """A vector that is like those of texts with the same words."""
    vector = [0.0] * dimensions
    for word in re.findall(r"\w+", text.lower()):
        vector[zlib.crc32(word.encode()) % dimensions] += 1.0
    return vector


def last_user_text(body: Mapping[str, Any]) -> str:
    """The question: the last message of the user, without the passages quoted before it."""
    text = next((str(m["content"]) for m in reversed(body["messages"]) if m["role"] == "user"), "")
    return re.split(r"</passage \d+ \w+>", text)[-1].strip()


def rough_tokens(body: Mapping[str, Any]) -> int:
    """A quarter of the characters of the messages."""
    return sum(len(str(message.get("content") or "")) for message in body["messages"]) // 4


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], script: OpenAIServer):
        self.script = script
        super().__init__(address, handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        self.script.connections += 1
        return super().get_request()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: stderr belongs to the program under test."""

    def do_GET(self) -> None:
        script = self.server.script
        if self._is_elsewhere() or self._unauthorised():
            return
        if script.pours:
            self._pour(Reply(pours=script.pours, content_type="application/json"))
        elif script.page:
            self._send(200, "text/html", script.page.encode())
        else:
            listed = [{"id": name, "object": "model", **script.fields} for name in script.models]
            self._json(200, {"object": "list", "data": listed})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._is_elsewhere(body) or self._unauthorised():
            return
        if self.path == "/v1/embeddings":
            self.server.script.embedded += len(body["input"])
            rows = [{"index": n, "embedding": bag_of_words(text)} for n, text in enumerate(body["input"])]
            self._json(200, {"object": "list", "model": body["model"], "data": rows})
            return
        reply = self.server.script.reply_to(body)
        if reply.hangs_up:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif reply.pours:
            self._pour(reply)
        elif reply.status != 200:
            self._error(reply)
        elif reply.page:
            self._send(200, reply.content_type, reply.page.encode())
        elif body.get("stream") and not reply.whole:
            self._stream(body, reply)
        else:
            self._whole(body, reply)

    def _is_elsewhere(self, body: Any = None) -> bool:
        """Whether a request is for a path outside of the API, and has got the usual answer."""
        if self.path.startswith("/v1/"):
            return False
        page = self.server.script.pages.get(self.path)
        if callable(page):
            page = page(body)
        if isinstance(page, Iterator):
            self._lines(page)
        elif isinstance(page, bytes):
            self._send(200, "application/json", page)
        elif page is not None:
            self._json(200, page)
        else:
            self._json(404, {"detail": "Not Found"})
        return True

    def _lines(self, lines: Iterator[Any]) -> None:
        """JSON in lines, as Ollama streams; the connection ends without an end after None."""
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in lines:
            if line is None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self._chunk(json.dumps(line).encode() + b"\n")
        self._chunk(b"")

    def _unauthorised(self) -> bool:
        key = self.server.script.key
        if key is None or self.headers.get("Authorization") == f"Bearer {key}":
            return False
        self._error(Reply(status=401))
        return True

    def _error(self, reply: Reply) -> None:
        code, message = ERRORS.get(reply.status, ("error", "An error"))
        code = reply.code or code
        error = {"message": reply.message or message, "type": code, "code": code, "param": None}
        headers = {} if reply.retry_after is None else {"Retry-After": f"{reply.retry_after:g}"}
        self._json(reply.status, {"error": error}, headers)

    def _json(self, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
        self._send(status, "application/json", json.dumps(value).encode(), headers)

    def _send(
        self, status: int, content_type: str, data: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def _whole(self, body: dict[str, Any], reply: Reply) -> None:
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
        if reply.reasoning:
            message["reasoning_content"] = reply.reasoning
        if reply.tool_calls:
            message["tool_calls"] = tool_calls(reply)
        choice = {"index": 0, "message": message, "finish_reason": finish_reason(reply)}
        counted = {} if reply.prompt_tokens == -1 else {"usage": usage(body, reply)}
        self._json(200, envelope(body, "chat.completion") | {"choices": [choice]} | counted)

    def _stream(self, body: dict[str, Any], reply: Reply) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if reply.empty:
            self._chunk(b"")
            return
        for number, delta in enumerate(deltas(reply)):
            if reply.hold_after is not None and number >= reply.hold_after:
                reply.reached.set()
                reply.go.wait(LONGEST_WAIT)
            if reply.break_after == number:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self._event(body, {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        self._event(body, {"choices": [{"index": 0, "delta": {}, "finish_reason": finish_reason(reply)}]})
        if (body.get("stream_options") or {}).get("include_usage") and reply.prompt_tokens != -1:
            self._event(body, {"choices": [], "usage": usage(body, reply)})
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _pour(self, reply: Reply) -> None:
        script = self.server.script
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Transfer-Encoding", "chunked")
        if reply.encoding:
            self.send_header("Content-Encoding", reply.encoding)
        self.end_headers()
        for data in chain(reply.pours, repeat(reply.pours[-1])):
            if script.stopping.is_set() or script.poured > MOST_POURED:
                break
            self._chunk(data)
            script.poured += len(data)
        self.close_connection = True

    def _event(self, body: dict[str, Any], part: dict[str, Any]) -> None:
        self._chunk(b"data: " + json.dumps(envelope(body, "chat.completion.chunk") | part).encode() + b"\n\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()


def deltas(reply: Reply) -> Iterator[dict[str, Any]]:
    """The pieces of a streamed answer: word by word, tool calls with their arguments in two halves."""
    yield {"role": "assistant", "content": ""}
    for piece in pieces(reply.reasoning):
        yield {"reasoning_content": piece}
    for piece in pieces(reply.text):
        yield {"content": piece}
    for index, call in enumerate(tool_calls(reply)):
        function = call["function"]
        text, half = function["arguments"], len(function["arguments"]) // 2
        first = {"name": function["name"], "arguments": text[:half]}
        yield {"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": first}]}
        yield {"tool_calls": [{"index": index, "function": {"arguments": text[half:]}}]}


def poured(**delta: Any) -> bytes:
    """An event with this delta, for `Reply.pours`."""
    chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def pieces(text: str) -> list[str]:
    return re.findall(r"\s*\S+\s*$|\s*\S+", text)


def tool_calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
            },
        }
        for number, (name, arguments) in enumerate(reply.tool_calls)
    ]


def envelope(body: dict[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 0, "model": body["model"]}


def finish_reason(reply: Reply) -> str:
    return reply.finish or ("tool_calls" if reply.tool_calls else "stop")


def usage(body: dict[str, Any], reply: Reply) -> dict[str, int]:
    prompt = rough_tokens(body) if reply.prompt_tokens is None else reply.prompt_tokens
    completion = len(reply.text) // 4 + 1
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def from_script(script: Mapping[str, Any]) -> OpenAIServer:
    """The server that a script's JSON describes."""
    replies = [Reply(**reply) for reply in script.get("replies", [])] or [CITED]
    rules = {pattern: Reply(**reply) for pattern, reply in script.get("rules", {}).items()}
    return OpenAIServer(replies, rules=rules, models=script.get("models", ["test-model"]))


if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with from_script(json.loads(path.read_text(encoding="utf-8")) if path else {}) as running:
        sys.stdout.write(running.base_url + "\n")
        sys.stdout.flush()
        sys.stdin.read()
