"""The cases and their runs, in the file of past sessions."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ragchat.conversation import Conversation
from ragchat.errors import SessionError, UnknownCase, UnknownTurn
from ragchat.evaluation.cases import Case, Verdict, case_of
from ragchat.evaluation.conditions import conditions
from ragchat.evaluation.runs import Run
from ragchat.sessions.database import Database

# Earlier runs in which the outcome of a case that could not be asked is looked for.
MAX_EARLIER_RUNS = 20


class EvaluationStore:
    """The store in the file of the sessions. Every method raises SessionsUnavailable if it cannot be used."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path)

    async def __aenter__(self) -> EvaluationStore:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._database.aclose()

    async def save_case(self, case: Case) -> None:
        """Save a case, in place of an earlier verdict on the same turn."""
        async with self._database.transaction() as db:
            await db.execute("INSERT OR REPLACE INTO cases VALUES (?, ?)", (case.case_id, _json(case)))

    async def cases(self) -> list[Case]:
        """The saved cases, in the order in which they were judged."""
        rows = await self._database.rows("SELECT record FROM cases ORDER BY rowid")
        return [msgspec.json.decode(row[0], type=Case) for row in rows]

    async def remove_case(self, case_id: str) -> Case:
        """Remove a case by its id or the beginning of it. Raises UnknownCase."""
        found = [case for case in await self.cases() if case_id and case.case_id.startswith(case_id)]
        if len(found) != 1:
            raise UnknownCase(case_id)
        async with self._database.transaction() as db:
            await db.execute("DELETE FROM cases WHERE case_id = ?", (found[0].case_id,))
        return found[0]

    async def save_run(self, run: Run) -> None:
        async with self._database.transaction() as db:
            await db.execute("INSERT INTO runs (script, record) VALUES (?, ?)", (run.script, _json(run)))

    async def last_run(self, script: str = "") -> Run | None:
        """The last run of a script; a case that could not be asked then has the outcome of a run before it.

        Otherwise a case that became worse while its server failed would not be noticed.
        """
        if not (runs := await self.runs(script)) or not runs[0].count("failed"):
            return next(iter(runs), None)
        earlier = reversed(await self.runs(script, MAX_EARLIER_RUNS))
        asked = {one.key: one for run in earlier for one in run.outcomes if not one.failed}
        return replace(runs[0], outcomes=[asked.get(one.key, one) for one in runs[0].outcomes])

    async def runs(self, script: str = "", limit: int = 1) -> list[Run]:
        """The last runs of a script, "" for those of the saved cases, newest first."""
        rows = await self._database.rows(
            "SELECT record FROM runs WHERE script = ? ORDER BY seq DESC LIMIT ?", (script, limit)
        )
        return [msgspec.json.decode(row[0], type=Run) for row in rows]


async def save_verdict(conversation: Conversation, turn_id: str, verdict: Verdict, place: str) -> Case:
    """Save a turn of the conversation as a case, see `case_of`. Raises UnknownTurn, and as `case_of`."""
    turns = conversation.session.turns
    index = next((number for number, turn in enumerate(turns) if turn.turn_id == turn_id), None)
    if index is None:
        raise UnknownTurn(turn_id)
    turn = turns[index]
    with suppress(SessionError):  # It is not saved, and has its passages.
        saved = await conversation.sessions.turn(turn.session_id, turn_id)
        turn = replace(turn, answer=replace(turn.answer, candidates=saved.answer.candidates))
    now = await conditions(conversation, turn.answer.model)
    case = await case_of(turn, turns[:index], verdict, place.strip(), conversation.memory, now)
    async with EvaluationStore(conversation.sessions.path) as store:
        await store.save_case(case)
    return case


def _json(value: Case | Run) -> bytes:
    return msgspec.json.encode(value)
