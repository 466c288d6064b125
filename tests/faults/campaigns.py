"""All campaigns, and in what number each is tried: in a test run, and for 1,000 faults of a long run."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.faults.damage import database_pages, index_files
from tests.faults.kills import kills, kills_while_closing, several_writers
from tests.faults.loading import kills_while_loading
from tests.faults.outcomes import Outcome
from tests.faults.store import (
    clocks_apart,
    cut_connections,
    faults_in_turn,
    frozen_writers,
    killed_database,
    killed_servers,
    migrations_at_once,
    restored_backups,
    steady_load,
)
from tests.faults.writes import bad_writes, own_files, undo


class Campaign(NamedTuple):
    """`run` takes an empty folder, a number, and where chance comes from.

    The number is `few` with the tests; 0: it does not run with them.
    """

    run: Callable[[Path, int, Random], Outcome]
    few: int
    many: int


CAMPAIGNS = [
    Campaign(kills, 2, 1_000),
    Campaign(kills_while_loading, 2, 200),
    Campaign(several_writers, 1, 50),
    Campaign(kills_while_closing, 2, 100),
    Campaign(index_files, 4, 200),
    Campaign(database_pages, 3, 200),
    Campaign(own_files, 2, 50),
    Campaign(undo, 6, 500),
    Campaign(bad_writes, 7, 1_000),
]
# Those of a memory in PostgreSQL, each of which runs as a whole.
STORE = [
    Campaign(faults_in_turn, 3, 6),
    Campaign(killed_servers, 0, 20),
    Campaign(killed_database, 0, 10),
    Campaign(cut_connections, 0, 60),
    Campaign(frozen_writers, 0, 4),
    Campaign(migrations_at_once, 0, 10),
    Campaign(clocks_apart, 0, 6),
    Campaign(restored_backups, 0, 6),
    Campaign(steady_load, 0, 60),
]


@dataclass(frozen=True)
class Part:
    """A share of a campaign that runs by itself, with its own memories."""

    campaign: Campaign
    count: int
    seed: int


def run_part(part: Part) -> tuple[Outcome, float]:
    """The outcome of a part, and the seconds it took."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        outcome = part.campaign.run(Path(folder), part.count, Random(part.seed))
    return outcome, time.monotonic() - began
