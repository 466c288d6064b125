"""A memory's process spoken to line by line, so that it can be killed between two lines, and what it left."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ragchat.servers.memory.process import TOOLSETS
from ragmcp.protocol.eras import LATEST_MODERN
from ragmcp.protocol.schema.base import Implementation, RequestMeta
from tests.support.forking import python_for
from tests.support.processes import LONGEST_SECONDS, Held, memory_command, memory_environment

MEMORY, INDEX, LOG = "memory.db", "memory.db-index", "memory.log"


class Hung(Exception):
    """A process neither answered nor ended in LONGEST_SECONDS."""


class Ended(Exception):
    """A process ended, by itself or killed, before it answered."""


class Refused(Exception):
    """A tool failed. `code` is its errorCode."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class RawMemory:
    """`process` is a running `ragmemory` on stdio."""

    def __init__(self, process: Held) -> None:
        self.process = process

    def inject(self, name: str) -> None:
        """Send `text_of(name)`; its answer has the name for an id."""
        self.send(name, "Inject", {"text": text_of(name), "metadata": {"uri": name}})

    def send(self, id: str, tool: str, arguments: dict[str, Any]) -> None:
        """A call with a token for progress. Nothing is read."""
        meta = RequestMeta(
            protocol_version=LATEST_MODERN,
            client_info=Implementation(name="tests", version="1"),
            client_capabilities={},
        )
        params = {"name": tool, "arguments": arguments, "_meta": replace(meta, progress_token=id)}
        request = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
        assert self.process.stdin is not None
        self.process.stdin.write(msgspec.json.encode(request) + b"\n")
        self.process.stdin.flush()

    def answers(self) -> Iterator[dict[str, Any]]:
        """All messages until the process ends, also those it sent before it was killed."""
        while (line := self.process.line()).endswith(b"\n"):
            yield msgspec.json.decode(line)

    def results(self, count: int) -> list[str]:
        """The ids of the next `count` results; of fewer, if the process ends before."""
        found = (message["id"] for message in self.answers() if "result" in message)
        return list(islice(found, count))

    def call(self, tool: str, **arguments: Any) -> Any:
        """The structured result of one call. Raises Refused, Hung, Ended."""
        try:
            self.send("call", tool, arguments)
        except BrokenPipeError:
            raise Ended(tool) from None
        for message in self.answers():
            if message.get("id") == "call":
                return result_of(message)
        if self.process.wait(LONGEST_SECONDS) == -signal.SIGKILL:
            raise Hung(tool)  # `Held.line` kills what says nothing
        raise Ended(tool)

    def finds(self, name: str) -> bool:
        """Whether a document sent by `inject` is what a query for its words finds first."""
        hits = self.call("Query", query=f'"finding of report {name} "')["hits"]
        return bool(hits) and hits[0]["uri"] == name

    def kill(self) -> None:
        """End it without a warning, and wait until it has."""
        self.process.kill()
        self.process.wait(LONGEST_SECONDS)

    def end(self) -> None:
        """Close its stdin and wait until it has ended. Raises Hung."""
        try:
            self.process.communicate(timeout=LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            raise Hung("stdin was closed") from None


@contextmanager
def raw_memory(folder: Path, *arguments: str, **variables: str) -> Iterator[RawMemory]:
    """A memory in `folder`/memory.db, unless the arguments name another, killed at the end if it still runs.

    Its log is `folder`/memory.log.
    """
    environ = memory_environment(folder, **variables)
    python = python_for(environ)
    with (folder / LOG).open("ab") as log:
        process = Held(
            memory_command(folder, "--toolsets", TOOLSETS, "--root=*", *arguments, python=python),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environ,
        )
    with process:
        yield RawMemory(process)


def text_of(name: str) -> str:
    """A document that a query for its name finds."""
    return f"# Report {name}\n\nThe finding of report {name} is written down here.\n\n" + "More of it. " * 200


def result_of(message: dict[str, Any]) -> Any:
    """What a tool answered. Raises Refused."""
    if "error" in message:
        error = message["error"]
        raise Refused(error["data"]["errorCode"], error["message"])
    result = message["result"]
    if result.get("isError"):
        raise Refused(result["structuredContent"]["errorCode"], result["content"][0]["text"])
    return result["structuredContent"]


def check_integrity(folder: Path) -> None:
    """What SQLite can tell of the file. Raises AssertionError."""
    with closing(sqlite3.connect(folder / MEMORY)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.execute("INSERT INTO fulltext(fulltext) VALUES('integrity-check')")
