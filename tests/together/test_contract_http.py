"""What other programs may rely on over HTTP: the paths, the fields of the JSON, the names of the metrics."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from ragchat.cli import main
from tests.support.http_memory import HttpMemory, host, http_memory
from tests.support.processes import LONGEST_SECONDS
from tests.support.program import Program, program_in

TOLD = {"url": str, "host": str, "port": int, "authorization": str, "tools": list, "pid": int}
DESCRIBED = {
    "name": str,
    "version": str,
    "endpoints": dict,
    "transports": list,
    "revisions": list,
    "capabilities": dict,
    "tools": list,
    "authorization": str,
}
METRICS = {
    "ragmemory_requests_total",
    "ragmemory_errors_total",
    "ragmemory_request_seconds",
    "ragmemory_sessions",
    "ragmemory_streams",
    "ragmemory_documents",
    "ragmemory_chunks",
    "ragmemory_intake_waiting",
    "ragmemory_follower_lag_seconds",
    "ragmemory_lock_wait_seconds_total",
    "ragmemory_database_connections",
    "ragmemory_database_waiting",
}


@pytest.fixture(scope="module")
def ragchat(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return program_in(tmp_path_factory.mktemp("serve"))


@pytest.fixture(scope="module")
def server(ragchat: Program) -> Iterator[HttpMemory]:
    command = [sys.executable, "-m", "ragchat", "--memory", str(ragchat.folder / "memory.db"), "serve"]
    with http_memory(ragchat.folder, command=command) as server:
        yield server


def types_of(value: dict[str, object]) -> dict[str, type]:
    return {key: type(item) for key, item in value.items()}


def get(url: str, **headers: str) -> httpx2.Response:
    return httpx2.get(url, headers=headers, trust_env=False, timeout=LONGEST_SECONDS)


@pytest.mark.smoke
def test_serve_says_where_it_is_in_one_document(server: HttpMemory) -> None:
    assert types_of(server.told) == TOLD
    assert server.told["pid"] == server.process.pid  # It is the server itself, not a program in front of it.


@pytest.mark.smoke
def test_the_description_has_its_fields(server: HttpMemory) -> None:
    described = get(f"{server.root}/.well-known/mcp").json()
    assert types_of(described) == DESCRIBED
    assert set(described["endpoints"]) == {"mcp", "sse", "messages", "openapi"}


@pytest.mark.smoke
def test_health_has_its_fields(server: HttpMemory) -> None:
    assert set(get(f"{server.root}/health").json()) == {"status", "name", "version"}


def test_the_metrics_have_their_names(server: HttpMemory) -> None:
    text = get(f"{server.root}/metrics").text
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}
    assert names >= METRICS


@pytest.mark.smoke
def test_a_refusal_is_a_json_rpc_error_with_a_word(server: HttpMemory) -> None:
    refused = get(f"{server.root}/metrics", host="evil.example")
    assert (refused.status_code, refused.json()["error"]["data"]["errorCode"]) == (403, "HOST_NOT_ALLOWED")


def test_what_is_served_is_the_memory_of_the_chat(server: HttpMemory, ragchat: Program) -> None:
    memory = str(ragchat.folder / "memory.db")
    with host(server.url) as speaker:
        speaker.call("Inject", text="Foxes jump over dogs.", metadata={"uri": "note:fox"})
        assert ragchat("query", "foxes", "--memory", memory, "--json").json["hits"][0]["uri"] == "note:fox"
        added = ragchat("inject", "-", "--uri", "note:bear", "--memory", memory, stdin="Bears sleep.")
        assert added.code == 0
        assert "note:bear" in speaker.call("Query", query="bears")["content"][0]["text"]


def test_a_port_in_use_is_a_failure_in_words_and_in_json(server: HttpMemory, ragchat: Program) -> None:
    port = str(server.told["port"])
    failed = ragchat("serve", "--port", port)
    assert (failed.code, failed.out) == (1, "")
    assert "address already in use" in failed.err
    assert ragchat("serve", "--port", port, "--json").json["error"]["code"] == "ADDRESS_UNUSABLE"


def test_wrong_usage_is_exit_code_two() -> None:
    for words in (
        ["serve", "--port", "many"],
        ["serve", "--port", "65536"],
        ["mcp", "config", "cline", "--token-file", "x"],
    ):
        assert main(words) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_well(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "ragchat", "serve", "--memory", str(tmp_path / "memory.db")]
    with http_memory(tmp_path, command=command) as server:
        server.process.send_signal(number)
        assert server.process.wait(LONGEST_SECONDS) == 0, server.log.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["claude-code", "vscode", "cline", "cursor"])
def test_a_host_that_speaks_http_is_given_the_address(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "config", name, "--url", "http://127.0.0.1:8765/mcp", "--token-file", "t"]) == 0
    entry = json.loads(capfd.readouterr().out)["servers" if name == "vscode" else "mcpServers"]["ragmemory"]
    assert entry["url"] == "http://127.0.0.1:8765/mcp"
    assert entry["headers"]["Authorization"].startswith("Bearer ")


@pytest.mark.parametrize("url", ["nonsense", "ftp://127.0.0.1/mcp", "http://", "http://127.0.0.1:99999/mcp"])
def test_what_is_no_address_of_a_server_is_wrong_usage(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "config", "cursor", "--url", url]) == 2
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "is not the address of a server" in printed.err


def test_the_root_of_a_server_is_as_good_as_its_endpoint(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "config", "cursor", "--url", "http://127.0.0.1:8765"]) == 0
    servers = json.loads(capfd.readouterr().out)["mcpServers"]
    assert servers["ragmemory"]["url"] == "http://127.0.0.1:8765/mcp"


def test_a_host_that_does_not_is_given_a_bridge_that_runs(server: HttpMemory, ragchat: Program) -> None:
    done = ragchat("mcp", "config", "claude-desktop", "--url", server.url)
    entry = done.json["mcpServers"]["ragmemory"]
    bridged = subprocess.run(
        [entry["command"], *entry["args"]],
        input=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() + b"\n",
        capture_output=True,
        timeout=LONGEST_SECONDS,
        env=ragchat.variables,
        check=True,
    )
    assert json.loads(bridged.stdout)["id"] == 1
