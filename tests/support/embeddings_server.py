"""A real HTTP server with one endpoint, /v1/embeddings, whose answers follow a script."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.processes import LONGEST_SECONDS


@dataclass
class EmbeddingsServer:
    """`script` holds the statuses of the next answers; after them, every answer is 200.

    `reached` is set by the request that brings the number of texts above `hold_after`; it and all later ones
    wait for `go`.
    """

    url: str = ""
    dimensions: int = 3
    message: str = ""  # of errors
    script: list[int] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    forgets_one: bool = False
    embed: Callable[[str], list[float]] | None = None  # by default, only their first dimension differs
    per_token: bool = False  # a vector for each token, as a server without pooling sends
    hold_after: float = math.inf
    reached: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)

    def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.requests.append(body)
        if sum(len(request["input"]) for request in self.requests) > self.hold_after:
            self.reached.set()
            self.go.wait(LONGEST_SECONDS)
        status = self.script.pop(0) if self.script else 200
        if status != 200:
            return status, {"error": {"message": self.message or f"scripted {status}", "type": "scripted"}}
        embed = self.embed or (lambda text: [float(len(text)), *[1.0] * (self.dimensions - 1)])
        vectors: list[Any] = [embed(text) for text in body["input"]]
        if self.per_token:
            vectors = [[vector] * 4 for vector in vectors]
        rows = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
        # In any order: the index counts.
        rows.reverse()
        return 200, {
            "object": "list",
            "model": body["model"],
            "data": rows[self.forgets_one :],
            "usage": {"prompt_tokens": 1, "total_tokens": 1},
        }


@contextmanager
def embeddings_server() -> Iterator[EmbeddingsServer]:
    told = EmbeddingsServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            told.keys.append(self.headers.get("Authorization", ""))
            status, answer = told.answer(body) if self.path.startswith("/v1/") else (404, {})
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Retry-After-Ms", "1")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    told.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield told
    finally:
        told.go.set()
        server.shutdown()
        server.server_close()
        thread.join()
