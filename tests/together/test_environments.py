"""Both programs in unusual environments: an ASCII locale, no docstrings, little memory, files of others."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import LONGEST_SECONDS
from tests.support.program import Done, Program, program_in

linux = pytest.mark.skipif(sys.platform != "linux", reason="its limits, users and locales")

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@linux
def test_text_and_file_names_are_utf_8_in_an_ascii_locale_too(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path, **ASCII)
    (ragchat.folder / "größe.txt").write_text("Der Kran hebt größere Lasten.\n", encoding="utf-8")
    loaded = ragchat("inject", "größe.txt")
    assert (loaded.code, loaded.err) == (0, "")
    [hit] = ragchat("query", "größere", "--json").json["hits"]
    assert (hit["title"], hit["text"]) == ("größe.txt", "Der Kran hebt größere Lasten.\n")


@linux
def test_an_argument_that_is_no_text_is_wrong_usage(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path)
    done = ragchat("query", os.fsdecode(b"gr\xf6\xdfe"))
    assert done.code == 2
    assert "the argument 'gr\\udcf6\\udcdfe' is not UTF-8" in done.err
    (ragchat.folder / os.fsdecode(b"gr\xf6\xdfe")).touch()
    assert "UTF-8" not in ragchat("mcp", "config", os.fsdecode(b"gr\xf6\xdfe")).err


def run(ragchat: Program, *command: str) -> Done:
    """`command` is what starts Python, and its arguments."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=ragchat.folder,
        env=ragchat.variables,
        timeout=LONGEST_SECONDS,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@linux
def test_a_limit_on_memory_is_named(tmp_path: Path) -> None:
    limited = ("sh", "-c", 'ulimit -v 50000; exec "$0" "$@"', sys.executable, "-m")
    done = run(program_in(tmp_path), *limited, "ragchat", "query", "crane")
    assert (done.code, done.out) == (1, "")
    assert "The system gives this program no more memory; its limit is" in done.err
    assert "`ulimit -v 1000000`" in done.err


@linux
def test_a_limit_on_open_files_is_named_and_is_no_reason_to_repair_the_memory(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path)
    ragchat("inject", "-", "--uri", "a", stdin="The crane lifts five tons.\n")
    limited = ("sh", "-c", 'ulimit -n 8; exec "$0" "$@"', sys.executable, "-m")
    done = run(ragchat, *limited, "ragchat", "query", "crane")
    assert (done.code, done.out) == (1, "")
    assert "too many open files; the limit is 8 (`ulimit -n`)" in done.err
    checked = run(ragchat, *limited, "ragchat", "doctor")
    assert "memory.db cannot be read" in checked.out
    assert "backup" not in checked.out


# As root everything may be read, unless these capabilities are given up.
_SETPRIV = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
RESTRICTED = _SETPRIV if sys.platform != "win32" and os.geteuid() == 0 else []


def run_restricted(ragchat: Program, *arguments: str) -> Done:
    return run(ragchat, *RESTRICTED, sys.executable, "-m", "ragchat", *arguments)


@linux
@pytest.mark.skipif(bool(RESTRICTED) and shutil.which("setpriv") is None, reason="root may read everything")
@pytest.mark.parametrize("name", ["memory.db", ""])
def test_a_memory_that_may_not_be_read_is_not_called_missing(name: str, tmp_path: Path) -> None:
    """The file, and the folder that it is in; the index may not be read either."""
    ragchat = program_in(tmp_path)
    data = tmp_path / "theirs"
    (data / "memory.db-index").mkdir(parents=True, mode=0)
    (data / "memory.db").write_bytes(b"content")
    (data / name).chmod(0)
    memory = ("--memory", str(data / "memory.db"))
    try:
        done = run_restricted(ragchat, *memory, "query", "crane")
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith(
            f"ragchat: The memory {data}/memory.db cannot be used: your user may not read it."
        )
        assert "yet" not in done.err
        checked = run_restricted(ragchat, *memory, "doctor").out
        assert f"fault    memory file    {data}/memory.db cannot be read: permission denied" in checked
        assert "\nok       terminal" in checked
    finally:
        (data / name).chmod(0o700)
        (data / "memory.db-index").chmod(0o700)


@linux
@pytest.mark.skipif(bool(RESTRICTED) and shutil.which("setpriv") is None, reason="root may read everything")
def test_a_memory_whose_index_may_not_be_read_is_searched_without_it(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path)
    ragchat("inject", "-", "--uri", "a", stdin="The crane lifts five tons.\n")
    (ragchat.home / "data" / "memory.db-index").chmod(0)
    done = run_restricted(ragchat, "query", "crane")
    assert (done.code, "five tons" in done.out) == (0, True)


@linux
@pytest.mark.skipif(bool(RESTRICTED) and shutil.which("setpriv") is None, reason="root may write everything")
def test_a_user_who_may_only_read_leaves_no_files_that_keep_the_owner_out(tmp_path: Path) -> None:
    """The folder may be written, as one that a group shares."""
    ragchat = program_in(tmp_path)
    ragchat("inject", "-", "--uri", "a", stdin="The crane lifts five tons.\n")
    data = ragchat.home / "data"
    shutil.rmtree(data / "memory.db-index")
    (data / "memory.db").chmod(0o440)
    done = run_restricted(ragchat, "query", "crane")
    assert (done.code, "five tons" in done.out) == (0, True)
    assert list(data.glob("memory.db*")) == [data / "memory.db"]


@linux
@pytest.mark.skipif(bool(RESTRICTED) and shutil.which("setpriv") is None, reason="root may write everything")
def test_a_log_of_another_user_is_named_by_a_write_and_does_not_stop_reading(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path)
    ragchat("inject", "-", "--uri", "a", stdin="The crane lifts five tons.\n")
    data = ragchat.home / "data"
    (data / "memory.db-wal").touch(mode=0)
    written = run_restricted(ragchat, "memory", "rm", "a")
    assert written.code == 1
    assert f"cannot be written: your user may not write {data}/memory.db-wal." in written.err
    read = run_restricted(ragchat, "query", "crane")
    assert (read.code, "five tons" in read.out) == (0, True)
    (data / "memory.db-wal").write_bytes(b"content")
    read = run_restricted(ragchat, "query", "crane")
    assert read.code == 1
    assert f"cannot be used: your user may not read {data}/memory.db-wal." in read.err
