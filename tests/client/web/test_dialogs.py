"""Questions to the user while an answer is made: asked, checked, answered once, and ended with their turn."""

from __future__ import annotations

from typing import Any, cast

import anyio
import pytest

from ragchat.conversation import Conversation
from ragchat.web.dialogs import Dialogs, RunningTurn
from ragchat.web.errors import NotAccepted, NotFound


class Page:
    """What a page receives."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.turn = RunningTurn(cast(Conversation, None), self.told.append)

    async def question(self) -> str:
        """The id of the open question."""
        while not self.told:
            await anyio.lowlevel.checkpoint()
        id: str = self.told[-1]["id"]
        return id


def name_of(answer: dict[str, Any]) -> str:
    if not answer.get("name"):
        raise NotAccepted("A name is needed.")
    return str(answer["name"])


async def test_a_question_stays_open_until_an_answer_can_be_used() -> None:
    dialogs, page, found = Dialogs(), Page(), list[str | None]()

    async def ask() -> None:
        found.append(await dialogs.ask(page.turn.tell, "form", {"message": "Who?"}, name_of))

    with dialogs.during(page.turn):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            id = await page.question()
            with pytest.raises(NotAccepted):
                dialogs.answer(id, {})
            dialogs.answer(id, {"name": "Ada"})
            with pytest.raises(NotFound):
                dialogs.answer(id, {"name": "Eve"})
    assert found == ["Ada"]
    assert [one["type"] for one in page.told] == ["dialog", "dialog_closed"]


async def test_a_question_ends_with_its_turn() -> None:
    dialogs, page, found = Dialogs(), Page(), list[str | None]()

    async def ask() -> None:
        found.append(await dialogs.ask(page.turn.tell, "form", {}, name_of))

    async with anyio.create_task_group() as tasks:
        with dialogs.during(page.turn):
            tasks.start_soon(ask)
            await page.question()
    assert found == [None]
    assert await dialogs.ask(page.turn.tell, "form", {}, name_of) is None
