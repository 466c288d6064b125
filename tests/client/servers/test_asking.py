"""Real servers that ask, in both eras."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from ragchat.servers.asking import User
from ragchat.servers.connection import LOGS
from ragchat.servers.manager import ServerManager
from ragchat.servers.tools import OfferedTool
from ragconfig.settings import load_settings
from ragmcp.client.features import EraName
from ragmcp.errors import InputDeclined
from ragmcp.protocol.schema.input import Elicit, ElicitResult, Sample, SamplingResult
from ragmcp.stdio import connect
from tests.support.processes import LONGEST_SECONDS
from tests.support.servers import GOOD, write

DECLINED = "The user did not let this server use the model."


ERAS: tuple[EraName | None, ...] = (None, "legacy")


@pytest.fixture(params=ERAS, ids=["modern", "legacy"], autouse=True)
def era(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "open_stdio", partial(connect.open_stdio, era=request.param))


@asynccontextmanager
async def server(home: Path, user: User | None, **flags: float) -> AsyncIterator[dict[str, OfferedTool]]:
    """The tools of a server that may ask `user`, by their own names."""
    write(home, mine=GOOD)
    settings = load_settings(
        flags={f"servers.{name}": value for name, value in flags.items()},
        environ={"RAGCHAT_HOME": str(home)},
        folder=home,
    )
    with anyio.fail_after(LONGEST_SECONDS):
        async with ServerManager(settings) as manager:
            manager.user = user
            manager.start()
            await manager.connections["mine"].wait_started()
            yield {tool.info.name: tool for tool in manager.tools()}


class Ada:
    """Says her name after `wait`; lets no server use her model."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.progress: list[str] = []
        self.begun, self.go_on = anyio.Event(), anyio.Event()
        self.cancelled = anyio.Event()
        self.go_on.set()

    async def elicit(self, server: str, request: Elicit) -> ElicitResult:
        self.asked.append((server, request.message))
        self.begun.set()
        try:
            await self.go_on.wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled.set()
            raise
        return ElicitResult(action="accept", content={"name": "Ada"})

    async def visit(self, _: str, __: Elicit, ___: anyio.Event) -> bool:
        raise NotImplementedError

    async def sample(self, _: str, __: Sample) -> SamplingResult:
        raise InputDeclined(DECLINED)

    @property
    def user(self) -> User:
        return User(self.elicit, self.visit, self.sample, self.progress.append)


async def test_the_user_is_asked_with_the_name_of_the_server(tmp_path: Path) -> None:
    ada = Ada()
    async with server(tmp_path, ada.user) as tools:
        result = await tools["Ask"].call({})
    assert (result.ok, result.text) == (True, "accept: Ada")
    assert ada.asked == [("mine", "What is your name?")]


async def test_a_refusal_to_lend_the_model_is_a_failed_call_with_its_reason(tmp_path: Path) -> None:
    async with server(tmp_path, Ada().user) as tools:
        result = await tools["Think"].call({})
    assert not result.ok
    # A legacy server gets an error, and chooses its own words.
    assert DECLINED in result.text or result.text.startswith("Think failed")


async def test_where_nobody_can_be_asked_the_server_knows_that(tmp_path: Path) -> None:
    async with server(tmp_path, None) as tools:
        for name in ("Ask", "NeedsElicitation", "Think"):
            result = await tools[name].call({})
            assert not result.ok, name
            assert "capability" in result.text


async def test_the_root_is_that_of_the_repository_or_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "my project" / "src"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    async with server(tmp_path, None) as tools:
        assert (await tools["Where"].call({})).text == inner.as_uri()
        (inner.parent / ".git").mkdir()
        assert (await tools["Where"].call({})).text == inner.parent.as_uri()


async def test_a_cancelled_call_takes_its_question_back(tmp_path: Path) -> None:
    ada = Ada()
    ada.go_on = anyio.Event()

    async def ask(tool: OfferedTool) -> None:
        await tool.call({})

    async with server(tmp_path, ada.user) as tools:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, tools["Ask"])
            await ada.begun.wait()
            tasks.cancel_scope.cancel()
        await ada.cancelled.wait()
        assert (await tools["Echo"].call({"text": "still here"})).text == "still here"


async def test_messages_of_a_server_go_to_its_log(tmp_path: Path) -> None:
    async with server(tmp_path, None) as tools:
        await tools["Log"].call({})
        log = (tmp_path / "state" / LOGS / "mine.log").read_text()
    assert 'info tests: {"said":"plainly"}' in log
    assert "error: said aloud" in log
    assert "debug" not in log


async def test_the_progress_of_a_call_is_shown(tmp_path: Path) -> None:
    ada = Ada()
    async with server(tmp_path, ada.user, timeout_seconds=1) as tools:
        assert not (await tools["Wait"].call({"progress": 2})).ok
    assert ada.progress == ["Calling mine Wait: 1 of 2 working", "Calling mine Wait: 2 of 2 working"]
