"""`make faults`: every campaign, or those named, with FAULTS kills and the others in proportion; one table.

The name `store` is that of all campaigns on a memory in PostgreSQL. Each of the others runs in PARTS, as many
at a time as there are processors. Ctrl-C ends the run early. The same
SEED brings the same damage and the same kills, but not the same race between processes. The memories are in
the temporary folder; with TMPDIR=/dev/shm no time is lost on a slow disk. What a killed process has written
survives there as well.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from tests.benchmarks.report import console, table
from tests.faults.campaigns import CAMPAIGNS, STORE, Part, run_part
from tests.faults.outcomes import Outcome
from tests.support.postgres import MISSING, is_installed

FAULTS = int(os.environ.get("FAULTS", "1000"))
SEED = int(os.environ.get("SEED") or secrets.randbits(32))
PARTS = 8
# Sentences shown of one campaign.
SHOWN = 10


def parts_of(names: list[str]) -> list[Part]:
    """The parts of all campaigns, or of those named: first a part of each, then another of each."""
    parts = [
        Part(campaign, max(1, campaign.many * FAULTS // 1_000), SEED)
        for campaign in STORE
        if not {"store", campaign.run.__name__}.isdisjoint(names)
    ]
    for part in range(PARTS):
        for campaign in CAMPAIGNS:
            if names and campaign.run.__name__ not in names:
                continue
            count = (max(1, campaign.many * FAULTS // 1_000) + part) // PARTS
            if count:
                parts.append(Part(campaign, count, SEED + part))
    return parts


def main(names: list[str]) -> int:
    if "store" in names and not is_installed():
        console.print(f"{MISSING}: there is nothing to test.")
        return 1
    console.print(f"SEED={SEED}")
    # As on a user's machine: without it every process that is killed has compiled our sources again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    totals: dict[str, Outcome] = {}
    seconds: dict[str, float] = defaultdict(float)
    # Not forked: the pool has threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        parts = [pool.submit(run_part, part) for part in parts_of(names)]
        try:
            for part in as_completed(parts):
                outcome, took = part.result()
                seconds[outcome.campaign] += took
                report(outcome)
                total = totals.setdefault(outcome.campaign, Outcome(outcome.campaign))
                total.count += outcome.count
                total.lost += outcome.lost
                total.hung += outcome.hung
        except (KeyboardInterrupt, BrokenProcessPool):  # Ctrl-C: what is finished counts
            pool.shutdown(wait=False, cancel_futures=True)
    table(
        f"{FAULTS:,} faults",
        ["campaign", "count", "lost", "hung", "seconds"],
        [
            [
                one.campaign,
                f"{one.count:,}",
                str(len(one.lost)),
                str(len(one.hung)),
                f"{seconds[one.campaign]:.0f}",
            ]
            for one in totals.values()
        ],
    )
    return 1 if any(one.lost or one.hung for one in totals.values()) else 0


def report(outcome: Outcome) -> None:
    console.print(f"{outcome.campaign}: {outcome.count} done", highlight=False)
    for sentence in [*outcome.hung, *outcome.lost][:SHOWN]:
        console.print(f"  {sentence}", highlight=False, markup=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
