"""The memory over HTTP, through real sockets.

Covers `ragcommon.listening`, `metrics`, `page`, `routes` and `serving`.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from ragchat.cli import main
from ragcommon.hosts import HOSTS
from tests.support.http_memory import (
    MODERN,
    PLAIN_HTTP,
    Host,
    HttpMemory,
    host,
    http_memory,
    modern_meta,
)
from tests.support.processes import (
    LONGEST_SECONDS,
    Held,
    called,
    memory_command,
    memory_environment,
    memory_process,
    run_memory,
    uris,
)

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and file modes")


AS_ANOTHER_USER = """
import sys, urllib.error, urllib.request
heads = {"Authorization": sys.argv[2]} if sys.argv[2:] else {}
try:
    print(urllib.request.urlopen(urllib.request.Request(sys.argv[1], headers=heads)).read().decode())
except urllib.error.HTTPError as error:
    print(error.read().decode())
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpMemory]:
    """One for all tests that do not mind what others have put in."""
    with http_memory(tmp_path_factory.mktemp("http")) as server:
        yield server


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpMemory]:
    """One with a token: any host will do."""
    with http_memory(tmp_path_factory.mktemp("guarded"), RAGMEMORY_TOKEN="t" * 32) as server:
        yield server


def get(url: str, **headers: str) -> httpx2.Response:
    return httpx2.get(url, headers=headers, **PLAIN_HTTP)


def post(url: str, message: Any = None) -> httpx2.Response:
    return httpx2.post(url, json=message, **PLAIN_HTTP)


def test_it_says_where_it_listens(server: HttpMemory) -> None:
    assert server.told["url"] == f"http://127.0.0.1:{server.told['port']}/mcp"
    assert server.told["tools"] == ["Inject", "Query"]
    assert server.told["authorization"] == "none"


def test_health_needs_nothing(server: HttpMemory) -> None:
    answer = get(f"{server.root}/health")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")


def test_what_is_offered_is_described(server: HttpMemory) -> None:
    described = get(f"{server.root}/.well-known/mcp").json()
    assert described["endpoints"]["mcp"] == server.url
    assert described["transports"] == ["streamable-http", "sse"]
    assert described["revisions"][0] == MODERN
    assert len(described["revisions"]) == 5
    assert described["tools"] == ["Inject", "Query"]
    assert set(described["capabilities"]) == {"tools", "resources", "prompts", "completions", "extensions"}
    # A program that asks for the page is told the same.
    assert get(f"{server.root}/", accept="application/json").json() == described


@pytest.mark.parametrize(("forwarded", "scheme"), [("https", "https"), ("http", "http"), ("file", "http")])
def test_the_addresses_are_those_of_the_proxy_that_has_the_certificate(
    server: HttpMemory, forwarded: str, scheme: str
) -> None:
    headers = {"host": "localhost", "x-forwarded-proto": forwarded}
    described = get(f"{server.root}/.well-known/mcp", **headers).json()
    assert described["endpoints"]["mcp"] == f"{scheme}://localhost/mcp"


def test_a_browser_is_shown_a_page_that_runs_and_loads_nothing(server: HttpMemory) -> None:
    page = get(f"{server.root}/", **BROWSER)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'; style-src 'sha256-" in page.headers["content-security-policy"]
    assert "<script" not in page.text
    assert " src=" not in page.text
    assert server.url in page.text
    for known in HOSTS.values():
        assert known.title in page.text


@pytest.mark.full
def test_the_page_does_not_repeat_markup_from_outside(guarded: HttpMemory) -> None:
    page = get(f"{guarded.root}/", host='localhost:1"><script>alert(1)</script>', **BROWSER)
    assert page.status_code == 200
    assert "&lt;script" in page.text
    assert "<script" not in page.text


