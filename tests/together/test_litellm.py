"""The program with a real proxy of models: litellm's, whose mock models answer without any model.

The proxy is also a client of the program, as of other models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

import openai
import pytest

from ragchat.cli import main
from tests.support.browser import web_process
from tests.support.peers import need, running, server_command
from tests.support.processes import LONGEST_SECONDS
from tests.support.program import Done, Program, program_in

ANSWER = "Espresso is brewed at 9 bar [1]."  # in `tests/peers/litellm.yaml`, as are the models and the key
NOTE = "# Coffee\n\nEspresso is brewed at 9 bar."
QUESTION = "At what pressure is espresso brewed?"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    need("litellm")
    with running(server_command("litellm", "http"), tmp_path_factory.mktemp("litellm") / "log") as url:
        urlopen(f"{url}/health/liveliness", timeout=2 * LONGEST_SECONDS).close()
        yield f"{url}/v1"


@pytest.fixture(scope="module")
def program(url: str, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The program with a note in its memory, and the model `mock-chat`."""
    program = program_in(
        tmp_path_factory.mktemp("program"),
        RAGCHAT_MODEL_BASE_URL=url,
        RAGCHAT_MODEL_NAME="mock-chat",
        RAGCHAT_MODEL_RETRIES="0",
        OPENAI_API_KEY="sk-right",
    )
    (program.folder / "coffee.md").write_text(NOTE, encoding="utf-8")
    assert program("inject", "coffee.md").code == 0
    return program


Run = Callable[..., Done]


@pytest.fixture
def ragchat(
    program: Program,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    empty_stdin: None,  # noqa: ARG001
) -> Run:
    """Runs a command of the program in this process, with changes of its environment as keywords."""
    monkeypatch.chdir(program.folder)
    for name, value in program.variables.items():
        monkeypatch.setenv(name, value)

    def run(*words: str, **environ: str) -> Done:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        code = main(words)
        return Done(code, *capfd.readouterr())

    return run


def test_a_streamed_answer_is_cited_and_its_tokens_are_counted(ragchat: Run) -> None:
    answered = ragchat("ask", QUESTION, "--json").json
    assert (answered["answer"], answered["grounded"], answered["model"]) == (ANSWER, True, "mock-chat")
    assert [citation["uri"].rpartition("/")[2] for citation in answered["citations"]] == ["coffee.md"]
    assert answered["usage"]["completion_tokens"] > 0


def test_an_answer_in_one_piece_is_taken_too(ragchat: Run, tmp_path: Path) -> None:
    settings = tmp_path / "whole.toml"
    settings.write_text("[model]\nextra_body = { stream = false }\n", encoding="utf-8")
    answered = ragchat("--config", str(settings), "ask", QUESTION, "--json").json
    assert (answered["answer"], answered["grounded"]) == (ANSWER, True)


def test_the_chat_answers_line_by_line(program: Program) -> None:
    done = program(stdin=f"{QUESTION}\nAnd tea?\n")
    assert done.code == 0
    assert done.out.count(ANSWER) == 2


def test_an_unknown_model_has_a_near_name(ragchat: Run) -> None:
    done = ragchat("ask", QUESTION, "--model", "mock-chatt")
    assert (done.code, done.out) == (1, "")
    assert "has no model mock-chatt.\n  Did you mean mock-chat" in done.err


def test_a_refused_key_is_named_as_the_reason(ragchat: Run) -> None:
    done = ragchat("ask", QUESTION, OPENAI_API_KEY="sk-wrong")
    assert (done.code, done.out) == (1, "")
    assert "did not accept the key" in done.err


def test_a_limit_of_requests_is_named_as_the_reason(ragchat: Run) -> None:
    done = ragchat("ask", QUESTION, "--model", "mock-busy")
    assert (done.code, done.out) == (1, "")
    assert "accepts no more requests for now" in done.err


def test_embeddings_of_the_proxy_are_searched(ragchat: Run, url: str, tmp_path: Path) -> None:
    embedder = {"KIND": "openai", "MODEL": "mock-embedding", "BASE_URL": url}
    environ = {f"RAGCHAT_EMBEDDER_{name}": value for name, value in embedder.items()}
    assert ragchat("inject", "coffee.md", RAGCHAT_HOME=str(tmp_path), **environ).code == 0
    assert [hit["text"] for hit in ragchat("query", "espresso", "--json").json["hits"]] == [NOTE]
    assert "mock-embedding (2 dimensions)" in ragchat("memory", "stats").out


def test_the_proxy_passes_on_what_the_program_answers(program: Program, url: str) -> None:
    offline = replace(program, environ=program.environ | {"RAGCHAT_MODEL_NAME": "offline"})
    with (
        web_process(offline, "--api-only") as web,
        openai.OpenAI(base_url=url, api_key="sk-right", timeout=2 * LONGEST_SECONDS) as client,
    ):
        token = (program.home / "data" / "web-token").read_text(encoding="utf-8").strip()
        stream = client.chat.completions.create(
            model="ragchat",
            messages=[{"role": "user", "content": QUESTION}],
            stream=True,
            extra_body={"api_base": f"{web.origin}/v1", "api_key": token},
        )
        deltas = [part.choices[0].delta for part in stream]
    assert "".join(delta.content or "" for delta in deltas).startswith("[1] coffee.md:3")
    (cited,) = [note for delta in deltas for note in getattr(delta, "annotations", None) or []]
    assert cited["url_citation"]["title"] == "coffee.md:3"
