"""The scripts that ship: each is run by `ragchat run`, offline or with a model behind a real HTTP server."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.openai_server import OpenAIServer, Reply
from tests.support.program import program_in

SCRIPTS = Path(__file__).parent
OFFLINE = ("first_steps", "idempotent", "not_in_memory")


def test_every_script_that_ships_is_run_here() -> None:
    assert {path.stem for path in SCRIPTS.glob("*.toml")} == {*OFFLINE, "with_a_model"}


@pytest.mark.parametrize("name", OFFLINE)
def test_a_script_passes_without_a_model(name: str, tmp_path: Path) -> None:
    done = program_in(tmp_path)("run", str(SCRIPTS / f"{name}.toml"), "--json")
    assert [step["failures"] for step in done.json["steps"] if not step["passed"]] == []
    assert (done.code, done.json["failed"]) == (0, 0)


def test_a_script_passes_with_a_model(tmp_path: Path) -> None:
    replies = [Reply('It was "re-coated with aluminium in 2019" [1].'), Reply("By the workshop in Jena [1].")]
    with OpenAIServer(replies) as server:
        ragchat = program_in(tmp_path, RAGCHAT_MODEL_BASE_URL=server.base_url, OPENAI_API_KEY="test")
        done = ragchat("run", str(SCRIPTS / "with_a_model.toml"), "--model", "test-model")
    assert (done.code, done.out.splitlines()[-1]) == (0, "With a language model: 3 of 3 steps passed.")
    first, second = (request["messages"] for request in server.requests)
    assert "re-coated with aluminium" in str(first)
    assert "When was the mirror" in str(second), "the second question goes on with the first"


def test_a_failed_expectation_is_named_and_gives_exit_code_1(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path)
    script = tmp_path / "wrong.toml"
    script.write_text(
        '[[step]]\ninject = { path = "gone" }\n[[step]]\nquery = "x"\nexpect = { contains = "y" }\n',
        encoding="utf-8",
    )
    done = ragchat("run", str(script))
    assert done.code == 1
    assert f"       {tmp_path / 'gone'} does not exist.\n" in done.out
    assert "       does not contain 'y'\n" in done.out
    assert done.out.endswith("0 of 2 steps passed.\n")


def test_a_script_leaves_the_users_memory_and_sessions_alone(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path)
    assert ragchat("run", str(SCRIPTS / "first_steps.toml")).code == 0
    assert not (ragchat.home / "data").exists()


def test_a_script_can_keep_its_memory_beside_itself(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path)
    folder = tmp_path / "scripts"
    shutil.copytree(SCRIPTS / "documents", folder / "documents")
    script = folder / "keep.toml"
    script.write_text(
        '[script]\nmemory = "keep.db"\n[[step]]\ninject = { path = "documents" }\n', encoding="utf-8"
    )
    assert ragchat("run", str(script)).code == 0
    stats = ragchat("memory", "stats", "--memory", str(folder / "keep.db"), "--json").json
    assert stats["documents"] == 3


def test_a_script_with_a_mistake_is_refused_before_it_runs(tmp_path: Path) -> None:
    script = tmp_path / "bad.toml"
    script.write_text("[[step]]\nakk = 'x'\n", encoding="utf-8")
    done = program_in(tmp_path)("run", str(script), "--json")
    assert (done.code, done.json["error"]["hint"]) == (1, "Did you mean ask?")
