"""`make fuzz`: the modules of this folder, one after the other, for FUZZ_MINUTES in all.

Every run tries other examples. A failing one is printed and kept in .hypothesis; the next run tries it first.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from tests.benchmarks.report import console, table
from tests.fuzz.report import TestReport, read_reports

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KEPT = ROOT / ".hypothesis" / "examples"
MINUTES = float(os.environ.get("FUZZ_MINUTES", "10"))
# The shortest run of a module: starting Python and a server takes two seconds.
LEAST_SECONDS = 4.0
# An example that began in time may take so much longer: more than the slowest that passes. Then it hangs.
GRACE_SECONDS = 8.0


def run_module(module: Path, seconds: float) -> list[TestReport]:
    """Run the tests of a module once, for so many seconds in all; what they report."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        variables = {
            "TEST_PROFILE": "long",
            "FUZZ_UNTIL": str(time.time() + seconds),
            "FUZZ_REPORT": str(report),
        }
        # Not with a seed of our own: with one, hypothesis keeps no examples.
        # With a folder of our own: pytest would also remove those of earlier runs, which takes time.
        # Without pytest's own limit: a test may take all the time of the run, which ends one that hangs.
        options = ["-q", "-rf", "-o", "faulthandler_timeout=0", f"--basetemp={folder}/tmp"]
        command = [sys.executable, "-m", "pytest", *options, str(module)]
        # In a process group of its own, so that the servers of a module that hangs end with it.
        process = subprocess.Popen(command, env=os.environ | variables, cwd=ROOT, start_new_session=True)
        try:
            process.wait(seconds + GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            stop(process)
        reports = read_reports(report)
    for one in reports:
        if one.state == "running":
            one.state = "failed" if one.error else "hung"
    if process.returncode and all(one.state == "passed" for one in reports):
        name = str(module.relative_to(ROOT))
        reports.append(TestReport(name, "failed", error=f"pytest ended with {process.returncode}"))
    return reports


def stop(process: subprocess.Popen[bytes]) -> None:
    """Show where it is; end it and everything it started."""
    if sys.platform == "win32":
        process.kill()
    else:
        process.send_signal(signal.SIGABRT)  # pytest's fault handler prints the stack of every thread
        with suppress(subprocess.TimeoutExpired):
            process.wait(2)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def fuzz(modules: list[Path], seconds: float) -> dict[str, TestReport]:
    """Run all modules, again and again until the time is up, but not one that has failed."""
    ends = time.monotonic() + seconds
    totals: dict[str, TestReport] = {}
    waiting: list[Path] = []
    while modules or waiting:
        left = ends - time.monotonic()
        if left < LEAST_SECONDS:
            break
        waiting = waiting or [*modules]
        share = max(left / len(waiting), LEAST_SECONDS)
        module = waiting.pop(0)
        reports = run_module(module, share)
        for report in reports:
            add(totals, report)
        if any(report.state != "passed" for report in reports):
            modules.remove(module)
    return totals


def add(totals: dict[str, TestReport], report: TestReport) -> None:
    before = totals.setdefault(report.test, TestReport(report.test))
    before.examples += report.examples
    before.seconds += report.seconds
    before.state, before.error = report.state, report.error


def main(names: list[str]) -> int:
    """All modules, or those named."""
    modules = sorted(path for path in HERE.glob("test_*.py") if not names or path.stem in names)
    before = kept_examples()
    began = time.monotonic()
    totals = fuzz(modules, MINUTES * 60)
    took = time.monotonic() - began
    rows = [
        [one.test.removeprefix("tests/fuzz/test_"), f"{one.examples:,}", f"{one.seconds:.0f}", one.state]
        for one in totals.values()
        if one.examples or one.state != "passed"
    ]
    table(f"fuzzed for {took:.0f} s", ["test", "examples", "seconds", "outcome"], rows)
    failed = [one for one in totals.values() if one.state != "passed"]
    for one in failed:
        say(f"{one.test}: {one.error or one.state}")
        say(f"  TEST_PROFILE=long {Path(sys.executable).name} -m pytest '{one.test}'")
    kept = kept_examples()
    say(f"{len(kept)} failing examples in {KEPT.relative_to(ROOT)}, {len(kept - before)} of them new.")
    return 1 if failed else 0


def say(line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def kept_examples() -> set[Path]:
    """The files in which hypothesis keeps examples that failed; its other files do not count."""
    return {path for path in KEPT.glob("*/*") if path.is_file()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
