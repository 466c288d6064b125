"""Seconds per case of `ragchat eval`, offline."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from ragchat.conversation import Conversation
from ragchat.evaluation.cases import Case
from ragchat.evaluation.runs import run_cases
from ragchat.scripts.script import Expectation
from tests.benchmarks.report import table
from tests.support.memory import memory_of
from tests.support.turns import no_servers, settings_in

CASES = 50


async def measure() -> tuple[float, int]:
    """The seconds, and how many are right."""
    documents = {
        f"{number}.md": f"# Pump {number}\n\n"
        + "\n\n".join(
            f"The valve {part} of pump {number} opens at {number + part} bar." for part in range(40)
        )
        for number in range(CASES)
    }
    cases = [
        Case(
            f"{number}",
            f"At how many bar does valve 7 of pump {number} open?",
            expect=Expectation(contains=f"{number + 7} bar", cites=f"/{number}.md"),
        )
        for number in range(CASES)
    ]
    with tempfile.TemporaryDirectory() as folder:
        settings = settings_in(Path(folder))
        async with (
            memory_of(Path(folder), documents) as memory,
            Conversation(settings, memory, no_servers(settings), environ={}) as conversation,
        ):
            await conversation.ask("warm up")
            began = time.perf_counter()
            run = await run_cases(conversation, cases, "", None)
            return time.perf_counter() - began, run.count("right")


def run() -> None:
    seconds, right = asyncio.run(measure())
    row = [str(CASES), f"{seconds / CASES * 1e3:.0f}", str(right)]
    table(
        "Saved cases, asked again without a model",
        ["cases", "ms per case", "right"],
        [row],
    )
