"""Answers judged on the page: verdicts, their runs, and answers whose documents have changed since."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from starlette.requests import Request

from ragchat.evaluation.cases import confirmation
from ragchat.evaluation.judging import Outcome
from ragchat.evaluation.runs import Run, run_cases, sentence
from ragchat.evaluation.stale import Staleness
from ragchat.evaluation.store import EvaluationStore, save_verdict
from ragchat.formatting import local
from ragchat.sanitize import one_line
from ragchat.web.errors import NotFound
from ragchat.web.site import Site, body, route, streamed
from ragchat.web.streaming import Tell

# Runs in the chart.
SHOWN = 30


class Judged(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`place` is the right place as for /good and /bad."""

    verdict: Literal["good", "bad"]
    place: str = ""


async def judge(site: Site, request: Request) -> dict[str, Any]:
    judged = await body(request, Judged)
    async with site.chats.taking_turn(request.path_params["session_id"]) as chat:
        case = await save_verdict(chat, request.path_params["turn_id"], judged.verdict, judged.place)
    return {"said": one_line(confirmation(case), 1_000)}


async def marks(site: Site, request: Request) -> dict[str, Any]:
    """By the ids of the turns `?turns=`: the verdict, and the places that have changed since."""
    id, staleness = request.path_params["session_id"], Staleness(site.memory)
    async with EvaluationStore(site.sessions.path) as store:
        verdicts = {case.case_id: case.verdict for case in await store.cases()}
    found = {}
    for turn_id in filter(None, request.query_params.get("turns", "").split(",")):
        changed = await staleness.places(await site.sessions.turn(id, turn_id))
        found[turn_id] = {"verdict": verdicts.get(turn_id), "changed": changed}
    return found


async def show(site: Site, _: Request) -> dict[str, Any]:
    """The cases, each with its last outcome, and the runs, newest first."""
    async with EvaluationStore(site.sessions.path) as store:
        return await _document(store)


async def _document(store: EvaluationStore) -> dict[str, Any]:
    cases, runs = await store.cases(), await store.runs("", SHOWN)
    outcomes = {one.key: one for one in runs[0].outcomes} if runs else {}
    return {
        "cases": [
            {
                "case_id": case.case_id,
                "question": one_line(case.question),
                "verdict": case.verdict,
                "wanted": one_line(case.wanted),
                "outcome": _outcome(outcomes.get((case.case_id, case.created_at))),
            }
            for case in cases
        ],
        "runs": [_run(run) for run in runs],
    }


def _outcome(outcome: Outcome | None) -> dict[str, Any] | None:
    if outcome is None:
        return None
    failures = [one_line(failure) for failure in outcome.failures]
    return {
        "right": outcome.right,
        "screen": outcome.screen,
        "prompt": outcome.prompt,
        "failures": failures,
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "at": local(run.at),
        "known": run.known,
        "right": run.count("right"),
        "places": run.places,
        "screen": run.count("screen"),
        "model": one_line(run.conditions.model),
        "differs": [one_line(line) for line in run.differs],
        "changes": [one_line(sentence(change), 1_000) for change in run.changes],
    }


async def ask_all(site: Site, tell: Tell) -> None:
    """Ask all cases again: `progress` events, then `done` with what `show` sends."""
    done = 0

    def on_outcome(_: Outcome) -> None:
        nonlocal done
        done += 1
        tell({"type": "progress", "done": done, "total": len(cases)})

    async with (
        EvaluationStore(site.sessions.path) as store,
        site.programs.make() as conversation,  # without other servers, as `ragchat eval` asks
    ):
        cases, last = await store.cases(), await store.last_run()
        if not cases:
            raise NotFound("case yet")
        await store.save_run(await run_cases(conversation, cases, "", last, on_outcome))
        tell({"type": "done", **await _document(store)})


async def remove(site: Site, request: Request) -> dict[str, Any]:
    async with EvaluationStore(site.sessions.path) as store:
        await store.remove_case(request.path_params["case_id"])
        return await _document(store)


ROUTES = (
    route("/api/sessions/{session_id}/turns/{turn_id}/verdict", judge, "POST"),
    route("/api/sessions/{session_id}/marks", marks),
    route("/api/evaluation", show),
    streamed("/api/evaluation/runs", ask_all, "POST"),
    route("/api/evaluation/cases/{case_id}", remove, "DELETE"),
)
