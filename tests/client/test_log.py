"""The log file."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragchat.log import LOG_BYTES, LOG_FILE, ServerLog, start_log
from ragconfig.keys import read_key


@pytest.fixture(autouse=True)
def loggers_as_they_were() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers = []
    raising = logging.raiseExceptions
    yield
    logging.raiseExceptions = raising
    for handler in root.handlers:
        handler.close()
    root.handlers, root.level = handlers, level
    for name in ("ragchat", "ragmcp"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_what_happened_is_in_the_log_with_its_traceback(tmp_path: Path) -> None:
    path = start_log(tmp_path / "state", verbose=False)
    assert path == tmp_path / "state" / LOG_FILE
    logging.getLogger("ragchat").error("it failed", exc_info=KeyError("x"))
    text = path.read_text(encoding="utf-8")
    assert "ERROR" in text
    assert "KeyError: 'x'" in text


def test_verbose_logs_more_of_ours_and_nothing_more_of_others(tmp_path: Path) -> None:
    path = start_log(tmp_path, verbose=True)
    assert path is not None
    logging.getLogger("ragchat").debug("ours")
    logging.getLogger("openai").debug("Authorization: Bearer secret")
    text = path.read_text(encoding="utf-8")
    assert "ours" in text
    assert "secret" not in text


def test_no_key_that_was_read_is_in_the_log_not_even_in_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-from-a-file\n", encoding="utf-8")
    (tmp_path / "key").chmod(0o600)
    keys = read_key(str(tmp_path / "key")), read_key("", environ={"OPENAI_API_KEY": "sk-from-a-file-longer"})
    path = start_log(tmp_path, verbose=False)
    logging.getLogger("ragchat").error("keys: %s", keys, exc_info=ValueError(f"wrong: {' '.join(keys)}"))
    assert path is not None
    text = path.read_text(encoding="utf-8")
    assert "ValueError: wrong: *** ***\n" in text
    assert "sk-" not in text


@pytest.mark.skipif(sys.platform == "win32", reason="file modes")
def test_a_new_log_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = start_log(tmp_path, verbose=False)
    assert path is not None
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_log_does_not_grow_for_ever(tmp_path: Path) -> None:
    (tmp_path / LOG_FILE).write_text("x" * (LOG_BYTES + 1), encoding="utf-8")
    path = start_log(tmp_path, verbose=False)
    logging.getLogger("ragchat").info("the next run")
    assert path is not None
    assert path.stat().st_size < LOG_BYTES
    assert path.with_suffix(".log.1").stat().st_size > LOG_BYTES


def test_a_log_that_cannot_be_written_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "state").write_text("in the way", encoding="utf-8")
    assert start_log(tmp_path / "state", verbose=False) is None
    logging.getLogger("ragchat").error("it failed", exc_info=KeyError("x"))
    assert capsys.readouterr().err == ""


def test_a_server_whose_log_cannot_be_written_has_none(tmp_path: Path) -> None:
    assert ServerLog(tmp_path / "state" / "server.log").path == tmp_path / "state" / "server.log"
    (tmp_path / "file").touch()
    assert ServerLog(tmp_path / "file" / "server.log").path == Path(os.devnull)


async def test_the_last_line_of_a_log_is_the_last_one_that_says_something(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "server.log")
    assert await log.last_line() == ""
    log.path.write_text("no daemon\n\nRun `it --help` for help\n", encoding="utf-8")
    assert await log.last_line() == "no daemon"
    log.path.write_text("    | ValueError: no daemon\n    +------------------------------------\n", "utf-8")
    assert await log.last_line() == "ValueError: no daemon"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such FIFOs")
def test_a_log_that_is_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / LOG_FILE)
    assert start_log(tmp_path, verbose=False) is None
    assert ServerLog(tmp_path / LOG_FILE).path == Path(os.devnull)
