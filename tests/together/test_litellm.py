"""The program with a real proxy of models: litellm's, whose mock models answer without any model.

The proxy is also a client of the program, as of other models.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

import openai
import pytest

from tests.support.browser import web_process
from tests.support.peers import need, running, server_command
from tests.support.processes import LONGEST_SECONDS
from tests.support.program import Program, program_in

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
def ragchat(url: str, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The program with a note in its memory, and the model `mock-chat`."""
    ragchat = program_in(
        tmp_path_factory.mktemp("program"),
        RAGCHAT_MODEL_BASE_URL=url,
        RAGCHAT_MODEL_NAME="mock-chat",
        RAGCHAT_MODEL_RETRIES="0",
        OPENAI_API_KEY="sk-right",
    )
    (ragchat.folder / "coffee.md").write_text(NOTE, encoding="utf-8")
    assert ragchat("inject", "coffee.md").code == 0
    return ragchat


def with_environ(ragchat: Program, **environ: str) -> Program:
    return replace(ragchat, environ=ragchat.environ | environ)


def test_a_streamed_answer_is_cited_and_its_tokens_are_counted(ragchat: Program) -> None:
    answered = ragchat("ask", QUESTION, "--json").json
    assert (answered["answer"], answered["grounded"], answered["model"]) == (ANSWER, True, "mock-chat")
    assert [citation["uri"].rpartition("/")[2] for citation in answered["citations"]] == ["coffee.md"]
    assert answered["usage"]["completion_tokens"] > 0


def test_an_answer_in_one_piece_is_taken_too(ragchat: Program, tmp_path: Path) -> None:
    settings = tmp_path / "whole.toml"
    settings.write_text("[model]\nextra_body = { stream = false }\n", encoding="utf-8")
    answered = ragchat("--config", str(settings), "ask", QUESTION, "--json").json
    assert (answered["answer"], answered["grounded"]) == (ANSWER, True)


def test_the_chat_answers_line_by_line(ragchat: Program) -> None:
    done = ragchat(stdin=f"{QUESTION}\nAnd tea?\n")
    assert done.code == 0
    assert done.out.count(ANSWER) == 2


def test_an_unknown_model_has_a_near_name(ragchat: Program) -> None:
    done = ragchat("ask", QUESTION, "--model", "mock-chatt")
    assert (done.code, done.out) == (1, "")
    assert "has no model mock-chatt.\n  Did you mean mock-chat" in done.err


def test_a_refused_key_is_named_as_the_reason(ragchat: Program) -> None:
    done = with_environ(ragchat, OPENAI_API_KEY="sk-wrong")("ask", QUESTION)
    assert (done.code, done.out) == (1, "")
    assert "did not accept the key" in done.err


def test_a_limit_of_requests_is_named_as_the_reason(ragchat: Program) -> None:
    done = ragchat("ask", QUESTION, "--model", "mock-busy")
    assert (done.code, done.out) == (1, "")
    assert "accepts no more requests for now" in done.err


def test_embeddings_of_the_proxy_are_searched(ragchat: Program, url: str, tmp_path: Path) -> None:
    embedded = with_environ(
        replace(ragchat, home=tmp_path),
        RAGCHAT_EMBEDDER_KIND="openai",
        RAGCHAT_EMBEDDER_MODEL="mock-embedding",
        RAGCHAT_EMBEDDER_BASE_URL=url,
    )
    assert embedded("inject", "coffee.md").code == 0
    assert [hit["text"] for hit in embedded("query", "espresso", "--json").json["hits"]] == [NOTE]
    assert "mock-embedding (2 dimensions)" in embedded("memory", "stats").out


def test_the_proxy_passes_on_what_the_program_answers(ragchat: Program, url: str) -> None:
    with (
        web_process(with_environ(ragchat, RAGCHAT_MODEL_NAME="offline"), "--api-only") as web,
        openai.OpenAI(base_url=url, api_key="sk-right", timeout=2 * LONGEST_SECONDS) as client,
    ):
        token = (ragchat.home / "data" / "web-token").read_text(encoding="utf-8").strip()
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
