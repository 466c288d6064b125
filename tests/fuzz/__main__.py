"""`make fuzz`: every module of this folder in turn, round after round with other examples, for FUZZ_MINUTES.

What fails is printed with a line that runs it again, and kept in .hypothesis: the next run tries it first.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
MINUTES = float(os.environ.get("FUZZ_MINUTES", "10"))
# A round may end so much later than its module's share does; one that still runs then hangs.
GRACE_SECONDS = 600.0


def run_round(module: Path, most_seconds: float) -> str:
    """What one round comes to: "passed", "failed" or "hung"."""
    # Not with a seed of our own: with one, hypothesis keeps no examples.
    command = [sys.executable, "-m", "pytest", "-q", str(module)]
    environ = os.environ | {"RAGCHAT_TEST_PROFILE": "long"}
    try:
        done = subprocess.run(command, env=environ, cwd=HERE.parents[1], timeout=most_seconds, check=False)
    except subprocess.TimeoutExpired:
        return "hung"
    return "passed" if done.returncode == 0 else "failed"


def fuzz(module: Path, seconds: float) -> dict[str, int]:
    """Rounds until the time is up, one at least; the outcomes and how often each came."""
    began = time.monotonic()
    outcomes: dict[str, int] = {}
    while not outcomes or time.monotonic() - began < seconds:
        outcome = run_round(module, seconds + GRACE_SECONDS)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if outcome != "passed":
            break  # the same fault would be found again until the time is up
    return outcomes


def main(names: list[str]) -> int:
    """All modules, or those named."""
    modules = sorted(path for path in HERE.glob("test_*.py") if not names or path.stem in names)
    summary = {module.stem: fuzz(module, MINUTES * 60 / len(modules)) for module in modules}
    for name, outcomes in summary.items():
        counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
        sys.stdout.write(f"{name:20} {counts}\n")
    return 1 if any(set(outcomes) != {"passed"} for outcomes in summary.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
