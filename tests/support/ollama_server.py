"""A real HTTP server that speaks Ollama's API, next to OpenAI's: /api/tags, /api/show, /api/pull.

As a program, `python -m tests.support.ollama_server` prints its base URL and serves until its stdin ends.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from tests.support.openai_server import OpenAIServer

MB = 1_000_000
LICENCE = "Apache License\nVersion 2.0, January 2004"
# What Ollama's registry has.
LIBRARY = {"all-minilm:latest": ["embedding"], "qwen3:8b": ["completion"], "big:latest": ["completion"]}


class OllamaServer(OpenAIServer):
    """`has` are the models that it has. A pull of `big` breaks off once, and then goes on where it was."""

    def __init__(self, *has: str, port: int = 0) -> None:
        pages = {"/api/tags": self._tags, "/api/show": self._show, "/api/pull": self._pull}
        super().__init__(models=has, pages=pages, fields={"owned_by": "library"}, port=port)
        self.pulls: list[str] = []
        self.done = 0  # bytes of `big`

    def _tags(self, _: Any) -> dict[str, Any]:
        return {"models": [{"name": name, "size": 46 * MB} for name in self.models]}

    def _show(self, body: dict[str, str]) -> dict[str, Any]:
        return {"license": LICENCE, "capabilities": LIBRARY.get(body["model"], ["completion"])}

    def _pull(self, body: dict[str, str]) -> Iterator[dict[str, Any] | None]:
        name = body["model"] if ":" in body["model"] else f"{body['model']}:latest"
        self.pulls.append(name)
        yield {"status": "pulling manifest"}
        if name not in LIBRARY:
            yield {"error": "pull model manifest: file does not exist"}
            return
        while self.done < 40 * MB:
            yield {"status": "pulling 1", "digest": "sha256:1", "total": 40 * MB, "completed": self.done}
            self.done += 20 * MB
            if name.startswith("big") and len(self.pulls) == 1:
                yield None
        yield {"status": "pulling 2", "digest": "sha256:2", "total": 2 * MB, "completed": 2 * MB}
        yield {"status": "verifying sha256 digest"}
        self.models.append(name)
        yield {"status": "success"}


if __name__ == "__main__":
    with OllamaServer(*sys.argv[2:], port=int(sys.argv[1])) as server:
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        sys.stdin.read()
