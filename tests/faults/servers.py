"""Servers of one memory in PostgreSQL, and clients that write to and ask any of them while faults happen."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import count
from math import inf
from pathlib import Path
from random import Random
from threading import Condition, Event
from typing import Any

import httpx2
import psycopg

from ragmemory.stores.postgres.database import SCHEMA
from tests.faults.outcomes import Outcome
from tests.support.http_memory import Host, HttpMemory, host, http_memory
from tests.support.postgres import Postgres, own_postgres
from tests.support.processes import LONGEST_SECONDS, RAGMEMORY
from tests.support.raw_memory import Hung, Refused, result_of, text_of

WRITERS = READERS = 8
# Seconds that a use waits for the lock or for a connection, and until every client has an answer.
BUSY_SECONDS = 3
DEADLINE = 30.0
# What a client may be answered while something fails: it may try again.
CLEAR = {"MEMORY_UNAVAILABLE", "MEMORY_BUSY", "COMMIT_UNKNOWN"}
ASKED = 20


class Cluster:
    """Servers behind no balancer: each request goes to any of `servers`.

    `stored` is the version of each document that was acknowledged last, unless another is on its way.
    """

    def __init__(self, folder: Path, database: Postgres, outcome: Outcome, chance: Random) -> None:
        self.folder, self.database = folder, database
        self.outcome, self.chance = outcome, chance
        self.url = database.url
        self.servers: list[HttpMemory] = []
        self.stored: dict[str, int] = {}
        self.acknowledged = 0
        self.refused: Counter[str] = Counter()
        # Process → until when what it is asked need not be answered.
        self._excused: dict[int, float] = {}
        self._changed = Condition()
        self._is_over = Event()
        self._running = ExitStack()
        # Process → its name in pg_stat_activity.
        self._names: dict[int, str] = {}

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._running.close()

    def stop(self) -> None:
        """Stop all servers, and forget what is stored."""
        self._running.close()
        self.servers, self.stored = [], {}

    def start(self, home: str, schema: str = SCHEMA, **variables: str) -> HttpMemory:
        """Start a server; those with the same `home` share an index. Its log is `home`/http.log."""
        within = self.folder / home
        within.mkdir(exist_ok=True)
        url = f"{self.url}&schema={schema}"
        name = f"server {len(self._names)}"
        server = self._running.enter_context(
            http_memory(
                within,
                *("--toolsets", "memory,documents,history,ingestion,maintenance", "--root=*"),
                command=[*RAGMEMORY, "--memory", url, "http"],
                RAGCHAT_MEMORY_BUSY_SECONDS=str(BUSY_SECONDS),
                RAGCHAT_HTTP_REQUESTS_PER_SECOND="0",
                PGAPPNAME=name,
                **variables,
            )
        )
        self._names[server.process.pid] = name
        return server

    # Faults

    def kill_server(self) -> None:
        """Kill one, and start another in its place."""
        number = self.chance.randrange(len(self.servers))
        killed = self.servers[number]
        self._excused[killed.process.pid] = inf
        killed.process.kill()
        self.servers[number] = self.start(killed.log.parent.name)

    def kill_database(self) -> None:
        """Kill PostgreSQL, and start it again."""
        self.database.kill()
        self.database.start()

    @contextmanager
    def frozen(self, server: HttpMemory) -> Iterator[None]:
        """Stop a server; clients send nothing more to it meanwhile."""
        self._excused[server.process.pid] = inf
        self.servers.remove(server)
        server.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            server.process.send_signal(signal.SIGCONT)
            self._excused[server.process.pid] = time.monotonic()
            self.servers.append(server)

    def is_writing(self, server: HttpMemory) -> bool:
        """Whether PostgreSQL waits for the next statement of a transaction in which a server has written."""
        sql = (
            "SELECT 1 FROM pg_stat_activity WHERE application_name = %s AND state = 'idle in transaction'"
            " AND backend_xid IS NOT NULL"
        )
        with psycopg.connect(self.database.url) as connection:
            return bool(connection.execute(sql, [self._names[server.process.pid]]).fetchall())

    # Clients

    @contextmanager
    def load(self, writers: int = WRITERS, readers: int = READERS) -> Iterator[None]:
        """Writes and questions until the `with` ends. Each write is repeated until it is acknowledged."""
        self._is_over.clear()
        work: list[Callable[[], None]] = [self._read] * readers
        work += [lambda writer=writer: self._write(writer) for writer in range(writers)]  # type: ignore[misc]
        with ThreadPoolExecutor(len(work)) as threads:
            clients = [threads.submit(one) for one in work]
            try:
                yield
            finally:
                self._is_over.set()
        for client in clients:
            client.result()

    def await_stored(self, writes: int, seconds: float = LONGEST_SECONDS) -> None:
        """Wait until so many more writes are acknowledged. Raises Hung."""
        goal = self.acknowledged + writes
        self._await(lambda: self.acknowledged >= goal, seconds, f"{writes} more writes")

    def await_refused(self, code: str) -> None:
        """Wait until one more request is refused with this error. Raises Hung."""
        before = self.refused[code]
        self._await(lambda: self.refused[code] > before, LONGEST_SECONDS, code)

    def _await(self, is_true: Callable[[], bool], seconds: float, what: str) -> None:
        with self._changed:
            if not self._changed.wait_for(is_true, seconds):
                raise Hung(f"{what}: not in {seconds:g} s; refused were {dict(self.refused)}")

    def _write(self, writer: int) -> None:
        chance = Random(self.chance.random())
        names: list[str] = []
        with host("") as speaker:
            for number in count():
                if self._is_over.is_set():
                    return
                if names and chance.random() < 0.3:
                    name = chance.choice(names)
                else:
                    # Not one of an earlier load of this memory.
                    names.append(name := f"w{writer}n{number}t{self.acknowledged}")
                self.store(speaker, name)

    def store(self, speaker: Host, name: str, rest: str = "", server: HttpMemory | None = None) -> None:
        """Write the next version of a document, until it is acknowledged or was refused for long."""
        version = self.stored.pop(name, 0) + 1
        text = text_of(f"{name}v{version}") + rest
        began = time.monotonic()
        while self.ask(speaker, server, "Inject", text=text, metadata={"uri": name}) is None:
            if time.monotonic() - began > 2 * LONGEST_SECONDS:
                self.outcome.hung.append(f"{name}: refused for {2 * LONGEST_SECONDS:g} s")
                return
        with self._changed:
            self.stored[name] = version
            self.acknowledged += 1
            self._changed.notify_all()

    def _read(self) -> None:
        chance = Random(self.chance.random())
        with host("") as speaker:
            while not self._is_over.is_set():
                self._changed.acquire()
                name, version = chance.choice(list(self.stored.items()) or [("none", 0)])
                self._changed.release()
                found = self.ask(speaker, None, "Query", query=question(name, version), top_k=3)
                if found and self.stored.get(name) == version and uris(found)[:1] != [name]:
                    self.outcome.lost.append(f"{name} in version {version} was acknowledged, not found then")

    def ask(self, speaker: Host, server: HttpMemory | None, tool: str, **arguments: Any) -> Any | None:
        """The result of this or any server; None for an error after which a client can try again."""
        server = server or self.chance.choice(self.servers)
        speaker.url = server.url
        began = time.monotonic()
        try:
            return result_of(speaker.request("tools/call", {"name": tool, "arguments": arguments}))
        except Refused as error:
            with self._changed:
                self.refused[error.code] += 1
                self._changed.notify_all()
            if error.code not in CLEAR:
                self.outcome.lost.append(f"{tool} was answered with {error}")
        except httpx2.TransportError as error:
            if began > self._excused.get(server.process.pid, 0):
                self.outcome.lost.append(f"{tool} was not answered: {error!r}")
        finally:
            took = time.monotonic() - began
            if took > DEADLINE and began > self._excused.get(server.process.pid, 0):
                self.outcome.hung.append(f"{tool} was answered after {took:.0f} s")
        return None

    # What is there

    def check(self, schema: str = SCHEMA) -> None:
        """Whether every server, and a new one with a new index, has what was acknowledged, and once."""
        self.servers.append(self.start(f"new{self.acknowledged}", schema))
        names = sorted(self.stored)
        asked = self.chance.sample(names, min(ASKED, len(names)))
        states = []
        for server in self.servers:
            with host(server.url) as speaker:
                there = _pages(speaker, "list_documents", "documents")
                uris_there = Counter(document["uri"] for document in there)
                self.outcome.lost += [
                    f"{name} is there {uris_there[name]} times, {self.stored.get(name)} was acknowledged"
                    for name in sorted(uris_there.keys() | set(names))
                    if uris_there[name] != 1 or name not in self.stored
                ]
                states.append([call(speaker, "Query", query=question(n, self.stored[n])) for n in asked])
        for name, found in zip(asked, states[0], strict=True):
            if uris(found)[:1] != [name]:
                self.outcome.lost.append(f"{name} was acknowledged and is not found")
        for server, state in zip(self.servers, states, strict=True):
            differ = sum(one["hits"] != other["hits"] for one, other in zip(state, states[0], strict=True))
            if differ:
                place = server.log.parent.name
                self.outcome.lost.append(
                    f"{differ} of {len(asked)} answers of {place} are not those of the first"
                )
        with host(self.servers[0].url) as speaker:
            written = Counter(entry["uri"] for entry in _pages(speaker, "list_journal", "entries"))
            self.outcome.lost += [
                f"{name} was written {written[name]} times, acknowledged {version} times"
                for name, version in self.stored.items()
                if written[name] != version
            ]
            if not (verified := call(speaker, "verify_memory"))["ok"]:
                self.outcome.lost.append(f"the memory is damaged: {verified['problems'][:3]}")


def question(name: str, version: int) -> str:
    """What only this version of a document answers."""
    return f'"finding of report {name}v{version} "'


def uris(found: Any) -> list[str]:
    return [hit["uri"] for hit in found["hits"]]


def call(speaker: Host, tool: str, **arguments: Any) -> Any:
    """The result of a call that must not fail. Raises Refused."""
    return result_of(speaker.request("tools/call", {"name": tool, "arguments": arguments}))


def _pages(speaker: Host, tool: str, field: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        page = call(speaker, tool, limit=1_000, max_tokens=1_000_000, cursor=cursor)
        rows += page[field]
        cursor = page.get("next_cursor")
    return rows


@contextmanager
def cluster(folder: Path, campaign: str, chance: Random) -> Iterator[Cluster]:
    """An empty memory without servers."""
    with own_postgres() as database, Cluster(folder, database, Outcome(campaign), chance) as made:
        yield made
