"""`ragchat eval`, `case`, `replay` and `session stale` as processes.

Covers `ragchat.commands.eval`, `ragchat.commands.replay` and `ragchat.arguments.evaluation`.
"""

from __future__ import annotations

import json
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.openai_server import OpenAIServer, Reply
from tests.support.processes import LONGEST_SECONDS
from tests.support.program import program_in

pytestmark = pytest.mark.full


def test_a_changed_document_is_a_step_back_and_marks_the_answer(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path)
    tea = ragchat.folder / "tea.md"
    tea.write_text("# Tea\n\nGreen tea is steeped at 75 degrees.\n", "utf-8")
    (ragchat.folder / "cup.md").write_text("# Cup\n\nA cup of green tea costs 3 euros.\n", "utf-8")
    ragchat("inject", "tea.md", "cup.md")
    ragchat("notebook", "new", "teas", "--in", "tea.md")
    chat = ragchat("--notebook", "teas", stdin="How is green tea steeped?\n/good\n")
    assert "Saved: the answer is in tea.md:3." in chat.err
    first = ragchat("eval", "--json")
    assert (first.code, first.json["right"], first.json["worse"]) == (0, 1, [])

    tea.write_text("# Tea\n\nBlack tea is boiled.\n", "utf-8")
    ragchat("inject", "tea.md")
    second = ragchat("eval", "-k", "12")
    assert second.code == 1
    assert "worse: How is green tea steeped?: no longer right" in second.out
    assert "retrieval.top_k: 30 → 12" in second.out
    assert "1 document changed: tea.md" in second.out
    (stale,) = ragchat("session", "stale", "--json").json["turns"]
    assert stale["places"] == ["tea.md:3"]
    assert "! Changed since: tea.md:3" in ragchat("session", "show", stale["session_id"]).out
    replayed = ragchat("replay", stale["turn_id"][:5]).out
    assert "facts that are gone: 75 degrees" in replayed
    assert "3 euros" not in replayed  # it is not in the notebook

    ragchat(stdin="What does a cup of green tea cost?\n/good\n")
    ragchat("notebook", "rm", "teas")
    third = ragchat("eval", "--json")
    assert (third.code, third.json["failed"], third.json["right"]) == (1, 1, 1)
    assert third.json["error"]["code"] == "CASES_NOT_ASKED"


def a_set(folder: Path, header: str = "") -> Path:
    path = folder / "set.toml"
    path.write_text(header + '[[step]]\nask = "How is green tea steeped?"\nexpect = { contains = "75" }\n')
    return path


def test_a_set_is_asked_of_the_model_and_memory_that_it_names_and_an_empty_one_is_named(
    tmp_path: Path,
) -> None:
    ragchat = program_in(tmp_path, RAGCHAT_MODEL_NAME="test-model", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    a_set(ragchat.folder, '[script]\nmodel = "offline"\nmemory = "tea.db"\n')
    empty = ragchat("eval", "--set", "set.toml")
    assert (empty.code, empty.err) == (0, f"The memory {ragchat.folder / 'tea.db'} is empty.\n")
    (ragchat.folder / "tea.md").write_text("Green tea is steeped at 75 degrees.\n", "utf-8")
    ragchat("inject", "tea.md", "--memory", "tea.db")
    done = ragchat("eval", "--set", "set.toml", "--json")
    assert (done.json["right"], done.json["conditions"]["model"], done.err) == (1, "offline", "")
    assert ragchat("eval", "--set", "set.toml", "--memory", "no.db").err.endswith("no.db is empty.\n")


def test_a_run_that_cannot_be_saved_is_shown(tmp_path: Path) -> None:
    sessions = tmp_path / "sessions.db"
    ragchat = program_in(tmp_path, RAGCHAT_SESSIONS_PATH=str(sessions))
    a_set(ragchat.folder)
    assert ragchat("eval", "--offline", "--set", "set.toml").code == 0
    with closing(sqlite3.connect(sessions)) as db:
        db.execute("CREATE TRIGGER full BEFORE INSERT ON runs BEGIN SELECT RAISE(FAIL, 'full'); END")
    done = ragchat("eval", "--offline", "--set", "set.toml", "--json")
    assert (done.code, done.json["of"], done.json["error"]["code"]) == (1, 1, "SESSIONS_UNAVAILABLE")
    assert "ragchat: This run was not saved. The sessions in " in done.err


def test_a_failure_has_what_was_said_of_the_answer(tmp_path: Path) -> None:
    with OpenAIServer([Reply("It is steeped", finish="length")]) as server:
        ragchat = program_in(
            tmp_path,
            RAGCHAT_MODEL_NAME="test-model",
            OPENAI_BASE_URL=server.base_url,
            OPENAI_API_KEY="test",
        )
        a_set(ragchat.folder)
        told = "       ! The answer was cut off: the model reached its limit of tokens.\n"
        assert told in ragchat("eval", "--set", "set.toml").out
        assert told in ragchat("run", "set.toml").out
        (step,) = ragchat("run", "set.toml", "--json").json["steps"]
        assert told.removeprefix("       ! ").strip() in step["notices"]


def test_a_model_that_does_not_answer_takes_no_answer_of_another_one(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path)
    ragchat("ask", "--offline", "How is green tea steeped?")
    replies = [Reply("At 75 degrees."), Reply(status=400)]
    with OpenAIServer(replies, models=["one", "two", "three"]) as server:
        ragchat = program_in(tmp_path, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="test")
        names = ["one", "two", "three", "offline"]
        done = ragchat("replay", *(part for name in names for part in ("--model", name)), "--json")
        assert [one["model"] for one in done.json["now"]] == ["one", "offline"]
        told = done.json["error"]["message"]
        assert (told.startswith("two did not answer: "), " three did not answer: " in told) == (True, True)
        assert (done.code, "two did not answer: " in done.err) == (1, True)
        alone = ragchat("replay", "--model", "two", "--json")
        assert (alone.code, [*alone.json]) == (1, ["error"])


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_run_that_is_stopped_prints_the_cases_that_were_asked(tmp_path: Path) -> None:
    held = Reply("At 80 degrees.", hold_after=0)
    with OpenAIServer([Reply("At 75 degrees."), held]) as server:
        ragchat = program_in(
            tmp_path,
            RAGCHAT_MODEL_NAME="test-model",
            OPENAI_BASE_URL=server.base_url,
            OPENAI_API_KEY="test",
        )
        path = a_set(ragchat.folder)
        path.write_text(2 * path.read_text("utf-8"), "utf-8")
        with ragchat.started("eval", "--set", "set.toml", "--json") as running:
            assert held.reached.wait(LONGEST_SECONDS)
            running.send_signal(signal.SIGTERM)
            out, _ = running.communicate(timeout=LONGEST_SECONDS)
    told = json.loads(out)
    assert (running.returncode, told["error"]["code"]) == (1, "STOPPED")
    assert [one["right"] for one in told["cases"]] == [True]
