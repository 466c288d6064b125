"""The scripts that ship: each is run by `ragchat run`, offline or with a model behind a real HTTP server.

Covers `ragchat.commands.run`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ragchat.commands.run import summary
from ragchat.scripts.runner import ScriptReport, StepReport
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.program import program_in

SCRIPTS = Path(__file__).parent
README = SCRIPTS.parents[1] / "README.md"
OFFLINE = ("first_steps", "idempotent", "not_in_memory")


def test_every_script_that_ships_is_run_here() -> None:
    assert {path.stem for path in SCRIPTS.glob("*.toml")} == {*OFFLINE, "with_a_model"}


@pytest.mark.parametrize("name", OFFLINE)
@pytest.mark.full
def test_a_script_passes_without_a_model_and_leaves_the_users_memory_and_sessions_alone(
    name: str, tmp_path: Path
) -> None:
    ragchat = program_in(tmp_path)
    done = ragchat("run", str(SCRIPTS / f"{name}.toml"), "--json")
    assert [step["failures"] for step in done.json["steps"] if not step["passed"]] == []
    assert (done.code, done.json["failed"]) == (0, 0)
    assert not (ragchat.home / "data").exists()


def _flat(folder: Path) -> None:
    """The note of the README's transcript."""
    folder.mkdir()
    (folder / "flat.md").write_text(
        "# Flat\n\n## Boiler\n\nPressure must stay between 1.2 and 1.8 bar. "
        "Refill it with the blue valve under the sink.\n",
        encoding="utf-8",
    )


@pytest.mark.full
def test_the_readme_in_memory_does_not_hide_the_note_that_its_transcript_asks_for(tmp_path: Path) -> None:
    _flat(tmp_path / "notes")
    ragchat = program_in(tmp_path)
    assert ragchat("inject", str(tmp_path / "notes"), str(README)).code == 0
    done = ragchat("ask", "--offline", "How much water pressure does the boiler need?")
    assert "flat.md:5" in done.out
    assert "> Pressure must stay between 1.2 and 1.8 bar. " in done.out


def test_a_failed_step_shows_what_was_answered(tmp_path: Path) -> None:
    _flat(tmp_path / "notes")
    script = tmp_path / "script.toml"
    script.write_text(
        '[[step]]\ninject = "notes"\n'
        '[[step]]\nask = "How much pressure does the boiler need?"\nexpect = { contains = "9 bar" }\n',
        encoding="utf-8",
    )
    done = program_in(tmp_path)("run", str(script))
    assert done.code == 1
    lines = done.out.splitlines()
    assert "       does not contain '9 bar'" in lines
    assert any(line.startswith("       | Pressure must stay between 1.2 and 1.8 bar. ") for line in lines)
    assert program_in(tmp_path)("run", str(script), "--json").json["error"] == {
        "code": "STEPS_FAILED",
        "message": "1 of 2 steps passed.",
        "hint": "",
    }


@pytest.mark.full
def test_a_long_answer_of_a_failed_step_is_cut(tmp_path: Path) -> None:
    script = tmp_path / "script.toml"
    text = "\\n".join(f"line {number} of green tea" for number in range(30))
    script.write_text(
        f'[[step]]\ninject = {{ text = "{text}" }}\n'
        '[[step]]\nquery = "green tea"\nexpect = { contains = "coffee" }\n',
        encoding="utf-8",
    )
    lines = program_in(tmp_path)("run", str(script)).out.splitlines()
    assert "       | line 19 of green tea" in lines
    assert "       | … 10 more lines; --json has them all" in lines
    assert "       | line 20 of green tea" not in lines


@pytest.mark.full
def test_a_step_can_inject_several_paths(tmp_path: Path) -> None:
    for name in ("one.md", "two.md"):
        (tmp_path / name).write_text(f"This is {name}.", encoding="utf-8")
    script = tmp_path / "script.toml"
    script.write_text(
        '[[step]]\ninject = ["one.md", "two.md"]\nexpect = { cites = ["one.md", "two.md"] }\n',
        encoding="utf-8",
    )
    assert program_in(tmp_path)("run", str(script)).code == 0


