"""Small Injects while another client loads a big document: how long one of them waits at most.

In three places: the same process, two processes on one file, and two clients of one HTTP server.
"""

from __future__ import annotations

import itertools
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from sys import executable
from typing import NamedTuple

from anyio.from_thread import start_blocking_portal

from tests.benchmarks.corpus import paragraphs
from tests.benchmarks.memory import environment
from tests.benchmarks.raw import RawClient
from tests.benchmarks.report import table
from tests.support.http_memory import Host, host, http_memory
from tests.support.memories import LOCAL, ORIGIN, settings_for
from tests.support.processes import memory_command

MEGABYTES = int(os.environ.get("MEGABYTES", "8"))
BIG_DOCUMENTS = 3
# Small Injects that are measured before anything else happens.
ALONE = 100
GOAL_SECONDS = 0.2

Inject = Callable[[str, str], None]


class Clients(NamedTuple):
    """Two clients of one memory, each a function that injects a text under a uri and waits for the answer."""

    big: Inject
    small: Inject


@contextmanager
def one_process(folder: Path) -> Iterator[Clients]:
    from ragmemory.app import make_service

    settings = settings_for(folder, memory__path=str(folder / "memory.db"))
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(make_service(settings, LOCAL)) as memory,
    ):

        def inject(text: str, uri: str) -> None:
            portal.call(memory.writer.inject, text, {"uri": uri}, ORIGIN)

        yield Clients(inject, inject)


@contextmanager
def two_processes(folder: Path) -> Iterator[Clients]:
    command, variables = [executable, "-m", "ragmemory"], environment(folder)
    with RawClient(command, variables) as one, RawClient(command, variables) as two:

        def inject(client: RawClient) -> Inject:
            return lambda text, uri: client.call("Inject", {"text": text, "metadata": {"uri": uri}})

        yield Clients(inject(one), inject(two))


@contextmanager
def over_http(folder: Path) -> Iterator[Clients]:
    with (
        http_memory(
            folder, command=memory_command(folder, "http"), RAGCHAT_HTTP_REQUESTS_PER_SECOND="0"
        ) as server,
        host(server.url) as one,
        host(server.url) as two,
    ):

        def inject(speaker: Host) -> Inject:
            return lambda text, uri: speaker.call("Inject", text=text, metadata={"uri": uri})

        yield Clients(inject(one), inject(two))


def measure(clients: Clients, big_text: str) -> tuple[list[float], list[float], float]:
    """Seconds of each small Inject alone, of each beside a big one, and of a big one beside them."""
    numbers = itertools.count()

    def small() -> float:
        number = next(numbers)
        began = time.perf_counter()
        clients.small(f"The finding of note {number} is {number * number}.", f"small-{number}")
        return time.perf_counter() - began

    small()
    alone = [small() for _ in range(ALONE)]
    beside: list[float] = []
    took = []
    for number in range(BIG_DOCUMENTS):
        began = time.perf_counter()
        load = threading.Thread(target=clients.big, args=(f"Version {number}.\n\n{big_text}", "big"))
        load.start()
        while load.is_alive():
            beside.append(small())
        took.append(time.perf_counter() - began)
    return alone, beside, statistics.median(took)


def big_document() -> str:
    """MEGABYTES million characters of prose, with a heading every ten paragraphs."""
    parts: list[str] = []
    size = 0
    for number, paragraph in enumerate(paragraphs()):
        part = f"## Part {number // 10}\n\n{paragraph}" if number % 10 == 0 else paragraph
        parts.append(part)
        size += len(part)
        if size >= MEGABYTES * 1_000_000:
            break
    return "\n\n".join(parts)


def run() -> None:
    big_text = big_document()
    rows = []
    for name, opened in (("one process", one_process), ("two processes", two_processes), ("HTTP", over_http)):
        with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as clients:
            alone, beside, seconds = measure(clients, big_text)
        quantiles = statistics.quantiles(beside, n=100, method="inclusive")
        columns = [statistics.median(alone), quantiles[49], quantiles[98], max(beside)]
        rows.append([name, f"{seconds:.1f}", f"{len(beside):,}", *(f"{span * 1e3:.1f}" for span in columns)])
    goal = f"max (goal {GOAL_SECONDS * 1e3:.0f})"
    table(
        f"Small Injects while another client loads {MEGABYTES} MB, ms",
        ["clients in", "big, s", "small ones", "alone p50", "p50", "p99", goal],
        rows,
    )
