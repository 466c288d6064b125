"""Clients of other libraries with our server, each over all its transports and in both eras.

One process for each library walks to all servers; what it saw is looked at here.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import anyio
import pytest

from tests.peers.walk import WALK_SECONDS
from tests.support import mcp_http
from tests.support.http_memory import http_memory
from tests.support.mcp_offers import NOTES, WELCOME
from tests.support.mcp_process import ENV, ROOT, SERVER
from tests.support.peers import PeerName, need, python, running, with_smoke
from tests.support.ports import free_port
from tests.support.processes import memory_command, memory_environment
from tests.support.wire import Recording

PATHS = {"http": "/mcp", "sse": "/sse"}

Seen: TypeAlias = dict[str, Any]


class Case(NamedTuple):
    """Who meets us, and how."""

    peer: PeerName
    transport: str
    mode: str
    memory: str = ""
    """Not the tests' own server, but the real memory."""

    @property
    def name(self) -> str:
        return "-".join(filter(None, self))

    @property
    def modern(self) -> bool:
        return self.mode != "legacy"


# fastmcp has the transports of the SDK 2.x, so that each era on one of them is enough.
CASES = [
    *(Case("mcp1", transport, "legacy") for transport in ("stdio", "http", "sse")),
    *(Case("mcp2", transport, mode) for transport in ("stdio", "http") for mode in ("auto", "legacy")),
    *(Case("mcp2", "http", "2026-07-28"), Case("mcp2", "sse", "legacy")),
    *(
        Case("fastmcp", "stdio", "2026-07-28"),
        Case("fastmcp", "http", "auto"),
        Case("fastmcp", "http", "legacy"),
    ),
]
MEMORY_CASES = [
    *(Case("mcp1", "stdio", "legacy", "memory"), Case("mcp1", "sse", "legacy", "memory")),
    *(Case("mcp2", "stdio", "auto", "memory"), Case("fastmcp", "http", "auto", "memory")),
]
SMOKE = [
    *(Case("mcp1", "http", "legacy"), Case("mcp2", "http", "auto"), Case("fastmcp", "stdio", "2026-07-28")),
    Case("mcp2", "stdio", "auto", "memory"),
]


class Walks:
    """What the clients saw, one library after the other."""

    def __init__(self, folder: Path, roots: dict[str, str], cases: Collection[Case]) -> None:
        """`roots` are those of the servers over HTTP: of the tests' own, and of the memory.

        `cases` are those that some test of this run looks at.
        """
        self._folder = folder
        self._cases = cases
        self._roots = roots
        self._seen: dict[Case, Seen] = {}

    def recording(self, case: Case) -> Recording:
        """What was said meanwhile."""
        return Recording(self._folder / f"{case.name}.messages")

    async def saw(self, case: Case) -> Seen:
        """All that it saw in that case."""
        if case not in self._seen:
            await self._walk([other for other in self._cases if other.peer == case.peer])
        seen = self._seen[case]
        assert "fell" not in seen, seen["fell"]
        return seen

    async def _walk(self, cases: list[Case]) -> None:
        async with AsyncExitStack() as stack:
            targets = [case._asdict() | await self._target(case, stack) for case in cases]
            (peer,) = {case.peer for case in cases}
            command = [python(peer), "-m", f"tests.peers.{peer}_client", json.dumps(targets)]
            env = ENV | memory_environment(self._folder)
            with anyio.fail_after(2 * WALK_SECONDS):
                done = await anyio.run_process(command, check=False, stderr=None, cwd=ROOT, env=env)
        assert done.returncode == 0
        self._seen |= dict(zip(cases, json.loads(done.stdout), strict=True))

    async def _target(self, case: Case, stack: AsyncExitStack) -> dict[str, str | list[str]]:
        recording = self.recording(case)
        if case.transport == "stdio":
            command = memory_command(self._folder) if case.memory else SERVER
            return {"command": recording.command(command), "log": str(self._folder / f"{case.name}.log")}
        root = await stack.enter_async_context(recording.http(self._roots[case.memory]))
        return {"url": root + PATHS[case.transport]}


@pytest.fixture(scope="module")
async def walks(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Walks]:
    tests = [item for item in request.session.items if isinstance(item, pytest.Function)]
    params = [test.callspec.params["case"] for test in tests if "walks" in test.fixturenames]
    cases = sorted({case for case in params if isinstance(case, Case)})
    folder = tmp_path_factory.mktemp("walks")
    with running(mcp_http.COMMAND, folder / "http.log") as root, http_memory(folder) as memory:
        yield Walks(folder, {"": root, "memory": memory.root}, cases)


