"""A server that wants to use the model (`ragchat.servers.sampling`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ragchat.llm.client import Model
from ragchat.llm.types import ModelEndpoint
from ragchat.servers.permissions import Permissions
from ragchat.ui.sampling import Sampling
from ragmcp.errors import InputDeclined
from ragmcp.protocol.schema.input import Sample, SamplingResult
from tests.client.llm.test_client import settings
from tests.support.dialogs import ScriptedDialog
from tests.support.openai_server import OpenAIServer, Reply

ASKED = Sample(
    messages=[{"role": "user", "content": {"type": "text", "text": "What is two and two?"}}],
    max_tokens=50,
    system_prompt="Be brief.",
)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer([Reply("Four."), Reply("Still four.")]) as server:
        yield server


async def sample(
    user: ScriptedDialog,
    folder: Path,
    server: OpenAIServer | None,
    request: Sample = ASKED,
    times: int = 1,
    **limits: Any,
) -> SamplingResult:
    chosen = replace(settings(), **limits)
    model = Model(ModelEndpoint("test-model", server.base_url, "k"), chosen) if server else None

    async def find() -> Model | None:
        return model

    sampling = Sampling(user, Permissions(folder), find, user.show)
    try:
        for _ in range(times):
            result = await sampling.answer("github", request)
        return result
    finally:
        if model is not None:
            await model.aclose()


async def test_the_request_is_shown_first_and_the_reply_before_it_is_sent(
    tmp_path: Path, server: OpenAIServer
) -> None:
    user = ScriptedDialog(["y", ""])
    result = await sample(user, tmp_path, server)
    assert (result.model, result.content["text"]) == ("test-model", "Four.")
    assert user.shown == [
        "github wants to ask test-model, for at most 50 tokens:",
        "  system: Be brief.",
        "  user: What is two and two?",
        "test-model replied:\nFour.",
    ]
    assert server.requests[0]["max_tokens"] == 50
    assert not server.requests[0].get("tools")


async def test_the_limit_of_the_settings_holds_for_servers_too(tmp_path: Path, server: OpenAIServer) -> None:
    await sample(ScriptedDialog(["y", ""]), tmp_path, server, max_tokens=20)
    assert server.requests[0]["max_tokens"] == 20


@pytest.mark.parametrize("replies", [["n"], [""], [None], ["y", "n"], ["y", None]])
async def test_without_the_users_leave_nothing_is_sent(
    tmp_path: Path, server: OpenAIServer, replies: list[str | None]
) -> None:
    with pytest.raises(InputDeclined, match="The user did not"):
        await sample(ScriptedDialog(replies), tmp_path, server)
    assert len(server.requests) == len(replies) - 1


@pytest.mark.parametrize("replies", [["sess", "n"], ["y", "yikes", "n"]])
async def test_after_a_word_that_is_no_choice_the_user_is_asked_again(
    tmp_path: Path, server: OpenAIServer, replies: list[str]
) -> None:
    user = ScriptedDialog(replies)
    with pytest.raises(InputDeclined, match="The user did not"):
        await sample(user, tmp_path, server)
    assert user.asked[-1] == user.asked[-2]
    assert user.shown[-1] == f"{replies[-2]!r} is none of the choices: type the letter or the whole word."


async def test_for_this_session_the_user_is_asked_once(tmp_path: Path, server: OpenAIServer) -> None:
    user = ScriptedDialog(["s"])
    assert (await sample(user, tmp_path, server, times=2)).content["text"] == "Still four."
    assert len(user.asked) == 1
    assert "test-model replied:\nStill four." in user.shown


async def test_never_is_remembered_for_that_server_until_it_is_removed(
    tmp_path: Path, server: OpenAIServer
) -> None:
    with pytest.raises(InputDeclined):
        await sample(ScriptedDialog(["v"]), tmp_path, server)
    with pytest.raises(InputDeclined, match="never"):
        await sample(ScriptedDialog(), tmp_path, server)
    Permissions(tmp_path).forget("github")
    assert Permissions(tmp_path).may_sample("github")


async def test_a_request_that_the_model_cannot_serve_is_declined_with_a_reason(
    tmp_path: Path, server: OpenAIServer
) -> None:
    image = {"type": "image", "data": "", "mimeType": "image/png"}
    with pytest.raises(InputDeclined, match="No language model"):
        await sample(ScriptedDialog(), tmp_path, None)
    shown = replace(ASKED, messages=[{"role": "user", "content": image}])
    with pytest.raises(InputDeclined, match="only text"):
        await sample(ScriptedDialog(), tmp_path, server, shown)
    with pytest.raises(InputDeclined, match="does not call tools"):
        await sample(ScriptedDialog(), tmp_path, server, replace(ASKED, tools=[{"name": "x"}]))


async def test_a_failure_of_the_model_is_the_reason(tmp_path: Path) -> None:
    with OpenAIServer([Reply(status=400)]) as server, pytest.raises(InputDeclined):
        await sample(ScriptedDialog(["y"]), tmp_path, server)