@pytest.mark.parametrize("head", ["GET / HTTP/1.0\r\n", "GET / HTTP/1.1\r\nhost: [\r\nconnection: close\r\n"])
@pytest.mark.full
def test_the_page_needs_no_host_where_any_will_do(guarded: HttpMemory, head: str) -> None:
    with socket.create_connection(("127.0.0.1", guarded.told["port"]), LONGEST_SECONDS) as client:
        client.sendall(f"{head}accept: text/html\r\n\r\n".encode())
        with client.makefile("rb") as response:
            assert response.readline().split()[1] == b"200"


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.full
def test_the_page_shows_what_mcp_config_prints(
    server: HttpMemory, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mcp", "config", name, "--url", server.url]) == 0
    page = get(f"{server.root}/", **BROWSER).text.replace("&quot;", '"')
    assert capsys.readouterr().out.strip() in page


def test_metrics_count_requests_errors_and_what_memory_holds(tmp_path: Path) -> None:
    with http_memory(tmp_path) as server, host(server.url) as speaker:
        speaker.call("Inject", text="Foxes jump.")
        speaker.call("Query", query="foxes")
        speaker.request("tools/call", {"name": "Nothing", "arguments": {}})
        speaker.request("made/up")
        text = get(f"{server.root}/metrics").text
    assert 'ragmemory_requests_total{method="tools/call",tool="Query"} 1.0' in text
    assert 'ragmemory_errors_total{code="TOOL_NOT_FOUND"} 1.0' in text
    assert 'ragmemory_request_seconds_count{method="tools/call"} 3.0' in text
    assert "ragmemory_documents 1.0" in text
    assert "ragmemory_chunks 1.0" in text
    assert "ragmemory_intake_waiting 0.0" in text
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    assert 0 < float(values["ragmemory_lock_wait_seconds_total"]) < 60
    assert 0 < float(values["ragmemory_follower_lag_seconds"]) < 60
    assert 'ragmemory_database_connections{state="in use"}' not in values  # The memory is a file.
    # What clients make up becomes no series.
    assert not {"made/up", "Nothing"} & set(text.replace('"', " ").split())


def test_metrics_of_a_memory_that_cannot_be_read_do_not_call_it_empty(tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_text("no memory", encoding="utf-8")
    with http_memory(tmp_path) as server:
        text = get(f"{server.root}/metrics").text
    assert "ragmemory_documents NaN" in text
    assert "ragmemory_chunks NaN" in text


@pytest.mark.parametrize("path", ["/", "/health", "/metrics", "/.well-known/mcp", "/openapi.json", "/mcp"])
def test_pages_from_elsewhere_are_kept_out(server: HttpMemory, path: str) -> None:
    for headers in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
        assert get(server.root + path, **headers).status_code == 403


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("http://localhost/health", "evil.example", 200),
        ("http://evil.example/health", "localhost", 403),
        ("http://evil.example", "localhost", 400),
        ("http://evil.example?/health", "localhost", 400),
        ("http://localhost@evil.example/health", "localhost", 403),
        ("http://evil.example@localhost/health", "localhost", 403),
        ("/health?http://evil.example/", "localhost", 200),
    ],
)
def test_the_host_of_an_absolute_target_counts_and_not_the_header(
    server: HttpMemory, target: str, host: str, status: int
) -> None:
    with socket.create_connection(("127.0.0.1", server.told["port"]), LONGEST_SECONDS) as client:
        client.sendall(f"GET {target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
        with client.makefile("rb") as response:
            assert response.readline().split()[1] == b"%d" % status


def test_a_path_that_does_not_exist_is_not_found(server: HttpMemory) -> None:
    assert get(f"{server.root}/nothing").status_code == 404
    assert get(f"{server.root}/mcp/").status_code == 404
    assert post(f"{server.root}/health").status_code == 405


def test_everything_but_page_and_health_needs_the_token(tmp_path: Path) -> None:
    secret = "correct-horse"
    file = tmp_path / "token"
    file.write_text(f"{secret}\n", encoding="utf-8")
    file.chmod(0o600)
    with http_memory(tmp_path, "--token-file", str(file)) as server:
        assert server.told["authorization"] == "bearer"
        for path in ("/mcp", "/metrics", "/.well-known/mcp", "/sse", "/messages", "/nothing"):
            assert get(server.root + path).status_code == 401
            assert get(server.root + path, authorization="Bearer wrong").status_code == 401
        assert get(f"{server.root}/health").status_code == 200
        assert secret not in get(f"{server.root}/", **BROWSER).text
        with host(server.url, token=secret) as speaker:
            assert speaker.call("Query", query="anything")["structuredContent"]["hits"] == []
    assert secret not in server.log.read_text(encoding="utf-8")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another user")
def test_another_user_of_the_machine_needs_a_token(server: HttpMemory, guarded: HttpMemory) -> None:
    def asked(url: str, *token: str) -> str:
        command = ["setpriv", "--reuid=65534", "--clear-groups", sys.executable, "-c", AS_ANOTHER_USER, url]
        return subprocess.run([*command, *token], capture_output=True, check=True, text=True).stdout

    refused = "This memory belongs to another user of this machine; to share it, its server needs a token."
    assert refused in asked(f"{server.root}/metrics")
    assert refused in asked(server.url)
    assert "ok" in asked(f"{server.root}/health")
    assert "ragmemory_documents" in asked(f"{guarded.root}/metrics", f"Bearer {'t' * 32}")


@posix
@pytest.mark.full
def test_an_address_that_others_can_reach_makes_a_token_and_shows_it_once(tmp_path: Path) -> None:
    for _ in range(2):
        with http_memory(tmp_path, "--host", "0.0.0.0") as server:
            url = f"http://127.0.0.1:{server.told['port']}"
            assert get(f"{url}/metrics").status_code == 401
            kept = tmp_path / "home" / "data" / "http-token"
            assert kept.stat().st_mode & 0o777 == 0o600
            secret = kept.read_text(encoding="utf-8").strip()
            assert get(f"{url}/metrics", authorization=f"Bearer {secret}").status_code == 200
    assert server.log.read_text(encoding="utf-8").count(secret) == 1


def test_a_token_that_is_made_is_not_in_a_log_that_is_collected(tmp_path: Path) -> None:
    with http_memory(tmp_path, "--host", "0.0.0.0", RAGCHAT_LOG_FORM="json") as server:
        kept = tmp_path / "home" / "data" / "http-token"
        secret = kept.read_text(encoding="utf-8").strip()
        log = server.log.read_text(encoding="utf-8")
    first = json.loads(log.splitlines()[0])
    assert first["message"] == f"A bearer token was made and kept in {kept}."
    assert secret not in log


@posix
@pytest.mark.parametrize("mode", [0o604, 0o640, 0o644])
@pytest.mark.full
def test_a_token_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "token"
    file.write_text("correct-horse\n", encoding="utf-8")
    file.chmod(mode)
    done = run(tmp_path, "--port", "0", "--token-file", str(file))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"The token file {file} cannot be read: other users have access to it (mode {mode:o}). "
        f"Make it yours alone: chmod 600 {file}\n"
    )


