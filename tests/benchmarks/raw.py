"""A blocking MCP client of a few lines: the same ruler for every server, with no client's own cost in it."""

from __future__ import annotations

import itertools
import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class RawClient:
    """One server process, spawned at entry; `spawned` is the time of it (perf_counter seconds)."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], *, legacy: bool = False) -> None:
        self.command, self.env, self.legacy = command, env, legacy
        self.ids = itertools.count(1)

    def __enter__(self) -> Self:
        self.spawned = time.perf_counter()
        self.process = subprocess.Popen(
            self.command,
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        if self.legacy:
            client = {"name": "bench", "version": "1"}
            hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
            self.request("initialize", hello)
            self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.process.communicate(timeout=120)

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def begin(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request and return its id; `results` brings what is answered."""
        request_id = next(self.ids)
        params = dict(params or {})
        if not self.legacy:
            params["_meta"] = META
        self._send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        return request_id

    def results(self) -> Iterator[tuple[int, Any]]:
        """The id and result of each answer as it comes. Raises RuntimeError for an error."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            answer = json.loads(line)
            if "id" not in answer or "method" in answer:
                continue
            if "error" in answer:
                raise RuntimeError(answer["error"])
            if answer["result"].get("isError"):
                raise RuntimeError(answer["result"]["content"])
            yield answer["id"], answer["result"]
        raise RuntimeError(f"{self.command} left before it answered")

    def request(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """The result of one request. Raises RuntimeError for an error."""
        request_id = self.begin(method, params)
        return next(result for answered, result in self.results() if answered == request_id)

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """The result of one tool call. Raises RuntimeError when the tool failed."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def peak_mebibytes(self) -> float | None:
        """The server's peak resident memory."""
        return peak_mebibytes(self.process.pid)


def peak_mebibytes(pid: int) -> float | None:
    """A process's peak resident memory, where /proc tells it."""
    return _mebibytes(pid, "VmHWM")


def resident_mebibytes(pid: int) -> float | None:
    """A process's resident memory, where /proc tells it."""
    return _mebibytes(pid, "VmRSS")


def anonymous_mebibytes(pid: int) -> float | None:
    """A process's own memory, without the files that it maps, where /proc tells it."""
    return _mebibytes(pid, "RssAnon")


def _mebibytes(pid: int, field: str) -> float | None:
    try:
        with Path(f"/proc/{pid}/status").open(encoding="utf-8") as status:
            lines = dict(line.split(":", 1) for line in status)
        return int(lines[field].split()[0]) / 1024
    except (OSError, KeyError):  # No such process or no /proc; one that has ended has no memory left.
        return None
