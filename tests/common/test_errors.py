"""The base of the errors: fields, templates, and what the standard library does with an exception.

Those of `ragmcp` have it too.
"""

from __future__ import annotations

import copy
import errno
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragcommon.errors import (
    DECODE_ERRORS,
    OutOfMemory,
    StructuredError,
    decode_reason,
    of_the_system,
    os_reason,
)
from ragmcp.errors import RagMcpError


class Lost(StructuredError):
    name: str
    places: Sequence[str] = ()
    sentence = "{name!r} is not in {places}."
    hint = "Look for {name_in_capitals}."

    @property
    def name_in_capitals(self) -> str:
        return self.name.upper()


class LostForGood(Lost):
    seconds: float = 1.5
    hint: str = "Give up."
    sentence = "{name} was lost {seconds:g} s ago."


class LostOnTheWire(RagMcpError):
    name: str
    places: Sequence[str] = ()
    sentence = "{name!r} is not in {places}."


@pytest.mark.parametrize("kind", [Lost, LostOnTheWire])
def test_a_sentence_is_filled_from_the_fields(kind: type[Lost | LostOnTheWire]) -> None:
    assert str(kind("key", ["a", "b"])) == "'key' is not in a, b."
    assert str(kind(name="key")) == "'key' is not in none."


def test_the_code_is_the_name_of_the_class_unless_it_states_one() -> None:
    class HTTPLost(Lost):
        sentence = "Nothing came."

    class LostAgain(Lost):
        code = "LOST"
        sentence = "It was lost again."

    class LostTwice(LostAgain):
        pass

    assert (Lost.code, LostForGood.code, HTTPLost.code) == ("LOST", "LOST_FOR_GOOD", "HTTP_LOST")
    assert (LostAgain.code, LostTwice.code) == ("LOST", "LOST")


@pytest.mark.parametrize("blank", ["", "  "])
def test_a_blank_value_is_quoted_once(blank: str) -> None:
    assert str(Lost(blank)) == f"'{blank}' is not in none."
    assert str(LostForGood(blank)) == f"'{blank}' was lost 1.5 s ago."


def test_braces_in_a_value_stay_as_they_are() -> None:
    assert str(LostForGood("{seconds}")) == "{seconds} was lost 1.5 s ago."
    assert LostForGood("key", hint="{name}").hint == "{name}"


def test_a_hint_is_a_template_and_can_be_replaced() -> None:
    error = Lost("key")
    assert error.hint == "Look for KEY."
    error.hint = "Buy another."
    assert (error.hint, Lost("key").hint) == ("Buy another.", "Look for KEY.")


def test_a_subclass_adds_fields_after_those_of_its_parent() -> None:
    error = LostForGood("key", ["a"], 2.0)
    assert (str(error), error.hint) == ("key was lost 2 s ago.", "Give up.")
    assert error.details() == {"name": "key", "places": ["a"], "seconds": 2.0}


@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), (("a", (), "b"), {}), (("a",), {"name": "b"}), (("a",), {"color": "b"})],
    ids=["too few", "too many", "twice", "unknown"],
)
@pytest.mark.parametrize("kind", [Lost, LostOnTheWire])
def test_wrong_fields_are_a_type_error(
    kind: type[Lost | LostOnTheWire], values: tuple[Any, ...], named: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match="takes name, places"):
        kind(*values, **named)


@pytest.mark.parametrize("error", [Lost("key", places=["a"]), LostOnTheWire("key", places=["a"])])
def test_an_error_survives_copying_and_pickling(error: Lost | LostOnTheWire) -> None:
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(other) is type(error)
        assert (str(other), other.args, vars(other)) == (str(error), error.args, vars(error))


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("can't allocate lock"),
        ImportError("libopenblas.so: failed to map segment from shared object"),
        ExceptionGroup("", [ExceptionGroup("", [MemoryError()])]),
    ],
)
def test_what_fails_without_memory_says_so(error: Exception) -> None:
    found = of_the_system(error)
    assert isinstance(found, OutOfMemory)
    assert str(found).startswith("The system gives this program no more memory")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
def test_a_limit_on_threads_or_open_files_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = RuntimeError("can't start new thread")
    found = of_the_system(threads)
    assert str(found) == "The system gives this program no more threads."
    assert found
    assert "`ulimit -u`" in found.hint
    files = OSError(errno.EMFILE, "Too many open files", "a.md")
    assert str(of_the_system(files)).startswith("Too many open files; the limit is ")
    assert str(of_the_system(files)).endswith(" (`ulimit -n`): a.md.")
    monkeypatch.setattr("ragcommon.errors._ENOUGH_BYTES", 2**60)
    assert isinstance(of_the_system(threads), OutOfMemory)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not remove the working folder")
def test_a_working_folder_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(FileNotFoundError) as error:
        Path.cwd()
    assert str(of_the_system(error.value)) == "The working folder no longer exists."
    missing = of_the_system(FileNotFoundError(errno.ENOENT, "No such file or directory", "a.md"))
    assert str(missing) == "No such file or directory: a.md."


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_the_sentence_about_memory_needs_no_module_that_is_not_loaded() -> None:
    source = (
        "import sys\nfrom ragcommon.errors import of_the_system\nsys.meta_path.clear()\n"
        "print(of_the_system(MemoryError()))"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("The system gives this program no more memory")


def test_a_library_that_fails_while_memory_is_short_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    again = ImportError("cannot load module more than once per process")
    assert of_the_system(again) is None
    monkeypatch.setattr("ragcommon.errors._ENOUGH_BYTES", 2**60)
    assert isinstance(of_the_system(again), OutOfMemory)
    assert isinstance(of_the_system(SystemError("error return without exception set")), OutOfMemory)
    assert of_the_system(ModuleNotFoundError("no module named docx")) is None


def test_the_reason_of_an_error_ends_a_sentence() -> None:
    assert os_reason(FileNotFoundError(errno.ENOENT, "No such file or directory", "a")) == (
        "no such file or directory"
    )
    assert os_reason(OSError("it is a link")) == "it is a link"
    assert os_reason(ValueError("Odd name")) == "Odd name"


@pytest.mark.parametrize("content", [b'"\xff"', b'{"\xff": 1}'])
def test_json_that_is_not_utf_8_is_called_that(content: bytes) -> None:
    with pytest.raises(DECODE_ERRORS) as raised:
        msgspec.json.decode(content)
    assert decode_reason(raised.value, content) == "it is not text in UTF-8"


def test_an_error_of_the_system_is_a_sentence_with_its_place() -> None:
    found = of_the_system(PermissionError(errno.EACCES, "Permission denied", "/a/b"))
    assert (str(found), found and found.hint) == (
        "Permission denied: /a/b.",
        "Check the permissions of it and its folder.",
    )
    assert of_the_system(RuntimeError("a bug")) is None
    assert str(OutOfMemory(200_000_000)) == (
        "The system gives this program no more memory; its limit is 200 MB (`ulimit -v`)."
    )