@posix
def test_a_kept_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    kept = tmp_path / "home" / "data" / "http-token"
    kept.parent.mkdir(parents=True)
    kept.write_text("correct-horse\n", encoding="utf-8")
    kept.chmod(0o644)
    done = run(tmp_path, "--port", "0", "--host", "0.0.0.0")
    assert done.returncode == 1
    assert f"chmod 600 {kept}" in done.stderr


def test_only_reading_is_offered_where_that_is_wanted(tmp_path: Path) -> None:
    with http_memory(tmp_path, "--read-only") as server, host(server.url) as speaker:
        assert [tool["name"] for tool in speaker.result("tools/list")["tools"]] == ["Query"]
        refused = speaker.request("tools/call", {"name": "Inject", "arguments": {"text": "x"}})
        assert refused["error"]["data"]["errorCode"] == "TOOL_NOT_FOUND"


@pytest.mark.full
def test_the_plain_form_is_refused_where_it_is_not_switched_on(server: HttpMemory) -> None:
    assert "error" in post(server.url, {"method": "Query", "params": {"query": "foxes"}}).json()


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return run_memory(folder, "--memory", str(folder / "memory.db"), "http", *arguments, **variables)


@pytest.mark.full
def test_a_port_in_use_is_a_sentence(tmp_path: Path, server: HttpMemory) -> None:
    port = str(server.told["port"])
    done = run(tmp_path, "--port", port)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"cannot listen at 127.0.0.1, port {port}: address already in use." in done.stderr
    assert done.stderr.count("\n") == 1
    error = json.loads(run(tmp_path, "--port", port, "--json").stdout)["error"]
    assert error["code"] == "ADDRESS_UNUSABLE"
    assert "--port" in error["hint"]


