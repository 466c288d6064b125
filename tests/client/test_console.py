"""What reaches the screen, and how a failure is described."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest

from ragchat.console import Console, Failure, describe, is_styled
from ragchat.errors import MemoryRefused, UnknownSession
from ragconfig.errors import UnknownSetting


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def console(*, as_json: bool = False) -> tuple[Console, io.StringIO, io.StringIO]:
    out, err = io.StringIO(), io.StringIO()
    return Console(json=as_json, stdout=out, stderr=err), out, err


@pytest.mark.parametrize(
    ("environ", "styled"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "unknown"}, False),
    ],
)
def test_a_terminal_is_styled_unless_somebody_does_not_want_it(environ: dict[str, str], styled: bool) -> None:
    assert is_styled(Terminal(), environ) is styled
    assert not is_styled(io.StringIO(), environ)


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (
            UnknownSession("abc"),
            Failure("SESSION_NOT_FOUND", "There is no session abc.", "`ragchat session ls` lists them."),
        ),
        (MemoryRefused("NOTHING_TO_UNDO", "No."), Failure("NOTHING_TO_UNDO", "No.")),
        (
            UnknownSetting("a", "x.toml", "b"),
            Failure("SETTINGS_INVALID", "Unknown setting a in x.toml.", "Did you mean b?"),
        ),
        (
            FileNotFoundError(2, "No such file or directory", "/x"),
            Failure("SYSTEM_ERROR", "No such file or directory: /x."),
        ),
        (ExceptionGroup("", [ExceptionGroup("", [MemoryRefused("A", "Inner.")])]), Failure("A", "Inner.")),
        (
            KeyError("x"),
            Failure("INTERNAL_ERROR", "Something went wrong inside ragchat: KeyError: 'x'"),
        ),
    ],
)
def test_every_exception_has_a_code_a_sentence_and_perhaps_a_hint(error: Exception, failure: Failure) -> None:
    assert describe(error) == failure


def test_a_failure_is_a_line_on_stderr_with_its_hint() -> None:
    screen, out, err = console()
    screen.error(UnknownSession("abc"))
    assert out.getvalue() == ""
    assert err.getvalue() == "ragchat: There is no session abc.\n  `ragchat session ls` lists them.\n"


def test_with_json_a_failure_is_one_document_on_stdout() -> None:
    screen, out, err = console(as_json=True)
    screen.error(UnknownSession("abc"))
    assert json.loads(out.getvalue())["error"]["code"] == "SESSION_NOT_FOUND"
    assert err.getvalue() == ""


def test_an_unexpected_failure_names_the_log_and_shows_no_traceback() -> None:
    screen, _, err = console()
    screen.error(KeyError("x"), "/state/ragchat.log")
    assert "/state/ragchat.log" in err.getvalue()
    assert "Traceback" not in err.getvalue()


def test_stored_text_cannot_speak_to_the_terminal() -> None:
    screen, out, err = console()
    screen.print("a\x1b]0;title\x07b\x9b31m")
    screen.note("\x1b[2J")
    assert not set("\x1b\x07\x9b") & set(out.getvalue() + err.getvalue())


def test_json_on_a_terminal_escapes_what_a_terminal_obeys() -> None:
    text = "é\x1b]0;title\x07\x9b31m\x7f\u202e字"
    shown, piped = Terminal(), io.StringIO()
    Console(json=True, stdout=shown).document(text)
    Console(json=True, stdout=piped).document(text)
    assert json.loads(shown.getvalue()) == json.loads(piped.getvalue()) == text
    assert "é" in shown.getvalue()
    assert not set("\x1b\x07\x9b\x7f\u202e") & set(shown.getvalue())


def test_a_table_lines_up_also_with_wide_and_combining_characters() -> None:
    screen, out, _ = console()
    screen.listing(None, ("name", "n"), [("日本", 1), ("e\u0301e", 22), ("a\nb", 3)])
    assert out.getvalue() == "name  n\n日本  1\ne\u0301e    22\na b   3\n"


@pytest.mark.parametrize("failure", [None, Failure("WORSE", "It is worse.")])
def test_a_result_with_a_failure_makes_the_exit_code_1_and_has_its_notes_on_stderr(
    failure: Failure | None,
) -> None:
    screen, out, err = console()
    assert screen.result({"n": 1}, "one", notes=["Note."], failure=failure) == int(failure is not None)
    assert (out.getvalue(), err.getvalue()) == ("one\n", "Note.\n")
    screen, out, err = console(as_json=True)
    assert screen.result({"n": 1}, "one", notes=["Note."], failure=failure) == int(failure is not None)
    assert ("error" in json.loads(out.getvalue()), err.getvalue()) == (failure is not None, "")


def test_a_line_of_a_table_is_cut_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    terminal = Terminal()
    Console(stdout=terminal).listing(None, ("a",), [("x" * 30,)])
    assert terminal.getvalue().splitlines()[1] == "x" * 17 + "..."
    screen, out, _ = console()
    screen.listing(None, ("a",), [("x" * 30,)])
    assert out.getvalue().splitlines()[1] == "x" * 30


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_no_encoding_stops_the_program_and_a_pipe_is_utf_8(encoding: str) -> None:
    code = (
        "from ragchat.console import Console, prepare_streams\n"
        "prepare_streams()\n"
        "Console().print('❯ Zürich 日本')\n"
        "Console().document({'name': 'a\\udc80b'})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env={"PYTHONIOENCODING": encoding}, check=True
    )
    first, _, rest = done.stdout.decode("utf-8").partition("\n")
    assert first == "❯ Zürich 日本"
    assert json.loads(rest) == {"name": "a\udc80b"}


@pytest.mark.parametrize("option", ["-B", "-u"])
def test_stderr_stays_as_python_opened_it(option: str) -> None:
    code = (
        "import sys\n"
        "from ragchat.console import prepare_streams\n"
        "before = sys.stderr.write_through\n"
        "prepare_streams()\n"
        "print('ä', file=sys.__stderr__)\n"
        "print(sys.stderr.write_through == before)"
    )
    done = subprocess.run([sys.executable, option, "-c", code], capture_output=True, check=False)
    assert (done.stderr.decode().strip(), done.stdout.strip()) == ("ä", b"True")
