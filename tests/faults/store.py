"""A memory in PostgreSQL behind several servers, of which one or the other fails while clients use them.

No acknowledged write is lost and none is made twice, every client has an answer or a clear error in time, and
in the end every process finds the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

from anyio.from_thread import start_blocking_portal

from ragmemory.stores.postgres.database import SCHEMA
from tests.faults.outcomes import Outcome
from tests.faults.servers import Cluster, call, cluster
from tests.support.database_proxy import database_proxy
from tests.support.http_memory import HttpMemory, host

CLOCK = Path(__file__).parent / "clock"
HOUR = 3_600
# Servers that make the tables of one memory at once.
MIGRATING = 4
# Of a text that is stored in several transactions.
LONG = "".join(f"## Part {n}\n\nPart {n} is a part of a long text.\n\n" for n in range(2_500))
# Writes that are acknowledged between two faults: everything works again.
BETWEEN = 20
# The server ends the transaction of a program that was frozen or cut off after a minute.
IDLE_SECONDS = 60


def _under_load(
    team: Cluster, count: int, fault: Callable[[int], None], shifts: Sequence[float] = (0, 0, 0)
) -> Outcome:
    """Let `count` faults happen while clients use servers, whose clocks are so many seconds wrong."""
    _start_servers(team, shifts)
    with team.load():
        team.await_stored(BETWEEN)
        for number in range(count):
            with team.outcome.attempt(f"fault {number}"):
                fault(number)
                team.await_stored(BETWEEN)
    return _checked(team)


def _start_servers(team: Cluster, shifts: Sequence[float] = (0, 0, 0)) -> None:
    """Two of one host, which share an index, and one of another."""
    for home, shift in zip(("one", "one", "other"), shifts, strict=True):
        clock = {"PYTHONPATH": str(CLOCK), "CLOCK_SHIFT": str(shift)} if shift else {}
        team.servers.append(team.start(home, **clock))


def _checked(team: Cluster) -> Outcome:
    with team.outcome.attempt("the end"):
        team.check()
    team.outcome.count -= 1  # looking is no attempt
    team.stop()
    return team.outcome


def killed_servers(folder: Path, count: int, chance: Random) -> Outcome:
    """Kill a server in the middle of writes."""
    with cluster(folder, "killed servers", chance) as team:
        return _under_load(team, count, lambda _: team.kill_server())


def killed_database(folder: Path, count: int, chance: Random) -> Outcome:
    """Kill PostgreSQL, and start it again."""
    with cluster(folder, "killed PostgreSQL", chance) as team:
        return _under_load(team, count, lambda _: team.kill_database())


def cut_connections(folder: Path, count: int, chance: Random) -> Outcome:
    """Cut one connection when it commits, before or after PostgreSQL does, or all of them."""
    with (
        cluster(folder, "cut connections", chance) as team,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(database_proxy(team.url)) as proxy,
    ):
        team.url = proxy.url

        def fault(number: int) -> None:
            match number % 3:
                case 0:
                    portal.call(proxy.cut_after, "COMMIT")
                case 1:
                    portal.call(proxy.cut_before, "COMMIT")
                case _:
                    portal.call(proxy.cut)

        return _under_load(team, count, fault)


def frozen_writers(folder: Path, count: int, chance: Random) -> Outcome:
    """Freeze a server that holds the lock of the memory: for a moment, every other time until it loses it."""
    with cluster(folder, "frozen holders of the lock", chance) as team:
        return _under_load(team, count, lambda number: _freeze_writer(team, long=number % 2 == 1))


def _freeze_writer(team: Cluster, *, long: bool = False) -> None:
    is_done = False
    while not is_done:
        server = team.chance.choice(team.servers)
        with team.frozen(server):
            if is_done := team.is_writing(server):
                team.await_refused("MEMORY_BUSY")
                if long:
                    team.await_stored(BETWEEN, 2 * IDLE_SECONDS)


def faults_in_turn(folder: Path, count: int, chance: Random) -> Outcome:
    """Kill a server, kill PostgreSQL, and freeze a server that holds the lock, one after the other."""
    with cluster(folder, "faults in turn", chance) as team:
        faults = (team.kill_server, team.kill_database, lambda: _freeze_writer(team))
        return _under_load(team, count, lambda number: faults[number % len(faults)]())


def clocks_apart(folder: Path, count: int, chance: Random) -> Outcome:
    """Servers whose clocks are an hour apart: in turns, each stores a long document in several steps."""
    with cluster(folder, "clocks an hour apart", chance) as team:

        def fault(number: int) -> None:
            with host("") as speaker:
                team.store(speaker, f"long{number}", LONG, team.servers[number % len(team.servers)])

        return _under_load(team, count, fault, shifts=(-1.01 * HOUR, 0, 1.01 * HOUR))


def restored_backups(folder: Path, count: int, chance: Random) -> Outcome:
    """Restore an older backup under running servers: everywhere, what was written since is gone."""
    with cluster(folder, "restored backups", chance) as team:
        _start_servers(team)
        with team.load():
            team.await_stored(BETWEEN)
        for number in range(count):
            with team.outcome.attempt(f"restore {number}"):
                dump = team.database.run("pg_dump", "-d", team.url, f"--schema={SCHEMA}")
                backup = dict(team.stored)
                with team.load():
                    team.await_stored(BETWEEN)
                team.stored = {}  # what is found meanwhile is either
                with team.load(writers=0):
                    _restore(team, dump)
                team.stored = backup
                with team.load():
                    team.await_stored(BETWEEN)
        return _checked(team)


def _restore(team: Cluster, dump: bytes) -> None:
    drop = f"DROP SCHEMA {SCHEMA} CASCADE;\n".encode()
    options = ("--single-transaction", "--set=ON_ERROR_STOP=1", "--quiet", "-d", team.url)
    team.database.run("psql", *options, stdin=drop + dump)


def migrations_at_once(folder: Path, count: int, chance: Random) -> Outcome:
    """Several servers make the tables of a new memory at once; one is killed meanwhile."""
    with cluster(folder, "migrations at once", chance) as team:
        for number in range(count):
            schema = f"memory{number}"
            with team.outcome.attempt(f"migration {number}"):
                team.servers = [team.start(f"{number}-{n}", schema) for n in range(MIGRATING)]
                with ThreadPoolExecutor(MIGRATING) as threads:
                    answers = [threads.submit(_first_answer, server) for server in team.servers]
                    Event().wait(chance.uniform(0, 0.1))
                    team.servers[0].process.kill()
                if not all(answer.result()["empty"] for answer in answers[1:]):
                    team.outcome.lost.append("a new memory is not empty")
                del team.servers[0]
                with team.load(2, 2):
                    team.await_stored(BETWEEN)
                team.check(schema)
                team.stop()
        return team.outcome


def _first_answer(server: HttpMemory) -> Any:
    with host(server.url) as speaker:
        return call(speaker, "Query", query="anything")


def steady_load(folder: Path, count: int, chance: Random) -> Outcome:
    """Clients use three servers for `count` seconds, and nothing fails."""
    with cluster(folder, "no faults, seconds", chance) as team:
        _start_servers(team)
        with team.load():
            Event().wait(count)
        outcome = _checked(team)
        outcome.count = count
        return outcome
