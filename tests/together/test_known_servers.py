"""Servers that others publish, all at once through `ServerManager`, and one by one through the program."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from math import inf
from pathlib import Path
from typing import Any

import anyio
import pytest

from ragchat.servers.managed import ServerState
from ragchat.servers.manager import ServerManager
from ragmcp.client.features import EraName
from tests.support import peers, typescript
from tests.support.mcp_process import spawned
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.program import Program, program_in
from tests.support.servers import managed, tool, write
from tests.support.tavily import TEXT, Tavily, tavily

TEA = "Green tea is brewed at 75 degrees."


def node(package: str, *arguments: str, **env: str) -> dict[str, Any]:
    return {"command": typescript.NODE, "args": [typescript.server(package), *arguments], "env": env}


def python(module: str, *arguments: str) -> dict[str, Any]:
    return {"command": peers.python("servers"), "args": ["-m", module, *arguments]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with one file and one commit."""
    folder = tmp_path_factory.mktemp("repository")
    (folder / "tea.md").write_text(TEA, "utf-8")
    who = ["-c", "user.name=Zoë", "-c", "user.email=zoe@example.org"]
    for words in (["init", "--quiet"], ["add", "tea.md"], [*who, "commit", "--quiet", "-m", "Describe tea"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module")
def web_search(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tavily]:
    with tavily(tmp_path_factory.mktemp("tavily")) as running:
        yield running


@pytest.fixture(scope="module")
def page(folder: Path) -> Iterator[str]:
    """The address of a web server with the files of `folder`."""

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(folder))

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
async def manager(
    folder: Path, web_search: Tavily, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ServerManager]:
    """All of them, each ready."""
    typescript.need()
    peers.need("servers")
    home = tmp_path_factory.mktemp("home")
    write(
        home,
        everything=node("server-everything", "stdio"),
        files=node("server-filesystem", str(folder)),
        graph=node("server-memory", MEMORY_FILE_PATH=str(home / "graph.jsonl")),
        web=node("tavily-mcp", **web_search.environ),
        git=python("mcp_server_git", "--repository", str(folder)),
        fetch=python("mcp_server_fetch", "--ignore-robots-txt", "--allow-private-ips"),
        time=python("mcp_server_time", "--local-timezone", "UTC"),
    )
    with pytest.MonkeyPatch.context() as patch:
        # The server of files takes our root, which is the working directory, in place of its argument.
        patch.chdir(folder)
        async with managed(home, longest=inf) as manager:  # as long as the module
            failures = {name: str(one.failure) for name, one in manager.connections.items() if one.failure}
            assert failures == {}
            yield manager


CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "everything__echo": ({"message": "hello"}, "hello"),
    "files__read_text_file": ({"path": "{folder}/tea.md"}, TEA),
    "graph__create_entities": (
        {"entities": [{"name": "tea", "entityType": "drink", "observations": ["hot"]}]},
        "drink",
    ),
    "web__tavily_search": ({"query": "green tea"}, TEXT),
    "git__git_log": ({"repo_path": "{folder}"}, "Describe tea"),
    "fetch__fetch": ({"url": "{page}/tea.md"}, TEA),
    "time__convert_time": (
        {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
        "21:00",
    ),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_tool_of_each_server_is_called(
    manager: ServerManager, folder: Path, page: str, name: str
) -> None:
    arguments, expected = CALLS[name]
    places = {"{folder}": str(folder), "{page}": page}
    text = json.dumps(arguments)
    for placeholder, place in places.items():
        text = text.replace(placeholder, place)
    result = await tool(manager, name).call(json.loads(text))
    assert (result.ok, expected in result.text) == (True, True), result.text


async def test_an_image_is_kept_as_a_file_that_can_be_opened(manager: ServerManager) -> None:
    result = await tool(manager, "everything__get-tiny-image").call({})
    [url], [note] = result.images, result.notes
    assert url.startswith("data:image/png;base64,")
    assert (await anyio.Path(note.partition("]: ")[2]).read_bytes()).startswith(b"\x89PNG")


async def test_a_search_of_the_web_reaches_the_service(manager: ServerManager, web_search: Tavily) -> None:
    web_search.requests.clear()
    await tool(manager, "web__tavily_search").call({"query": "oolong"})
    [(path, body)] = web_search.requests
    assert (path, body["query"]) == ("/search", "oolong")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("files__read_text_file", {"path": "/etc/passwd"}),
        ("files__read_text_file", {}),
        ("git__git_log", {"repo_path": "/nowhere"}),
        ("fetch__fetch", {"url": "http://127.0.0.1:9/"}),
        ("time__convert_time", {"source_timezone": "Nowhere", "time": "12:00", "target_timezone": "UTC"}),
    ],
)
async def test_a_call_that_fails_says_why(
    manager: ServerManager, name: str, arguments: dict[str, Any]
) -> None:
    result = await tool(manager, name).call(arguments)
    assert not result.ok
    assert len(result.text) > 10


@pytest.mark.parametrize("era", peers.with_smoke(["modern", "legacy"], ["legacy"]))
async def test_a_server_in_python_speaks_both_eras(era: EraName) -> None:
    peers.need("servers")
    async with spawned([peers.python("servers"), "-m", "mcp_server_time"], era=era) as client:
        assert await client.list_tools()
        assert (client.revision >= "2026-07-28") is (era == "modern")


@pytest.fixture
def model() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


@pytest.fixture
def ragchat(tmp_path: Path, model: OpenAIServer) -> Program:
    return program_in(
        tmp_path, OPENAI_BASE_URL=model.base_url, OPENAI_API_KEY="k", RAGCHAT_MODEL_NAME="test-model"
    )


def test_a_published_server_is_added_tested_and_used_by_the_model(
    ragchat: Program, model: OpenAIServer
) -> None:
    typescript.need()
    folder = ragchat.folder
    (folder / "tea.md").write_text(TEA, "utf-8")
    server = node("server-filesystem", str(folder))
    added = ragchat("mcp", "add", "files", "--trusted", "--", server["command"], *server["args"])
    assert added.code == 0
    [tested] = ragchat("mcp", "test", "files", "--json").json["servers"]
    assert tested["state"] == ServerState.READY
    assert "read_text_file" in tested["tools"]
    read = ("files__read_text_file", {"path": str(folder / "tea.md")})
    write_file = ("files__write_file", {"path": str(folder / "new.md"), "content": "x"})
    model.replies[:] = [Reply(tool_calls=[read, write_file]), Reply("At 75 degrees.")]
    assert ragchat("ask", "How hot?").code == 0
    results = [one["content"] for one in model.requests[-1]["messages"] if one["role"] == "tool"]
    assert TEA in results[0]
    assert "permission" in results[1]
    assert not (folder / "new.md").exists()
