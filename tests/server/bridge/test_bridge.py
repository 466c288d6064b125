"""The bridge between stdio and a server over HTTP.

Covers `host` and `serving`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path

import anyio
import pytest

from ragmcp.errors import RagMcpError
from ragmcp.http.client import open_client
from ragmcp.protocol.eras import LEGACY_REVISIONS
from ragmemory.bridge.host import Bridge
from ragmemory.bridge.serving import Spawned
from tests.support.http_memory import MODERN, HttpMemory, http_memory, modern_meta
from tests.support.in_memory import memory_pair
from tests.support.peers import with_smoke
from tests.support.ports import free_port
from tests.support.processes import LONGEST_SECONDS, Held, memory_command, memory_environment, run_memory
from tests.support.stdio_memory import Stdio


def bridge_command(folder: Path, url: str, *arguments: str, patience: float = LONGEST_SECONDS) -> list[str]:
    """A bridge that waits `patience` seconds for a server; usually as long as one may take to start."""
    python, _, _, *words = memory_command(folder, "bridge", url, *arguments)
    set_patience = f"from ragmemory.bridge import host; host.RETRY_SECONDS = {patience}"
    return [python, "-c", f"{set_patience}; from ragmemory.cli import main; raise SystemExit(main())", *words]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpMemory]:
    """One for all tests that do not end it."""
    with http_memory(tmp_path_factory.mktemp("http")) as server:
        yield server


@contextmanager
def bridge(
    folder: Path, url: str, *arguments: str, revision: str = MODERN, **variables: str
) -> Iterator[Stdio]:
    """A bridge whose host has begun to speak `revision`."""
    log = folder / "bridge.log"
    with log.open("ab") as stderr:
        process = Held(
            bridge_command(folder, url, *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=memory_environment(folder, **variables),
        )
    with process:
        try:
            speaker = Stdio(process, log)
            speaker.begin(revision)
            yield speaker
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(LONGEST_SECONDS)


@pytest.mark.parametrize("revision", with_smoke([MODERN, *LEGACY_REVISIONS], [MODERN, "2025-03-26"]))
@pytest.mark.full
def test_a_host_on_stdio_uses_a_server_on_http_in_its_own_revision(
    tmp_path: Path, server: HttpMemory, revision: str
) -> None:
    with bridge(tmp_path, server.url, revision=revision) as speaker:
        tools = [tool["name"] for tool in speaker.request("tools/list")["result"]["tools"]]
        assert tools == ["Inject", "Query"]
        speaker.call("Inject", text="Füchse springen.", metadata={"uri": "füchse"})
        found = speaker.call("Query", query="Füchse")
        assert "füchse" in found["content"][0]["text"]
        for method, params, word in (
            ("tools/call", {"name": "Nothing", "arguments": {}}, "TOOL_NOT_FOUND"),
            ("tools/call", {"name": "Query", "arguments": []}, "INVALID_PARAMS"),
            ("resources/read", {"uri": "ragchat://document/é"}, "RESOURCE_NOT_FOUND"),
            ("no/such", {}, "METHOD_NOT_FOUND"),
        ):
            data = speaker.request(method, **params)["error"]["data"]
            assert (data["errorCode"], data["requestId"]) == (word, speaker.last_id)
        speaker.send(b"{")
        assert speaker.receive()["error"]["code"] == -32700


@pytest.mark.parametrize("revision", ["2025-11-25", "2024-11-05"])
@pytest.mark.full
def test_what_a_session_is_told_comes_down_to_its_host(
    tmp_path: Path, server: HttpMemory, revision: str
) -> None:
    with bridge(tmp_path, server.url, revision=revision) as speaker:
        speaker.request("resources/list")
        speaker.call("Inject", text=f"Foxes jump in {revision}.")
        heard = speaker.heard or [speaker.receive()["method"]]
        assert heard == ["notifications/resources/list_changed"]


@pytest.mark.full
def test_a_batch_is_answered_although_the_host_has_closed_stdin(tmp_path: Path, server: HttpMemory) -> None:
    with bridge(tmp_path, server.url, revision="2025-03-26") as speaker:
        query = {"name": "Query", "arguments": {"query": "foxes"}}
        batch = [{"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": query} for n in (91, 92)]
        speaker.send(json.dumps(batch).encode())
        assert speaker.process.stdin is not None
        speaker.process.stdin.close()
        assert {answer["id"] for answer in speaker.receive()} == {91, 92}


def test_a_host_that_is_too_fast_for_the_server_is_answered_later(tmp_path: Path) -> None:
    limits = {"RAGCHAT_HTTP_REQUESTS_PER_SECOND": "1", "RAGCHAT_HTTP_BURST": "1"}
    with http_memory(tmp_path, **limits) as server, bridge(tmp_path, server.url) as speaker:
        assert "result" in speaker.request("tools/list")


@pytest.mark.full
def test_a_cancelled_modern_request_ends_at_the_server_and_others_go_on(
    tmp_path: Path, server: HttpMemory
) -> None:
    with bridge(tmp_path, server.url) as speaker:
        listening = speaker.ask("subscriptions/listen", notifications={"resourcesListChanged": True})
        assert speaker.receive()["method"] == "notifications/subscriptions/acknowledged"
        cancelled = {"requestId": listening, "_meta": modern_meta()}
        speaker.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
        speaker.call("Inject", text="Foxes jump.")
        assert speaker.call("Query", query="foxes")["structuredContent"]["hits"]
        assert speaker.heard == []


@pytest.mark.full
def test_a_server_is_started_where_none_answers_and_ends_with_the_bridge(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with bridge(tmp_path, url, "--spawn", "--toolsets", "memory,documents,history,maintenance") as first:
        first.call("Inject", text="Foxes jump.")
        with bridge(tmp_path, url, "--spawn") as second:
            assert len(second.request("tools/list")["result"]["tools"]) > 2
            assert second.call("Query", query="foxes")["structuredContent"]["hits"]
        # It was not the second's, so it is still there.
        assert first.call("get_memory_stats")["structuredContent"]["documents"] == 1
    with bridge(tmp_path, url, "--spawn") as third:
        assert len(third.request("tools/list")["result"]["tools"]) == 2
        assert third.call("Query", query="foxes")["structuredContent"]["hits"]


@pytest.mark.full
def test_the_bridge_survives_its_server(tmp_path: Path) -> None:
    port = str(free_port())
    with http_memory(tmp_path, "--port", port) as server, bridge(tmp_path, server.url) as speaker:
        speaker.call("Inject", text="Foxes jump.")
        server.process.kill()
        server.process.wait()
        asked = speaker.ask("tools/call", name="Query", arguments={"query": "foxes"})
        with http_memory(tmp_path, "--port", port):
            # The bridge may say first that the new server's tools may be others.
            answer = next(one for one in iter(speaker.receive, None) if "id" in one)
            assert answer["id"] == asked
            assert answer["result"]["content"][0]["text"].startswith("[1]")
            assert speaker.call("Query", query="foxes")


@pytest.mark.full
def test_a_server_that_refuses_is_said_to_refuse(tmp_path: Path) -> None:
    with http_memory(tmp_path, RAGMEMORY_TOKEN="right") as server:
        with bridge(tmp_path, server.url, RAGMEMORY_TOKEN="right") as speaker:
            assert speaker.call("Query", query="x")
        for variables in ({}, {"RAGMEMORY_TOKEN": "wrong"}):
            process = subprocess.run(
                memory_command(tmp_path, "bridge", server.url),
                input=json.dumps(
                    {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": modern_meta()}}
                ).encode(),
                capture_output=True,
                env=memory_environment(tmp_path, **variables),
                timeout=LONGEST_SECONDS,
                check=True,
            )
            error = json.loads(process.stdout)["error"]
            assert error["data"]["errorCode"] == "HTTP_REFUSED"
            assert "status 401" in error["message"]


@pytest.mark.full
def test_a_session_that_began_anew_still_hears_what_it_subscribed_to(tmp_path: Path) -> None:
    document = {"text": "Foxes jump.", "metadata": {"uri": "fox"}}
    port = str(free_port())
    with (
        http_memory(tmp_path, "--port", port) as server,
        bridge(tmp_path, server.url, revision="2025-11-25") as speaker,
    ):
        injected = speaker.call("Inject", **document)["structuredContent"]
        uri = f"ragchat://document/{injected['document_id']}"
        assert speaker.request("resources/subscribe", uri=uri)["result"] == {}
        server.process.kill()
        server.process.wait()
        asked = speaker.ask("tools/call", name="Query", arguments={"query": "foxes"})
        with http_memory(tmp_path, "--port", port):
            answer = next(one for one in iter(speaker.receive, None) if "id" in one)
            assert answer["id"] == asked
            assert answer["result"]["content"][0]["text"].startswith("[1]")
            # Nothing says when the new session's stream is open, so there is news until some is heard.
            deadline = time.monotonic() + LONGEST_SECONDS
            while "notifications/resources/updated" not in speaker.heard:
                assert time.monotonic() < deadline, "it no longer hears of what it subscribed to"
                speaker.call("Inject", **document | {"text": f"Foxes sleep, {speaker.last_id}."})


@pytest.mark.full
def test_a_request_is_told_when_nobody_answers(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}/mcp"
    message = {"jsonrpc": "2.0", "id": "x", "method": "tools/list", "params": {"_meta": modern_meta()}}
    done = subprocess.run(
        bridge_command(tmp_path, url, patience=0.5),
        input=json.dumps(message).encode(),
        capture_output=True,
        env=memory_environment(tmp_path),
        timeout=LONGEST_SECONDS,
        check=True,
    )
    answer = json.loads(done.stdout)
    assert (answer["id"], answer["error"]["data"]["errorCode"]) == ("x", "SERVER_UNREACHABLE")
    assert f"The server at {url} cannot be reached: nothing listens there." in answer["error"]["message"]


async def test_a_notification_that_does_not_arrive_delays_no_other_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ragmemory.bridge.host.RETRY_SECONDS", inf)
    host, stream = memory_pair()

    async def wait(_: RagMcpError) -> None:
        await anyio.sleep_forever()

    with anyio.fail_after(LONGEST_SECONDS):
        async with (
            open_client(f"http://127.0.0.1:{free_port()}/mcp", 10_000, None, None) as http,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(Bridge(stream, http, tasks, wait).run)
            host.write(b'{"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}')
            host.write(b"nonsense")
            host.flush()
            assert json.loads(await host.receive())["error"]["code"] == -32700
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nonsense"], "nonsense is not the address of a server"),
        (["http://example.org/mcp", "--spawn"], "example.org is another"),
        (["http://127.0.0.1:1/mcp", "--token-file", "nowhere"], "nowhere cannot be read"),
    ],
    ids=str,
)
def test_what_cannot_be_bridged_is_a_sentence(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    done = run_memory(tmp_path, "bridge", *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert sentence in done.stderr


@pytest.mark.full
def test_a_message_over_the_limit_or_a_malformed_answer_is_refused_and_the_bridge_lives(
    tmp_path: Path, server: HttpMemory
) -> None:
    limit = {"RAGCHAT_LIMITS_MESSAGE_BYTES": "100000"}
    with bridge(tmp_path, server.url, **limit) as speaker:
        refused = speaker.request("tools/call", name="Inject", arguments={"text": "x" * 200_000})
        assert refused["error"]["data"]["errorCode"] == "MESSAGE_TOO_LARGE"
        assert speaker.call("Query", query="x")
        for error in ({}, {"code": 1, "message": "x" * 200_000}):
            speaker.send({"jsonrpc": "2.0", "id": 77, "error": error})
            assert speaker.receive()["id"] is None
        assert speaker.call("Query", query="x")


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.full
def test_a_signal_ends_the_bridge_and_the_server_it_started(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with bridge(tmp_path, url, "--spawn") as speaker:
        speaker.call("Query", query="x")
        speaker.process.send_signal(signal.SIGTERM)
        assert speaker.process.wait(LONGEST_SECONDS) == 0
    with bridge(tmp_path, url, "--spawn") as again:
        assert again.call("Query", query="x")


@pytest.mark.full
async def test_a_server_that_listens_already_is_neither_started_again_nor_waited_for(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    once = f"open({str(starts)!r}, 'a').write('started '); print('listens', flush=True)"
    spawned = Spawned([sys.executable, "-c", f"import sys; {once}; sys.stdin.read()"])
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(spawned.run)
            async with anyio.create_task_group() as both:
                both.start_soon(spawned.start)
                both.start_soon(spawned.start)
            with anyio.fail_after(5):
                await spawned.start()
            tasks.cancel_scope.cancel()
    assert starts.read_text(encoding="utf-8") == "started "
