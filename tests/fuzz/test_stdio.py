"""Hostile lines for `ragmemory` on stdio: it keeps running, answers, and reports no error of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.fuzz.wire import FEW, META, PARAMS, bodies, check_answer, edge_messages, encoded, pieces
from tests.support.processes import LONGEST_SECONDS, Held, memory_command, memory_environment

# The next request is answered within a second; on a busy machine a few more pass.
ANSWER_SECONDS = 5.0
# Bytes kept of the last input, to be shown if something fails.
NOTED_BYTES = 10_000
# Messages between two checks.
AT_ONCE = 20


class Server:
    """A running `ragmemory`. A thread reads its output, so that neither side waits for the other."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"
        self._written = b""
        self._asked = 0
        with self.log.open("ab") as stderr:
            self.process = Held(
                memory_command(folder, "--toolsets", "memory,documents,history,maintenance"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=memory_environment(folder),
            )
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self._written = (self._written + data)[-NOTED_BYTES:]
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def check(self) -> None:
        """Fails unless it answers the next request and has answered all others properly."""
        self._asked += 1
        id = f"check {self._asked}"
        request = {"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {"_meta": META}}
        self.write(json.dumps(request).encode() + b"\n")
        while True:
            line = self._next_line()
            answer = json.loads(line)
            if isinstance(answer, dict) and answer.get("id") == id:
                assert answer["result"]["tools"]
                return

    def _next_line(self) -> bytes:
        try:
            line = self._lines.get(timeout=ANSWER_SECONDS)
        except Empty:
            raise AssertionError(f"no answer after {self._written!r}") from None
        assert line, f"it has ended after {self._written!r}"
        check_answer(line)
        return line

    def end(self) -> None:
        """Close its stdin; it must answer everything and exit."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        while line := self._lines.get(timeout=LONGEST_SECONDS):
            check_answer(line)
        assert self.process.wait(LONGEST_SECONDS) == 0
        assert "Traceback" not in self.log.read_text(encoding="utf-8")


class Servers:
    """One server for many examples; a new one after a failure, so that it can be found again."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self._factory = factory
        self.current: Server | None = None

    def take(self) -> Server:
        server, self.current = self.current, None
        return server or Server(self._factory.mktemp("memory"))


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    servers = Servers(tmp_path_factory)
    yield servers
    if servers.current is not None:
        with servers.current.process:
            servers.current.end()


@FEW
@given(
    pieces(
        st.lists(bodies | st.just(b"\n"), min_size=1, max_size=4).map(lambda lines: b"\n".join(lines) + b"\n")
    )
)
def test_the_server_answers_the_next_request_after_any_input(servers: Servers, parts: list[bytes]) -> None:
    server = servers.take()
    try:
        for part in parts:
            server.write(part)
        server.check()
        assert "Traceback" not in server.log.read_text(encoding="utf-8")
    except BaseException:
        note(server.log.read_text(encoding="utf-8")[-NOTED_BYTES:])
        server.process.kill()
        server.process.wait()
        raise
    servers.current = server


@pytest.mark.parametrize("modern", [True, False])
def test_every_field_may_hold_anything(
    servers: Servers, has_time: Callable[[], bool], *, modern: bool
) -> None:
    server = servers.take()
    with server.process:
        hello = {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": PARAMS["initialize"]}
        server.write(encoded(hello) + b"\n")
        for number, message in enumerate(edge_messages(5, modern=modern)):
            if not has_time():
                break
            server.write(encoded(message) + b"\n")
            if number % AT_ONCE == 0:
                server.check()
        server.check()
        server.end()