@pytest.mark.parametrize(
    ("arguments", "variables", "sentence"),
    [
        (["--host", "no.such.host.invalid"], {}, "cannot listen at no.such.host.invalid"),
        (["--host", ""], {}, "it is not a name or an address"),
        (
            ["--token-file", "nowhere"],
            {},
            "The token file nowhere cannot be read: no such file or directory.",
        ),
        ([], {"RAGMEMORY_TOKEN": "two words"}, "no bearer token in the environment variable RAGMEMORY_TOKEN"),
        ([], {"RAGCHAT_HTTP_PORTS": "1"}, "Did you mean RAGCHAT_HTTP_PORT?"),
        (["--toolsets", "sql"], {}, "no toolset 'sql'"),
    ],
    ids=str,
)
@pytest.mark.full
def test_what_cannot_be_served_is_a_sentence(
    tmp_path: Path, arguments: list[str], variables: dict[str, str], sentence: str
) -> None:
    done = run(tmp_path, "--port", "0", *arguments, **variables)
    assert (done.returncode, done.stdout) == (1, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert "nknown error" not in done.stderr


@pytest.mark.parametrize("port", ["many", "-1", "65536"])
@pytest.mark.full
def test_a_port_that_is_none_is_wrong_usage(tmp_path: Path, port: str) -> None:
    done = run(tmp_path, f"--port={port}")
    assert done.returncode == 2
    assert f"{port} is not from 0 to 65535" in done.stderr


@pytest.mark.full
def test_what_others_send_wrong_is_not_in_the_log(tmp_path: Path) -> None:
    with http_memory(tmp_path) as server:
        websocket = (
            b"GET /mcp HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n"
        )
        for wrong, status in ((b"\x16\x03\x01\r\n\r\n", b"400"), (websocket, b"405")):
            with socket.create_connection(("127.0.0.1", server.told["port"]), LONGEST_SECONDS) as other:
                other.sendall(wrong)
                assert other.recv(100).startswith(b"HTTP/1.1 " + status)
    assert server.log.read_text(encoding="utf-8") == ""


def test_who_is_not_let_in_is_counted(tmp_path: Path) -> None:
    secret = "a-secret-nobody-guesses"
    with http_memory(tmp_path, RAGMEMORY_TOKEN=secret) as server:
        get(f"{server.root}/metrics")
        get(f"{server.root}/health", origin="https://evil.example")
        text = get(f"{server.root}/metrics", authorization=f"Bearer {secret}").text
    assert 'ragmemory_errors_total{code="UNAUTHORIZED"} 1.0' in text
    assert 'ragmemory_errors_total{code="ORIGIN_NOT_ALLOWED"} 1.0' in text
    assert 'ragmemory_requests_total{method="",tool=""} 2.0' in text


@pytest.mark.full
def test_a_project_may_not_open_the_memory_to_others(tmp_path: Path) -> None:
    (tmp_path / "ragchat.toml").write_text('[http]\nhost = "0.0.0.0"\n', encoding="utf-8")
    done = subprocess.run(
        memory_command(tmp_path, "http"),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=memory_environment(tmp_path),
        timeout=LONGEST_SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert "sets http.host, which a project may not decide for you" in done.stderr


@posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_streams_end_with_their_result(tmp_path: Path, number: signal.Signals) -> None:
    with http_memory(tmp_path) as server, host(server.url) as speaker:
        listen = {"notifications": {"resourcesListChanged": True}, "_meta": modern_meta()}
        message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": listen}
        heads = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": MODERN,
            "mcp-method": "subscriptions/listen",
        }
        with speaker.client.stream("POST", server.url, json=message, headers=heads) as stream:
            lines = stream.iter_lines()
            assert any("acknowledged" in line for line in lines)
            speaker.call("Inject", text="Foxes jump.")
            assert any("resources/list_changed" in line for line in lines)
            server.process.send_signal(number)
            assert any('"result"' in line for line in lines)
        assert server.process.wait(LONGEST_SECONDS) == 0
        assert "Traceback" not in server.log.read_text(encoding="utf-8")


@posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.full
def test_a_second_signal_ends_it_at_once_and_without_a_word(tmp_path: Path, number: signal.Signals) -> None:
    with http_memory(tmp_path) as server:
        address = ("127.0.0.1", server.told["port"])
        with (
            socket.create_connection(address, LONGEST_SECONDS) as idle,
            socket.create_connection(address, LONGEST_SECONDS) as slow,
        ):
            # The rest of the body never comes: the server leaves, and waits for it.
            slow.sendall(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n")
            slow.sendall(b"content-length: 9\r\nexpect: 100-continue\r\n\r\n")
            assert slow.recv(100).startswith(b"HTTP/1.1 100")
            server.process.send_signal(number)
            assert idle.recv(1) == b""
            server.process.send_signal(number)
            assert server.process.wait(LONGEST_SECONDS) == -number
        assert server.log.read_text(encoding="utf-8") == ""


def test_a_server_that_another_program_started_ends_with_its_stdin(tmp_path: Path) -> None:
    process = Held(
        memory_command(tmp_path, "http", "--port", "0", "--json", "--end-with-stdin"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=memory_environment(tmp_path),
    )
    with process:
        assert process.stdin is not None
        assert json.loads(process.line())["port"]
        process.stdin.close()
        assert process.wait(LONGEST_SECONDS) == 0


@pytest.mark.skipif(os.name == "nt", reason="POSIX terminals")
@pytest.mark.full
def test_a_server_ends_also_with_the_terminal_that_was_its_stdin(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    process = Held(
        memory_command(tmp_path, "http", "--port", "0", "--json", "--end-with-stdin"),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=memory_environment(tmp_path),
    )
    os.close(theirs)
    with process:
        assert json.loads(process.line())["port"]
        os.close(ours)
        assert process.wait(LONGEST_SECONDS) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.full
def test_who_waited_for_the_end_of_stdin_may_leave_before_it() -> None:
    code = """
import anyio, threading
from ragmemory.signals import stdin_end

async def leave() -> None:
    async with anyio.create_task_group() as tasks:
        await tasks.start(stdin_end)
        tasks.cancel_scope.cancel()

anyio.run(leave)
print("left", flush=True)
[thread.join() for thread in threading.enumerate() if thread.daemon]
"""
    process = Held(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        assert process.line() == b"left\n"
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(LONGEST_SECONDS) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.full
def test_a_stdout_that_cannot_be_written_is_told_in_a_line(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        process = Held(
            memory_command(tmp_path, "http", "--port", "0", "--json", "--end-with-stdin"),
            stdin=subprocess.PIPE,
            stdout=full,
            stderr=subprocess.PIPE,
            env=memory_environment(tmp_path),
        )
    with process:
        _, errors = process.communicate(timeout=LONGEST_SECONDS)
    [line] = errors.decode().splitlines()
    assert re.fullmatch(r"stdout cannot be written \(.+\)\. ragmemory listens at http://.+", line)
    assert process.returncode == 0


@pytest.mark.full
def test_a_head_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    # In this time a busy machine, too, sends the head of the last request.
    with http_memory(tmp_path, RAGCHAT_HTTP_HEAD_SECONDS="2", RAGCHAT_HTTP_HEADER_BYTES="1000") as server:
        with ExitStack() as stack:
            slow = []
            for beginning in (
                b"",
                b"POST /mcp HT",
                b"GET /health HTTP/1.1\r\nhost: localhost\r\nx-long: " + b"x" * 5000,
            ):
                address = ("127.0.0.1", server.told["port"])
                slow.append(stack.enter_context(socket.create_connection(address, LONGEST_SECONDS)))
                slow[-1].sendall(beginning)
            for one in slow:
                assert one.recv(1) == b""
        assert get(f"{server.root}/health").status_code == 200


@pytest.mark.full
async def test_hosts_on_http_and_on_stdio_share_one_memory_without_losing_a_write(tmp_path: Path) -> None:
    def inject(speaker: Host, name: str) -> None:
        speaker.call("Inject", text=f"The word of this document is {name}.", metadata={"uri": name})

    async def over_http(url: str, prefix: str) -> None:
        with host(url) as speaker:
            for number in range(10):
                await anyio.to_thread.run_sync(inject, speaker, f"{prefix}{number}")

    async def over_stdio(client: Any, prefix: str) -> None:
        for number in range(10):
            name = f"{prefix}{number}"
            await called(
                client, "Inject", text=f"The word of this document is {name}.", metadata={"uri": name}
            )

    with anyio.fail_after(60), http_memory(tmp_path) as server:
        async with memory_process(tmp_path) as one, memory_process(tmp_path) as other:
            async with anyio.create_task_group() as tasks:
                for prefix in ("http", "web"):
                    tasks.start_soon(over_http, server.url, prefix)
                for client, prefix in ((one, "pipe"), (other, "tube")):
                    tasks.start_soon(over_stdio, client, prefix)
            assert (await called(one, "get_memory_stats"))["documents"] == 40
            assert uris(await called(other, "Query", query="web7", top_k=1)) == ["web7"]
            with host(server.url) as speaker:
                found = speaker.call("Query", query="tube3", top_k=1)["structuredContent"]
                assert uris(found) == ["tube3"]


@pytest.mark.parametrize("revision", [MODERN, "2025-11-25"])
@pytest.mark.full
def test_the_journal_tells_two_clients_of_the_same_name_apart(tmp_path: Path, revision: str) -> None:
    with (
        http_memory(tmp_path, "--toolsets", "memory,history") as memory,
        host(memory.url, revision) as one,
        host(memory.url, revision) as two,
    ):
        one.begin()
        two.begin()
        for speaker, uri in ((one, "a"), (two, "b"), (one, "c")):
            speaker.call("Inject", text=f"Text of {uri}.", metadata={"uri": uri})
        entries = one.call("list_journal")["structuredContent"]["entries"]
        origins = {entry["uri"]: entry["origin"] for entry in entries}
        assert origins["a"]["session"] == origins["c"]["session"] != origins["b"]["session"]
        assert {(origin["client"], origin["host"]) for origin in origins.values()} == {("host", "127.0.0.1")}
        assert all(entry["at"] for entry in entries)
        # Each undoes its own.
        undone = two.call("undo_writes", origin=origins["a"]["session"])["structuredContent"]
        assert undone["writes"] == {"added": 2}
        listed = two.call("Query", query="text")["structuredContent"]
        assert uris(listed) == ["b"]
