"""One memory in SQLite and one in PostgreSQL, in the same run: loading, asking, following, starting.

Asked for by name (`make bench-store`), since it takes minutes; CHUNKS=1000000 makes larger memories. Each
measurement is made of one memory right after the other, so that both see the same machine.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.benchmarks import million
from tests.benchmarks.corpus import questions, write_folder
from tests.benchmarks.load import check, connect, post
from tests.benchmarks.raw import META, MODERN, RawClient, anonymous_mebibytes
from tests.benchmarks.report import console, table
from tests.support.http_memory import HttpMemory, host, http_memory
from tests.support.postgres import MISSING, is_installed, own_postgres
from tests.support.processes import RAGMEMORY

CHUNKS = int(os.environ.get("CHUNKS", "100_000"))
SERVERS, CLIENTS = (1, 2, 4), (1, 32)
CALLS = 320
# Questions that warm a server up.
FIRST = 20
WRITES = 100
STARTS = 3
# What is measured, with its unit → its value.
Figures = dict[str, float]
# What is measured → the goal, for the value or for its ratio to SQLite's.
GOALS = {
    "load, chunks/s": "≥ 0.6 x",
    "Query p50, ms: 1 client, 1 server": "≤ 1.3 x",
    "write found on another server, p99, ms": "≤ 100",
    "start to first Query, s: index saved": "≤ 20 at a million",
}


@dataclass(frozen=True)
class Memory:
    """A memory at `url`; what a server keeps of it is below `folder`."""

    name: str
    url: str
    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def index(self) -> Path:
        """The folder of the saved index."""
        return next(self.folder.rglob("*-index"))

    def client(self) -> RawClient:
        """A server on stdio."""
        return million.memory(self.home, RAGCHAT_MEMORY=self.url)

    @contextmanager
    def servers(self, count: int) -> Iterator[list[HttpMemory]]:
        """Servers on one host, which share an index."""
        command = [*RAGMEMORY, "--memory", self.url, "http"]
        with ExitStack() as running:
            yield [
                running.enter_context(
                    http_memory(self.folder, command=command, RAGCHAT_HTTP_REQUESTS_PER_SECOND="0")
                )
                for _ in range(count)
            ]


def loading(memory: Memory, notes: Path) -> Figures:
    """Inject all files through one server, and end it."""
    with memory.client() as client:
        client.call("Query", {"query": "anything", "top_k": 1})  # the start is not part of the load
        began = time.perf_counter()
        chunks = million.load(client, notes)
        seconds = time.perf_counter() - began
    with memory.client() as client:  # saves the rest of the index
        client.call("Query", {"query": "anything", "top_k": 1})
        size = client.call("get_memory_stats", {})["structuredContent"]["bytes"]
    return {
        "load, chunks/s": chunks / seconds,
        "database, bytes a chunk": size / chunks,
        "index, bytes a chunk": million.mebibytes(memory.index) * 2**20 / chunks,
    }


def asking(memory: Memory) -> Figures:
    """Questions of CLIENTS clients through SERVERS servers."""
    figures: Figures = {}
    for count in SERVERS:
        with memory.servers(count) as servers:
            ports = [int(server.told["port"]) for server in servers]
            for clients in CLIENTS:
                spans = asyncio.run(query_spans(ports, clients))
                what = f"ms: {clients} client{'s'[: clients > 1]}, {count} server{'s'[: count > 1]}"
                figures[f"Query p50, {what}"] = statistics.median(spans) * 1e3
                figures[f"Query p99, {what}"] = statistics.quantiles(spans, n=100)[98] * 1e3
            if count == 1:
                figures["server, own memory, MiB"] = anonymous_mebibytes(servers[0].process.pid) or 0
    return figures


async def query_spans(ports: list[int], clients: int) -> list[float]:
    """Seconds of each of CALLS questions, by clients that take turns with the servers."""
    spans: list[float] = []

    async def work(client: int) -> None:
        port = ports[client % len(ports)]
        connection = await connect(port)
        for number in range(CALLS // clients):
            began = time.perf_counter()
            check(await connection.ask(query_call(port, client + number * clients)))
            spans.append(time.perf_counter() - began)
        connection.transport.close()

    for port in ports:
        connection = await connect(port)
        for number in range(FIRST):
            check(await connection.ask(query_call(port, number)))
        connection.transport.close()
    await asyncio.gather(*map(work, range(clients)))
    return spans


def query_call(port: int, number: int) -> bytes:
    """One of the questions."""
    asked = _questions()
    arguments = {"query": asked[number % len(asked)], "top_k": 8}
    params = {"name": "Query", "arguments": arguments, "_meta": META}
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "Query"}
    return post(port, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, headers)


@cache
def _questions() -> list[str]:
    return questions(CALLS)


def following(memory: Memory) -> Figures:
    """From the acknowledgement of a write by one server to an answer of another that has it."""
    spans = []
    with memory.servers(2) as servers, host(servers[0].url) as writer, host(servers[1].url) as reader:
        for number in range(-FIRST, WRITES):
            word = f"zyx{number % (WRITES + FIRST)}q"
            writer.call("Inject", text=f"The word is {word}.", metadata={"uri": word})
            began = time.perf_counter()
            while word not in reader.call("Query", query=f'"{word}"', top_k=1)["content"][0]["text"]:
                continue
            spans.append(time.perf_counter() - began)
    return {
        "write found on another server, p50, ms": statistics.median(spans[FIRST:]) * 1e3,
        "write found on another server, p99, ms": statistics.quantiles(spans[FIRST:], n=100)[98] * 1e3,
    }


def starting(memory: Memory) -> Figures:
    """From the start of a process to its first answer."""
    saved = [_first_answer(memory) for _ in range(STARTS)]
    shutil.rmtree(memory.index)
    return {
        "start to first Query, s: index saved": statistics.median(saved),
        "start to first Query, s: no index": _first_answer(memory),
    }


def _first_answer(memory: Memory) -> float:
    with memory.client() as client:
        client.call("Query", {"query": "when did the crisis begin", "top_k": 8})
        return time.perf_counter() - client.spawned


MEASUREMENTS: list[Callable[[Memory], Figures]] = [asking, following, starting]


def run() -> None:
    if not is_installed():
        console.print(f"{MISSING}: there is nothing to measure.")
        return
    with tempfile.TemporaryDirectory() as name, own_postgres() as database:
        folder = Path(name)
        notes = folder / "notes"
        notes.mkdir()
        write_folder(notes, -(-CHUNKS // million.CHUNKS_PER_FILE), million.PARAGRAPHS)
        sqlite = Memory("SQLite", str(folder / "sqlite" / "memory.db"), folder / "sqlite")
        memories = [sqlite, Memory("PostgreSQL", database.url, folder / "postgres")]
        figures: list[Figures] = []
        for memory in memories:
            memory.folder.mkdir()
            figures.append(loading(memory, notes))
        for measure in MEASUREMENTS:
            for memory, found in zip(memories, figures, strict=True):
                print(f"{measure.__name__}: {memory.name}", file=sys.stderr)
                found |= measure(memory)
    _report(*figures)


def _report(sqlite: Figures, postgres: Figures) -> None:
    table(
        f"A memory of {CHUNKS:,} chunks",
        ["", "SQLite", "PostgreSQL", "ratio", "goal"],
        [
            [what, _shown(one), _shown(postgres[what]), f"{postgres[what] / one:.2f}", GOALS.get(what, "")]
            for what, one in sqlite.items()
        ],
    )


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
