"""Runs the official conformance suite against our server and our client: `make conformance`.

`python -m tests.conformance [REVISION…]` checks these revisions alone. By default the modern one is checked
once more, on a copy of ragmcp without its legacy folder. It exits with 1 where a scenario fails that a
revision requires.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio
from msgspec import Struct

from tests.conformance.client import ENDED
from tests.conformance.server import serving
from tests.support.without_legacy import copy_without_legacy

ROOT = Path(__file__).resolve().parents[2]
MODULES = ROOT / ".peers" / "typescript" / "node_modules"
NODE = MODULES / "node" / "bin" / "node"
SUITE = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
CLIENT = f"{sys.executable} -m tests.conformance.turn"

REVISIONS = ("2025-11-25", "2026-07-28")
# Of a client, which waits for its turn.
TIMEOUT_MS = 600_000
# A client may give up where it refuses what it is offered.
GIVES_UP = {
    *("auth/scope-retry-limit", "auth/resource-mismatch", "auth/metadata-issuer-mismatch"),
    *("auth/iss-supported-missing", "auth/iss-wrong-issuer", "auth/iss-unexpected", "auth/iss-normalized"),
    "http-invalid-tool-headers",
}


class Scenario(Struct):
    """One scenario of the suite and how it went."""

    leg: str
    name: str
    reason: str
    """Why the suite does not score it; "" for one that the revision requires."""
    passed: int = 0
    faults: list[str] = []
    skipped: list[str] = []

    @property
    def failed(self) -> bool:
        """Also where nothing could be checked that had to be."""
        return bool(self.faults) or not (self.passed or self.reason)

    @property
    def mark(self) -> str:
        return "✗" if self.failed else "✓" if self.passed else "–"


async def suite(*arguments: str) -> str:
    """What the suite prints."""
    done = await anyio.run_process(
        [str(NODE), str(SUITE), *arguments], check=False, stderr=subprocess.STDOUT, cwd=ROOT
    )
    return done.stdout.decode(errors="replace")


async def scenarios(revision: str) -> list[Scenario]:
    """Everything the suite has for a revision."""
    found, leg, reason = [], "", ""
    for line in (await suite("list", "--requirements", revision)).splitlines():
        if heading := re.match(r"(Server|Client) scenarios", line):
            leg = heading[1].lower()
        elif heading := re.match(r"  (\S+) \(\d+\):", line):
            reason = heading[1]
        elif item := re.match(r" +- (\S+)(?: \[(\w+)\])?", line):
            found.append(Scenario(item[2] or leg, item[1], reason))
    return found


def read(results: Path, scenario: Scenario) -> None:
    """Take in what the suite has written about a scenario."""
    prefix = "server-" if scenario.leg == "server" else ""
    checks = next(results.glob(f"{prefix}{scenario.name}-20*/checks.json"), None)
    if not checks:
        scenario.faults.append("it did not run")
        return
    for check in json.loads(checks.read_text(encoding="utf-8")):
        said = f"{check['status'].lower()} {check['id']}: {check.get('errorMessage') or check['description']}"
        match check["status"]:
            case "SUCCESS":
                scenario.passed += 1
            case "FAILURE" | "WARNING":
                scenario.faults.append(said)
            case "SKIPPED":
                scenario.skipped.append(said)
    if scenario.leg == "server" or scenario.name in GIVES_UP:
        return
    if ENDED not in checks.with_name("stdout.txt").read_text(encoding="utf-8"):
        complaint = checks.with_name("stderr.txt").read_text(encoding="utf-8").splitlines()
        scenario.faults.append(f"our client failed: {complaint[-1] if complaint else 'it timed out'}")


async def run(revision: str) -> list[Scenario]:
    """Both legs of one revision."""
    todo = await scenarios(revision)
    with tempfile.TemporaryDirectory() as folder:
        options = ("--requirements", revision, "--timeout", str(TIMEOUT_MS), "-o", folder)
        async with serving() as url:
            await suite("server", "--url", url, *options)
        await suite("client", "--command", f"{CLIENT} {folder}", *options)
        for scenario in todo:
            read(Path(folder), scenario)
    return todo


def table(revision: str, done: list[Scenario]) -> Iterator[str]:
    """The lines that sum a revision up."""
    for leg in ("server", "client"):
        required = [scenario for scenario in done if scenario.leg == leg and not scenario.reason]
        good = sum(not scenario.failed for scenario in required)
        checks = sum(scenario.passed for scenario in required)
        yield f"{revision}  {leg}  {good} of {len(required)} required scenarios passed, {checks} checks"
    for scenario in done:
        if scenario.failed or scenario.reason:
            scored = f" (not scored: {scenario.reason})" if scenario.reason else ""
            yield f"    {scenario.mark} {scenario.leg} {scenario.name}{scored}"
            yield from (f"        {said[:300]}" for said in scenario.faults or scenario.skipped)


def run_without_legacy() -> int:
    """The exit code of the modern revision on a copy of ragmcp without its legacy folder."""
    print("Without the legacy folder:", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        environment = copy_without_legacy(Path(folder))
        command = [sys.executable, "-m", "tests.conformance", REVISIONS[-1]]
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


async def main(revisions: Sequence[str]) -> int:
    """The exit code."""
    if not SUITE.exists() or not NODE.exists():
        print(
            "The conformance suite is not installed: that needs npm (Node.js); then run `make conformance`."
        )
        return 1
    failed = False
    for revision in revisions:
        done = await run(revision)
        print(*table(revision, done), sep="\n", flush=True)
        failed |= any(scenario.failed and not scenario.reason for scenario in done)
    return int(failed)


if __name__ == "__main__":
    chosen = sys.argv[1:]
    failed = anyio.run(main, chosen or REVISIONS)
    sys.exit(failed or (0 if chosen else run_without_legacy()))
