"""A server with named memories, as a real process, and the file that names them."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tests.support.http_memory import MODERN, PLAIN_HTTP, Host, HttpMemory, host, http_memory, modern_meta
from tests.support.processes import LONGEST_SECONDS

RIGHTS = ("read", "write", "admin")
SERVERS_TOKEN = "the-token-of-the-server-itself"


def token_of(memory: str, right: str) -> str:
    return f"secret-for-{memory}-{right}"


@dataclass
class Team:
    """The memories `notes` and `plans` of a server, each with a token for every right; "also" may write."""

    server: HttpMemory
    file: Path
    memories: dict[str, dict[str, Any]] = field(default_factory=dict)

    def write_file(self) -> None:
        write_file(self.file, self.memories)

    def url(self, memory: str = "") -> str:
        return f"{self.server.url}/{memory}".rstrip("/")

    @contextmanager
    def host(self, memory: str, right: str = "write", revision: str = MODERN) -> Iterator[Host]:
        with host(self.url(memory), revision, token_of(memory, right)) as speaker:
            speaker.begin()
            yield speaker

    def get(self, url: str, token: str) -> httpx2.Response:
        return httpx2.get(
            url,
            headers={"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"},
            **PLAIN_HTTP,
        )

    def until_status(self, memory: str, token: str, status: int) -> httpx2.Response:
        """Ask for the tools until the answer has this status: the file is followed once a second."""
        end = time.monotonic() + LONGEST_SECONDS
        with host(self.url(memory), MODERN, token) as speaker:
            while True:
                response = speaker.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
                if response.status_code == status:
                    return response
                assert time.monotonic() < end, response.text

    @property
    def log(self) -> str:
        return self.server.log.read_text(encoding="utf-8")


def write_file(file: Path, memories: dict[str, dict[str, Any]]) -> None:
    """Each memory with its `path` or `url`, and its tokens and their rights under `tokens`."""
    lines = []
    for name, memory in memories.items():
        lines.append(f"[{name}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in memory.items() if key != "tokens"]
        lines.append(f"[{name}.tokens]")
        for number, (token, right) in enumerate(memory["tokens"].items()):
            digest = hashlib.sha256(token.encode()).hexdigest()
            lines.append(f'owner-{number} = {{ right = "{right}", sha256 = "{digest}" }}')
    # As a whole: the server may read it at any time.
    written = file.with_suffix(".new")
    written.write_text("\n".join(lines) + "\n", encoding="utf-8")
    written.replace(file)


def usual_memories(folder: Path) -> dict[str, dict[str, Any]]:
    files = folder / "files"
    files.mkdir(exist_ok=True)
    return {
        name: {
            "path": f"{name}.db",
            "roots": [str(files)],
            "tokens": {token_of(name, right): right for right in RIGHTS} | {token_of(name, "also"): "write"},
        }
        for name in ("notes", "plans")
    }


@contextmanager
def team_memory(
    folder: Path, *arguments: str, memories: dict[str, dict[str, Any]] | None = None, **variables: str
) -> Iterator[Team]:
    """A server of the usual memories, or of these. Terminated at the end."""
    file = folder / "memories.toml"
    memories = usual_memories(folder) if memories is None else memories
    write_file(file, memories)
    usual = {
        "RAGMEMORY_TOKEN": SERVERS_TOKEN,
        "RAGCHAT_HTTP_MEMORIES": str(file),
        # What ends a stream must not wait for a comment on it.
        "RAGCHAT_HTTP_KEEP_ALIVE_SECONDS": "3000",
    }
    variables = usual | variables
    with http_memory(folder, *arguments, **variables) as server:
        yield Team(server, file, memories)


@contextmanager
def listening(speaker: Host, **notifications: Any) -> Iterator[Iterator[str]]:
    """The lines of a stream of changes, after its acknowledgement."""
    params = {"notifications": notifications, "_meta": modern_meta()}
    message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    heads = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN,
        "mcp-method": "subscriptions/listen",
    }
    with speaker.client.stream("POST", speaker.url, json=message, headers=heads) as stream:
        lines = stream.iter_lines()
        assert any("acknowledged" in line for line in lines)
        yield lines
