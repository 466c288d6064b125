"""`make faults`: every campaign, or those named, with FAULTS kills and the others in proportion; one table.

The same SEED brings the same damage and the same kills, but not the same race between processes.
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from pathlib import Path
from random import Random

from tests.benchmarks.report import console, table
from tests.faults.campaigns import CAMPAIGNS

FAULTS = int(os.environ.get("FAULTS", "1000"))
SEED = int(os.environ.get("SEED") or secrets.randbits(32))
# Sentences shown of one campaign.
SHOWN = 10


def main(names: list[str]) -> int:
    console.print(f"SEED={SEED}")
    outcomes = []
    for campaign in CAMPAIGNS:
        if not names or campaign.run.__name__ in names:
            with tempfile.TemporaryDirectory() as folder:
                count = max(1, campaign.many * FAULTS // 1_000)
                outcome = campaign.run(Path(folder), count, Random(SEED))
            outcomes.append(outcome)
            console.print(f"{outcome.campaign}: {outcome.count} done", highlight=False)
            for sentence in [*outcome.hung, *outcome.lost][:SHOWN]:
                console.print(f"  {sentence}", highlight=False, markup=False)
    table(
        f"{FAULTS:,} faults",
        ["campaign", "count", "lost", "hung"],
        [[one.campaign, f"{one.count:,}", str(len(one.lost)), str(len(one.hung))] for one in outcomes],
    )
    return 1 if any(one.lost or one.hung for one in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
