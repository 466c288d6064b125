"""`ragmemory --repository` as an editor starts it: in a folder of a fresh git repository, over stdio."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import LONGEST_SECONDS, RAGMEMORY, memory_environment
from tests.support.stdio_memory import Stdio, stdio_memory

SOURCE = "def brew() -> int:\n    return 75\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A git repository with a source file in a folder."""
    root = tmp_path.resolve() / "project"
    (root / "src").mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    (root / "src" / "tea.py").write_text(SOURCE, "utf-8")
    return root


def found(server: Stdio, tool: str, **arguments: Any) -> Any:
    """What a tool answers that must not fail. Every line of the server's stdout was JSON."""
    result = server.call(tool, **arguments)
    assert not result.get("isError"), result
    return result["structuredContent"]


def build(server: Stdio) -> dict[str, Any]:
    """The job of build_index when it has ended; other requests are answered meanwhile."""
    job: dict[str, Any] = found(server, "build_index")
    while job["status"] == "running":
        assert "result" in server.request("server/discover" if server.modern else "ping")
        [job] = found(server, "index_status", job_id=job["job_id"])["jobs"]
    return job


@pytest.mark.parametrize("folder", [".", "src"])
@pytest.mark.full
def test_a_fresh_repository_is_empty_until_build_index_loads_it(
    tmp_path: Path, root: Path, folder: str
) -> None:
    with stdio_memory(tmp_path, "--repository", revision="2025-11-25", cwd=root / folder) as server:
        query = server.call("Query", query="brew")
        assert (query["structuredContent"]["empty"], query["structuredContent"]["hits"]) == (True, [])
        assert "Call build_index" in query["content"][0]["text"]
        search = found(server, "search_code", query="brew")
        assert search["hits"] == []
        trace = found(server, "trace_symbol", name="brew")
        assert (trace["definitions"], trace["steps"]) == ([], [])
        for notice in (
            search["notice"],
            *trace["notices"],
            *found(server, "get_symbol", name="b")["notices"],
        ):
            assert "Call build_index" in notice
        # Questions leave the repository as it is.
        assert sorted(path.name for path in root.iterdir()) == [".git", "src"]
        job = build(server)
        assert (job["status"], job["sources"], job["added"]) == ("completed", [root.as_uri()], 1)
        assert found(server, "search_code", query="brew")["hits"][0]["location"] == f"{root}/src/tea.py:1"
        assert found(server, "trace_symbol", name="brew")["notices"] == []
        assert not (root / ".gitignore").exists()
        assert (root / ".ragchat" / "memory.db").is_file()
    assert not (tmp_path / "home" / "data").exists()


def test_an_existing_memory_is_opened_and_brought_in_step(tmp_path: Path, root: Path) -> None:
    with stdio_memory(tmp_path, "--repository", cwd=root) as server:
        build(server)
    (root / "src" / "tea.py").rename(root / "src" / "mate.py")
    with stdio_memory(tmp_path, "--repository", cwd=root / "src") as server:
        assert found(server, "Query", query="brew")["hits"][0]["uri"].endswith("src/tea.py")
        job = build(server)
        assert (job["added"], job["removed"]) == (1, 1)


@pytest.mark.full
def test_a_memory_that_another_server_makes_is_used(tmp_path: Path, root: Path) -> None:
    with (
        stdio_memory(tmp_path, "--repository", cwd=root) as first,
        stdio_memory(tmp_path, "--repository", cwd=root) as second,
    ):
        assert found(first, "Query", query="brew")["empty"]
        build(second)
        assert found(first, "Query", query="brew")["hits"]
        first.call("Inject", text="Mate is drunk through a straw.")
        assert found(second, "Query", query="mate straw")["hits"]


@pytest.mark.full
def test_the_settings_of_the_users_own_memory_do_not_concern_it(tmp_path: Path, root: Path) -> None:
    (tmp_path / "home" / "config").mkdir(parents=True)
    elsewhere = tmp_path / "notes"
    elsewhere.mkdir()
    text = f"[memory]\npath = '{tmp_path / 'named.db'}'\nroots = ['{elsewhere}']\n"
    (tmp_path / "home" / "config" / "config.toml").write_text(text, "utf-8")
    with stdio_memory(tmp_path, "--repository", cwd=root) as server:
        assert build(server)["sources"] == [root.as_uri()]
        refused = server.call("build_index", paths=[str(elsewhere)])
        assert refused["structuredContent"]["errorCode"] == "PATH_NOT_ALLOWED"
    assert not (tmp_path / "named.db").exists()


@pytest.mark.full
def test_a_repository_that_may_not_be_written_says_so(tmp_path: Path, root: Path) -> None:
    (root / ".ragchat").symlink_to("nowhere")
    with stdio_memory(tmp_path, "--repository", cwd=root) as server:
        assert found(server, "Query", query="brew")["empty"]
        for refused in (server.call("build_index"), server.call("Inject", text="Tea.")):
            assert refused["isError"]
            assert "No memory can be created for the repository" in refused["content"][0]["text"]
    assert not (root / "nowhere").exists()


def run(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RAGMEMORY, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=memory_environment(tmp_path),
        timeout=LONGEST_SECONDS,
        check=False,
    )


def test_outside_a_repository_it_does_not_start(tmp_path: Path) -> None:
    done = run(tmp_path, "--repository")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"There is no git repository for --repository: {tmp_path} is not in one. "
        "Start the program in a folder of the repository, or name a memory with --memory FILE.\n"
    )


@pytest.mark.parametrize(
    "words", [("--memory", "m.db", "--repository"), ("http", "--memory", "", "--repository")]
)
@pytest.mark.full
def test_it_cannot_be_combined_with_another_memory(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = run(tmp_path, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be combined with --memory" in done.stderr


@pytest.mark.full
def test_without_it_build_index_says_what_to_do(tmp_path: Path, root: Path) -> None:
    with stdio_memory(tmp_path, "--toolsets", "memory,code", cwd=root) as server:
        assert "build_index" not in server.call("Query", query="brew")["content"][0]["text"]
        for words in ({}, {"paths": None}):
            refused = server.call("build_index", **words)
            assert refused["isError"]
            assert "`ragmemory --repository`" in refused["content"][0]["text"]
    assert not (root / ".ragchat").exists()