@pytest.mark.full
def test_a_script_passes_with_a_model(tmp_path: Path) -> None:
    replies = [Reply('It was "re-coated with aluminium in 2019" [1].'), Reply("By the workshop in Jena [1].")]
    with OpenAIServer(replies) as server:
        ragchat = program_in(tmp_path, RAGCHAT_MODEL_BASE_URL=server.base_url, OPENAI_API_KEY="test")
        done = ragchat("run", str(SCRIPTS / "with_a_model.toml"), "--model", "test-model")
    assert (done.code, done.out.splitlines()[-1]) == (0, "With a language model: 3 of 3 steps passed.")
    first, second = (request["messages"] for request in server.requests)
    assert "re-coated with aluminium" in str(first)
    assert "When was the mirror" in str(second), "the second question goes on with the first"


@pytest.mark.full
def test_a_failed_expectation_is_named_and_gives_exit_code_1(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path)
    script = tmp_path / "wrong.toml"
    script.write_text(
        '[[step]]\ninject = { path = "gone" }\n'
        '[[step]]\nquery = """two\nlines"""\nexpect = { contains = "y" }\n',
        encoding="utf-8",
    )
    done = ragchat("run", str(script))
    assert done.code == 1
    assert f"       {tmp_path / 'gone'} does not exist.\n" in done.out
    assert "query   two lines\n       does not contain 'y'\n" in done.out
    assert done.out.endswith("0 of 2 steps passed.\n")


@pytest.mark.full
def test_a_script_can_keep_its_memory_beside_itself(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path)
    folder = tmp_path / "scripts"
    shutil.copytree(SCRIPTS / "documents", folder / "documents")
    script = folder / "keep.toml"
    script.write_text(
        '[script]\nmemory = "keep.db"\n[[step]]\ninject = { path = "documents" }\n', encoding="utf-8"
    )
    done = ragchat("run", str(script))
    assert (done.code, done.err) == (0, "")
    stats = ragchat("memory", "stats", "--memory", str(folder / "keep.db"), "--json").json
    assert stats["documents"] == 3


def test_a_fresh_memory_is_a_file_whatever_the_users_own_memory_and_index_are(tmp_path: Path) -> None:
    _flat(tmp_path / "notes")
    script = tmp_path / "script.toml"
    script.write_text('[[step]]\ninject = "notes"\n[[step]]\nask = "Boiler?"\n', encoding="utf-8")
    settings = tmp_path / "team.toml"
    settings.write_text(
        '[store]\nurl = "postgresql://no.example/kb"\n[index]\nurl = "pgvector"\n[memory]\nread_only = true\n'
    )
    ragchat = program_in(tmp_path)
    assert ragchat("run", "--config", str(settings), str(script)).code == 0
    asked = ragchat("ask", "--config", str(settings), "Which colour?", stdin="The sky is blue in colour.\n")
    assert (asked.code, "blue" in asked.out) == (0, True), asked.err
    own = ragchat("run", "--memory", str(tmp_path / "kb.db"), "--config", str(settings), str(script))
    assert "Memory is read-only." in own.out + own.err


@pytest.mark.parametrize("place", ["~/kb.db", "postgresql://me:secret@no.example/kb"])
def test_the_memory_of_a_script_may_be_in_the_home_folder_and_a_database(tmp_path: Path, place: str) -> None:
    script = tmp_path / "script.toml"
    script.write_text(
        f'[script]\nmemory = "{place}"\n[[step]]\ninject = {{ text = "x y" }}\n', encoding="utf-8"
    )
    done = program_in(tmp_path, HOME=str(tmp_path / "my"))("run", str(script))
    if place.startswith("~"):
        assert (done.code, (tmp_path / "my" / "kb.db").exists()) == (0, True)
    else:
        assert "store.url is not usable: it has a password" in done.err
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(("~", "postgresql"))] == []


def test_a_memory_that_a_script_names_and_that_does_not_exist_is_named(tmp_path: Path) -> None:
    script = tmp_path / "script.toml"
    script.write_text('[script]\nmemory = "kep.db"\n[[step]]\nask = "Why?"\n', encoding="utf-8")
    done = program_in(tmp_path)("run", str(script), "--offline")
    assert (done.code, done.err) == (0, f"There is no memory at {tmp_path / 'kep.db'} yet.\n")


def test_a_script_with_a_mistake_is_refused_before_it_runs(tmp_path: Path) -> None:
    script = tmp_path / "bad.toml"
    script.write_text("[[step]]\nakk = 'x'\n", encoding="utf-8")
    done = program_in(tmp_path)("run", str(script), "--json")
    assert (done.code, done.json["error"]["hint"]) == (1, "Did you mean ask?")


def test_one_step_is_counted_as_one() -> None:
    step = StepReport(1, "ask", "x", True, [], 0.0, "", [])
    assert summary(ScriptReport("", [step])) == "1 of 1 step passed."
