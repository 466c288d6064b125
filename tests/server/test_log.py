"""The log of the server as JSON."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from ragconfig.redaction import add_secret
from ragmcp.tracing import TRACE_ID
from ragmemory.log import JsonFormatter
from tests.support.http_memory import host, http_memory
from tests.support.processes import LONGEST_SECONDS, memory_command, memory_environment

TRACE = "0af7651916cd43dd8448eb211c80319c"


def test_a_record_is_an_object_without_secrets() -> None:
    add_secret("a-secret-nobody-guesses")
    try:
        raise ValueError("a-secret-nobody-guesses\n is wrong")
    except ValueError:
        error = sys.exc_info()
    record = logging.LogRecord("ragmemory.x", logging.WARNING, "", 0, "It is %s.", ("wrong",), error)
    line = json.loads(JsonFormatter().format(record))
    assert "ValueError: ***\n is wrong" in line.pop("exception")
    assert line.pop("time").endswith("+00:00")
    assert line == {"level": "WARNING", "logger": "ragmemory.x", "message": "It is wrong.", "trace_id": None}


def test_the_lines_of_a_request_have_its_trace_id(tmp_path: Path) -> None:
    with http_memory(tmp_path, "-v", RAGCHAT_LOG_FORM="json") as server, host(server.url) as speaker:
        for trace in (f"00-{TRACE}-b7ad6b7169203331-01", "no trace"):
            speaker.heads["traceparent"] = trace
            speaker.begin()
    lines = [json.loads(line) for line in server.log.read_text(encoding="utf-8").splitlines()]
    assert {line["trace_id"] for line in lines if line["logger"] == "ragmcp.http.dispatch"} == {TRACE, None}
    assert TRACE_ID.get() is None


@pytest.mark.parametrize(("form", "said"), [("text", "The server cannot"), ("json", '{"time": ')])
def test_an_error_has_the_form_of_the_log(tmp_path: Path, form: str, said: str) -> None:
    done = subprocess.run(
        memory_command(tmp_path, "http", "--host", "no such host"),
        capture_output=True,
        text=True,
        env=memory_environment(tmp_path, RAGCHAT_LOG_FORM=form),
        timeout=LONGEST_SECONDS,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(said)


def test_an_unknown_form_is_an_error_that_names_the_known_ones(tmp_path: Path) -> None:
    done = subprocess.run(
        memory_command(tmp_path),
        capture_output=True,
        text=True,
        env=memory_environment(tmp_path, RAGCHAT_LOG_FORM="xml"),
        timeout=LONGEST_SECONDS,
    )
    assert done.returncode == 1
    assert "log.form" in done.stderr