@pytest.fixture(params=with_smoke(CASES, SMOKE), ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    case: Case = request.param
    need(case.peer)
    return case


@pytest.fixture
async def saw(case: Case, walks: Walks) -> Seen:
    """The whole walk."""
    return await walks.saw(case)


def said(result: Seen) -> str:
    """The text of a tool's result."""
    (content,) = result["content"]
    assert not result["isError"], content
    text: str = content["text"]
    return text


async def test_it_knows_whom_it_has_met(case: Case, saw: Seen) -> None:
    assert saw["revision"] == ("2026-07-28" if case.modern else "2025-11-25")
    if case.mode != "2026-07-28":  # Else it asks for nothing before its first request.
        assert (saw["server"], saw["instructions"]) == ("test-server", "For tests.")


async def test_it_lists_and_calls_tools(saw: Seen) -> None:
    tools = {tool["name"]: tool for tool in saw["tools"]["tools"]}
    assert tools["Add"]["inputSchema"]["required"] == ["a"]
    assert tools["Add"]["outputSchema"]["required"] == ["total"]
    assert saw["added"]["structuredContent"] == {"total": 5}
    assert said(saw["mirrored"]) == "ZürichZürich"


async def test_it_sees_errors(saw: Seen) -> None:
    assert saw["failed"]["isError"]
    assert saw["failed"]["structuredContent"]["errorCode"] == "OUT_OF_LUCK"
    assert saw["refused"]["isError"]
    assert saw["refused"]["structuredContent"]["details"]["path"] == "$.a"
    assert saw["unknown"]["error"]["data"]["errorCode"] == "TOOL_NOT_FOUND"


async def test_a_long_text_goes_there_and_back(saw: Seen) -> None:
    assert saw["large"]


async def test_it_hears_progress_and_calls_at_once(saw: Seen) -> None:
    assert saw["news"] == [[1, 2, "working"], [2, 2, "working"]]
    assert saw["echoes"] == list(range(20))


async def test_it_stops_waiting_and_we_stop_working(case: Case, saw: Seen) -> None:
    assert saw["late"]["error"]["code"] == (408 if case.peer == "mcp1" else -32001)
    if case.peer == "mcp1":
        pytest.skip("the SDK 1.x tells no server that it has stopped waiting")
    assert said(saw["quiet"]) == "quiet"


async def test_it_hears_the_answer_although_its_stream_was_closed(saw: Seen) -> None:
    # Only legacy sessions over HTTP close it; the SDK 1.x and 2.x come back with Last-Event-ID.
    assert said(saw["interrupted"]) == "resumed"


async def test_it_reads_resources(case: Case, saw: Seen) -> None:
    listed = saw["resources"]["resources"] + saw["more resources"]["resources"]
    assert [resource["uri"] for resource in listed] == list(NOTES)
    assert "nextCursor" not in saw["more resources"]
    assert saw["templates"]["resourceTemplates"][0]["uriTemplate"] == "note://named/{name}"
    assert saw["note"]["contents"][0]["text"] == NOTES[WELCOME]
    assert saw["named note"]["contents"][0]["text"] == "about bees"
    assert saw["no note"]["error"]["code"] == (-32602 if case.modern else -32002)


async def test_it_fills_in_prompts(saw: Seen) -> None:
    (prompt,) = saw["prompts"]["prompts"]
    assert [argument["name"] for argument in prompt["arguments"]] == ["topic", "tone"]
    assert saw["prompt"]["messages"][0]["content"]["text"] == "Summarize bees, plain."
    assert saw["prompt without topic"]["error"]["code"] == -32602
    assert saw["completed"]["completion"]["values"] == ["plain", "playful", "poetic"]


async def test_it_can_be_asked(saw: Seen) -> None:
    assert said(saw["asked"]) == "accept: Zoë"
    assert said(saw["thought"]) == "tiny: four"
    assert said(saw["roots"]) == "file:///home/zoe"


async def test_it_hears_log_messages(case: Case, saw: Seen) -> None:
    assert said(saw["logged"]) == "logged"
    # fastmcp wants to hear everything of modern servers; legacy ones decide for themselves.
    everything = case.peer == "fastmcp" and case.modern
    assert [log["level"] for log in saw["logs"]] == ["debug"] * everything + ["info", "error"]


async def test_it_hears_of_changes(saw: Seen) -> None:
    assert said(saw["grown"]) == "grown"
    assert saw["tools changed"]
    assert saw["resource changed"][0] == WELCOME
    assert said(saw["new"]) == "new"


async def test_every_message_fits_the_schema_of_its_revision(case: Case, saw: Seen, walks: Walks) -> None:
    conversation = walks.recording(case).check()
    assert saw["revision"] in conversation.revisions


@pytest.mark.parametrize("case", with_smoke(MEMORY_CASES, SMOKE), ids=lambda case: case.name)
async def test_it_uses_the_memory(case: Case, walks: Walks) -> None:
    need(case.peer)
    saw = await walks.saw(case)
    assert saw["server"] == "ragmemory"
    assert {"Inject", "Query"} <= {tool["name"] for tool in saw["tools"]["tools"]}
    assert said(saw["injected"])
    assert saw["found"]["structuredContent"]["hits"][0]["uri"] == "note:1"
    assert saw["refused"]["structuredContent"]["details"]["path"] == "$.query"
    assert saw["revision"] in walks.recording(case).check().revisions


@pytest.mark.parametrize("peer", ["mcp1", "mcp2"])
async def test_it_comes_back_when_we_have_restarted(peer: PeerName, tmp_path: Path) -> None:
    need(peer)
    cases = [case for case in CASES if case.peer == peer and case.transport != "stdio"]
    log, port = tmp_path / "log", free_port()
    async with AsyncExitStack() as stack:
        stack.enter_context(anyio.fail_after(WALK_SECONDS))
        with running(mcp_http.COMMAND, log, port) as root:
            targets = [case._asdict() | {"url": root + PATHS[case.transport]} for case in cases]
            command = [python(peer), "-m", "tests.peers.restart", peer, json.dumps(targets)]
            process = await anyio.open_process(command, stderr=None, cwd=ROOT, env=ENV)
            await stack.enter_async_context(process)
            assert process.stdin is not None
            assert process.stdout is not None
            assert await process.stdout.receive() == b"met\n"
        with running(mcp_http.COMMAND, log, port):
            await process.stdin.send(b"\n")
            told = b"".join([part async for part in process.stdout])
    for case, saw in zip(cases, json.loads(told), strict=True):
        assert said(saw["before"]) == said(saw["again"]) == "here"
        # None of them begins a new session by itself, but they tell their host that the old one is gone.
        assert said(saw["again"]) == "here" if case.modern else saw["after"]["raised"]
