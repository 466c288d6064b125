"""A server on stdio as a real process, and a host that speaks one revision to it, as on the wire."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.forking import python_for
from tests.support.http_memory import MODERN, modern_meta
from tests.support.processes import LONGEST_SECONDS, RAGMEMORY, Held, memory_command, memory_environment


@dataclass
class Stdio:
    """A host that knows stdio only, and the server it has started."""

    process: Held
    log: Path
    modern: bool = True
    last_id: int = 0
    heard: list[str] = field(default_factory=list)

    def send(self, message: dict[str, Any] | bytes) -> None:
        assert self.process.stdin is not None
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        line = self.process.line()
        assert line, self.log.read_text(encoding="utf-8")
        return json.loads(line)

    def ask(self, method: str, **params: Any) -> int:
        """The id of a request that is on its way."""
        self.last_id += 1
        if self.modern:
            params["_meta"] = modern_meta() | params.get("_meta", {})
        self.send({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
        return self.last_id

    def request(self, method: str, **params: Any) -> Any:
        """The answer to a request; what the server says before it is kept in `heard`."""
        id = self.ask(method, **params)
        while (message := self.receive()).get("id") != id:
            self.heard.append(message["method"])
        return message

    def call(self, tool: str, **arguments: Any) -> Any:
        answer = self.request("tools/call", name=tool, arguments=arguments)
        assert "result" in answer, answer
        return answer["result"]

    def begin(self, revision: str) -> Any:
        """The handshake that the revision has, or a discovery."""
        self.modern = revision == MODERN
        if self.modern:
            return self.request("server/discover")["result"]
        client = {"name": "host", "version": "1"}
        begun = self.request("initialize", protocolVersion=revision, clientInfo=client, capabilities={})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return begun["result"]


@contextmanager
def stdio_memory(
    folder: Path, *arguments: str, revision: str = MODERN, cwd: Path | None = None
) -> Iterator[Stdio]:
    """A server of `folder`/memory.db whose host has begun to speak `revision`; its log is `folder`/log.

    With `cwd` it is started there, and the arguments alone say which memory it has.
    """
    log, environ = folder / "log", memory_environment(folder)
    python = python_for(environ)
    with log.open("ab") as stderr:
        process = Held(
            memory_command(folder, *arguments, python=python) if cwd is None else [*RAGMEMORY, *arguments],
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environ,
        )
    with process:
        try:
            speaker = Stdio(process, log)
            speaker.begin(revision)
            yield speaker
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(LONGEST_SECONDS)
