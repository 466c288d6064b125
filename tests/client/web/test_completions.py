"""The door for other programs, by the package `openai`, Open WebUI's requests, and attacks.

Of `completions`, `programs` and `protocol`; `access` lets its requests in.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import openai
import pytest
from msgspec import convert

from ragchat.answer import Answer, Candidate
from ragchat.conversation import Conversation
from ragchat.errors import MemoryUnavailable
from ragchat.memory.client import MemoryClient
from ragchat.sessions.store import SessionStore, sessions_path
from ragchat.web import programs
from ragchat.web.access import Keys
from ragchat.web.app import make_app
from ragchat.web.chats import Chats
from ragchat.web.errors import BadRequest, NotSupported
from ragchat.web.loads import Loads
from ragchat.web.programs import Programs
from ragchat.web.protocol import Message, dialogue, open_webui_event
from ragchat.web.site import MAX_BODY, Site
from ragcommon.listening import ConnectionLimits, Listener, bound
from ragmcp.concurrency import background_task
from tests.support.browser import serving
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.processes import LONGEST_SECONDS
from tests.support.program import Program
from tests.support.servers import GOOD, write
from tests.support.turns import ListMemory, hit, no_servers, settings_in
from tests.support.webchat import with_model

TOKEN = "the-token-of-other-programs"
SKY = hit("The sky is blue because of Rayleigh scattering.")
QUESTION = "Why is the sky blue?"
ASKED: list[Any] = [{"role": "user", "content": QUESTION}]


class Door:
    """The application on a port of its own, in this process."""

    def __init__(self, origin: str, site: Site, keys: Keys) -> None:
        self.origin = origin
        self.site = site
        self.keys = keys
        self.openai = openai.AsyncOpenAI(base_url=f"{origin}/v1", api_key=TOKEN, timeout=LONGEST_SECONDS)
        self.client = httpx2.AsyncClient(base_url=origin, timeout=LONGEST_SECONDS)
        self.token = {"authorization": f"Bearer {TOKEN}"}
        self.browser = {"cookie": f"ragchat={keys.sign_in()}", "origin": origin}

    async def post(self, body: object, **headers: str) -> httpx2.Response:
        return await self.client.post("/v1/chat/completions", json=body, headers={**self.token, **headers})


@asynccontextmanager
async def door(
    folder: Path, model: OpenAIServer | None = None, memory: MemoryClient | None = None
) -> AsyncIterator[Door]:
    of_model = {"model__name": "test-model", "model__base_url": model.base_url} if model else {}
    settings = settings_in(folder, **of_model)
    servers = no_servers(settings)
    memory = memory or ListMemory([SKY])
    make = partial(Conversation, settings, memory, servers, {})
    with bound("127.0.0.1", 0) as listening:
        origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
        async with (
            Chats(make) as chats,
            Programs(make) as for_programs,
            Loads() as loads,
            SessionStore(sessions_path(settings)) as sessions,
        ):
            site = Site(settings, memory, servers, sessions, chats, loads, for_programs)
            keys = Keys(token=TOKEN)
            app = make_app(site, keys, frozenset([origin]), "ragchat", private=True)
            listener = Listener(app, ConnectionLimits(5.0, 1 << 16, 5, 1))
            async with background_task(partial(listener.run_on, listening)):
                await listener.started_listening.wait()
                opened = Door(origin, site, keys)
                async with opened.openai, opened.client:
                    yield opened


async def test_without_a_model_the_answer_is_the_cards_with_annotations(tmp_path: Path) -> None:
    async with door(tmp_path) as opened:
        assert [one.id async for one in opened.openai.models.list()] == ["ragchat"]
        answered = await opened.openai.chat.completions.create(model="ragchat", messages=ASKED)
    message = answered.choices[0].message
    assert message.content is not None
    assert "> The sky is blue because of Rayleigh scattering." in message.content
    assert message.annotations is not None
    cited = [one.url_citation for one in message.annotations]
    assert [message.content[one.start_index : one.end_index] for one in cited] == ["[1]"]
    assert cited[0].url.startswith(SKY.uri + "#L")
    assert (answered.choices[0].finish_reason, answered.usage) != ("stop", None)


async def test_an_answer_in_one_piece_has_the_thoughts_of_the_model(tmp_path: Path) -> None:
    with OpenAIServer([Reply("It scatters [1].", reasoning="Let me see.")]) as model:
        async with door(tmp_path, model) as opened:
            answered = await opened.openai.chat.completions.create(model="ragchat", messages=ASKED)
    assert getattr(answered.choices[0].message, "reasoning_content", "") == "Let me see."


async def test_a_stream_of_a_models_answer_has_its_citations_and_usage(tmp_path: Path) -> None:
    reply = Reply("It scatters [1]. `x[1]` is code [7].", reasoning="Let me see.")
    with OpenAIServer([reply], models=["test-model", "other-model"]) as model:
        async with door(tmp_path, model) as opened:
            names = [one.id async for one in opened.openai.models.list()]
            assert names == ["ragchat", "test-model", "other-model"]
            chunks = [
                chunk
                async for chunk in await opened.openai.chat.completions.create(
                    model="other-model",
                    messages=[
                        {"role": "system", "content": "Answer like a pirate."},
                        {"role": "user", "content": "What is tea?"},
                        {"role": "assistant", "content": "A drink [3]."},
                        *ASKED,
                    ],
                    stream=True,
                    stream_options={"include_usage": True},
                )
            ]
    *parts, last = chunks
    deltas = [part.choices[0].delta for part in parts]
    text = "".join(delta.content or "" for delta in deltas)
    assert text == reply.text
    assert "".join(getattr(delta, "reasoning_content", "") for delta in deltas) == reply.reasoning
    (cited,) = [one for delta in deltas for one in getattr(delta, "annotations", None) or []]
    place = cited["url_citation"]
    assert text[place["start_index"] : place["end_index"]] == "[1]"
    assert [part.choices[0].finish_reason for part in parts][-2:] == [None, "stop"]
    assert not any(part.usage for part in parts)
    assert last.usage is not None
    assert last.usage.total_tokens == last.usage.prompt_tokens + last.usage.completion_tokens > 0
    (sent,) = model.requests
    assert sent["model"] == "other-model"
    own, question, answer, asked = sent["messages"]
    # The other program's instructions are no system prompt, and no part of what is searched for.
    assert "pirate" not in own["content"]
    assert (question["content"], answer["content"]) == ("What is tea?", "A drink.")
    assert asked["content"].index("Rayleigh") < asked["content"].index("Answer like a pirate.")
    assert asked["content"].endswith(f"</instructions>\n\n{QUESTION}")


async def test_what_is_wrong_with_a_request_is_an_error_of_openais_client(tmp_path: Path) -> None:
    async with door(tmp_path) as opened:
        create = opened.openai.chat.completions.create
        with pytest.raises(openai.NotFoundError, match="There is no model 'gpt-4' here"):
            await create(model="gpt-4", messages=ASKED)
        tool: Any = {"type": "function", "function": {"name": "f"}}
        with pytest.raises(openai.BadRequestError, match="calls no tools of other programs") as caught:
            await create(model="ragchat", messages=ASKED, tools=[tool])
        assert (caught.value.param, caught.value.code) == ("tools", "unsupported_parameter")
        with pytest.raises(openai.BadRequestError, match="there is one answer to a question"):
            await create(model="ragchat", messages=ASKED, n=2)
        with pytest.raises(openai.BadRequestError, match="The question is empty"):
            await create(model="ragchat", messages=[{"role": "user", "content": " "}])
        with pytest.raises(openai.AuthenticationError, match="the one that was sent is wrong"):
            await opened.openai.with_options(api_key="wrong").models.list()
        with pytest.raises(openai.NotFoundError, match="There is no POST /v1/embeddings"):
            await opened.openai.embeddings.create(model="ragchat", input="a")
        # Parameters of the model are those of the user's settings.
        await create(model="ragchat", messages=ASKED, temperature=2, max_tokens=1, user="a", tools=[])


@pytest.mark.parametrize("stream", [True, False])
async def test_a_failure_before_the_first_word_is_a_status_and_is_not_repeated(
    tmp_path: Path, stream: bool
) -> None:
    with OpenAIServer([Reply(status=401)]) as model:
        async with door(tmp_path, model) as opened:
            with pytest.raises(openai.APIStatusError, match="needs a key") as caught:
                await opened.openai.chat.completions.create(model="ragchat", messages=ASKED, stream=stream)
            assert caught.value.status_code == 503
    assert len(model.requests) == 1
    down = MemoryUnavailable("it has ended.")
    async with door(tmp_path / "down", memory=ListMemory([], error=down)) as opened:
        with pytest.raises(openai.APIStatusError, match="Memory is not available"):
            await opened.openai.chat.completions.create(model="ragchat", messages=ASKED)


async def test_a_failure_amid_the_answer_ends_the_stream_with_its_sentence(tmp_path: Path) -> None:
    with OpenAIServer([Reply("It scatters [1] and scatters.", break_after=3)]) as model:
        async with door(tmp_path, model) as opened:
            stream = await opened.openai.chat.completions.create(model="ragchat", messages=ASKED, stream=True)
            with pytest.raises(openai.APIError) as caught:
                async for _ in stream:
                    pass
            assert (caught.value.code or "").startswith("model_")


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_stops_the_turn_and_frees_its_place(
    tmp_path: Path, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "MAX_TURNS", 1)
    held = Reply("It scatters [1].", hold_after=1)
    with OpenAIServer([held, Reply("It scatters [1].")]) as model:
        async with door(tmp_path, model) as opened:
            body = {"model": "ragchat", "messages": ASKED, "stream": stream}
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(opened.post, body)
                await anyio.to_thread.run_sync(held.reached.wait, LONGEST_SECONDS)
                refused = await opened.post(body)
                assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_turns")
                tasks.cancel_scope.cancel()
            answered = refused
            with anyio.fail_after(LONGEST_SECONDS):
                while answered.status_code == 429:
                    answered = await opened.post({**body, "stream": False})
            assert answered.json()["choices"][0]["message"]["content"] == "It scatters [1]."


async def test_nothing_is_saved_unless_the_request_says_so(tmp_path: Path) -> None:
    async with door(tmp_path) as opened:
        create = opened.openai.chat.completions.create
        await create(model="ragchat", messages=ASKED)
        assert not await opened.site.sessions.list()
        await create(model="ragchat", messages=ASKED, store=True)
        assert len(await opened.site.sessions.list()) == 1


# Open WebUI 0.6: what it sends for a question, with the fields that its filters and its user's options add.
OPEN_WEBUI = {
    "stream": True,
    "model": "ragchat",
    "messages": [
        {"role": "system", "content": "You are helpful."},
        {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
    ],
    "temperature": 0.7,
    "top_p": 0.9,
    "frequency_penalty": None,
    "logit_bias": {},
    "stream_options": {"include_usage": True},
    "user": {"name": "Ada", "id": "1", "email": "ada@example.org", "role": "admin"},
    "session_id": "abc",
    "chat_id": "def",
    "features": {"web_search": False},
}
OF_OPEN_WEBUI = {
    "user-agent": "Python/3.11 aiohttp/3.12.15",
    "x-openwebui-user-name": "Ada",
    "x-openwebui-user-id": "1",
    "x-openwebui-chat-id": "def",
}


async def test_open_webui_gets_models_an_answer_and_its_sources_in_order(tmp_path: Path) -> None:
    with OpenAIServer([Reply("It scatters [1].")]) as model:
        async with door(tmp_path, model) as opened:
            listed = await opened.client.get("/v1/models", headers={**opened.token, **OF_OPEN_WEBUI})
            assert [one["id"] for one in listed.json()["data"]] == ["ragchat", "test-model"]
            answer = await opened.post(OPEN_WEBUI, **OF_OPEN_WEBUI)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *lines, done = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    assert done == "[DONE]"
    chunks = [json.loads(line) for line in lines]
    (source,) = [chunk["event"]["data"] for chunk in chunks if "event" in chunk]
    assert source["document"] == [SKY.text]
    assert source["metadata"][0]["name"].startswith("[1] ")
    (own,) = [chunk["ragchat"] for chunk in chunks if "ragchat" in chunk]
    assert own["notices"] == []


async def test_a_model_can_be_looked_up_by_its_name(tmp_path: Path) -> None:
    with OpenAIServer() as model:
        async with door(tmp_path, model) as opened:
            for name in ("ragchat", "test-model"):
                found = await opened.client.get(f"/v1/models/{name}", headers=opened.token)
                assert (found.json()["id"], found.json()["object"]) == (name, "model")
            missing = await opened.client.get("/v1/models/a/b", headers=opened.token)
            assert (await opened.client.get("/v1/models/ragchat")).status_code == 401
    assert missing.status_code == 404
    assert missing.json()["error"]["message"].startswith("There is no model 'a/b' here.")


def test_open_webui_finds_a_number_though_a_lower_one_is_not_cited() -> None:
    given = [Candidate(hit(f"Text {n}.", chunk_id=n), True, "relevant", n) for n in (1, 2, 3)]
    metadata = open_webui_event(Answer("So [3].", candidates=given))["data"]["metadata"]
    assert [one["name"].partition(" ")[0] for one in metadata] == ["[1]", "[2]", "[3]"]


def read(*messages: tuple[str, object]) -> Any:
    return dialogue([convert({"role": role, "content": content}, Message) for role, content in messages])


def test_the_messages_of_a_request_are_the_conversation() -> None:
    found = read(
        ("assistant", "Hello!"),
        ("user", "A text."),
        ("user", [{"type": "text", "text": "What is it about?"}]),
        ("assistant", "Tea."),
        ("assistant", None),
        ("developer", "Be brief."),
        ("user", "And this?"),
        ("system", "Be kind."),
    )
    pairs = [(one.question, one.answer.text) for one in found.turns]
    assert pairs == [("A text.\n\nWhat is it about?", "Tea.")]
    assert found.question == "And this?"
    assert "Be brief.\n\nBe kind." in found.instructions
    # What another program calls an answer proves nothing, and is not the user's own text.
    assert (found.turns[0].answer.grounded, found.turns[0].answer.untrusted) == (
        False,
        ["the request of another program"],
    )


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ([], BadRequest),
        ([("system", "a")], BadRequest),
        ([("user", "a"), ("assistant", "b")], BadRequest),
        ([("user", "a"), ("tool", "b"), ("user", "c")], NotSupported),
        ([("user", [{"type": "image_url", "image_url": {"url": "http://evil.example/"}}])], NotSupported),
    ],
)
def test_messages_without_a_question_in_words_are_refused(
    messages: Sequence[tuple[str, object]], error: type[Exception]
) -> None:
    with pytest.raises(error):
        read(*messages)


# Attacks. PORT is that of the server. Those with a token have the right one.

WITH_TOKEN: list[dict[str, str]] = [
    *({"host": host} for host in ("evil.example", "evil.example:PORT", "127.0.0.1", "localhost.:PORT")),
    *({"host": host} for host in ("127.1:PORT", "0.0.0.0:PORT", "2130706433:PORT", "127.0.0.1:1")),
    *({"origin": one} for one in ("null", "", "http://evil.example", "https://127.0.0.1:PORT", "file://")),
    *({"origin": one} for one in ("http://127.0.0.1:1", "http://127.0.0.1:PORT.evil.example")),
    *({"sec-fetch-site": one, "sec-fetch-mode": "cors"} for one in ("cross-site", "same-site")),
    *({"sec-fetch-site": one, "sec-fetch-mode": "no-cors"} for one in ("cross-site", "same-site")),
    *({"cookie": one} for one in ("", "a=b", "ragchat=SIGNED_IN", "ragchat_PORT=x")),
]
WITHOUT_TOKEN: list[dict[str, str]] = [
    {},
    *({"authorization": one} for one in ("", "Bearer", "Bearer ,", "Bearer null", "bearer x")),
    *({"authorization": f"{kind} TOKEN"} for kind in ("Basic", "Token", "BearerBearer", "Digest")),
    *({"authorization": one} for one in ("TOKEN", "Bearer TOKENx", "Bearer xTOKEN", "Bearer TOKEN TOKEN")),
    *({"authorization": f"Bearer {one}"} for one in (TOKEN[:-1], TOKEN.upper(), "0" * 50_000, "é")),
    *({name: "TOKEN"} for name in ("x-api-key", "api-key", "x-forwarded-authorization", "cookie")),
    {"cookie": "ragchat=SIGNED_IN"},
    {"cookie": "ragchat=SIGNED_IN", "origin": "OURS", "sec-fetch-site": "same-origin"},
    {"x-forwarded-for": "127.0.0.1", "x-original-url": "/health/live"},
]
BODIES: list[tuple[bytes, int]] = [
    *((body, 400) for body in (b"", b"{", b"[]", b"null", b"1", b'"a"', b"{}", b"\xff\xfe", b"\x00")),
    *((b"[" * 100_000, 400), (b'{"a":' * 100_000, 400), (b'{"tools":' + b"[" * 100_000, 400)),
    (b'{"model":"ragchat","messages":' + b'[{"content":' * 100_000, 400),
    (b'{"model":"ragchat","messages":"a"}', 400),
    (b'{"model":1,"messages":[]}', 400),
    (b'{"model":"ragchat","messages":[{"role":"root","content":"a"}]}', 400),
    (b'{"model":"ragchat","messages":[{"role":"user","content":{"a":1}}]}', 400),
    (b'{"model":"ragchat","messages":[{"role":"user","content":"\\ud800"}]}', 400),
    (b'{"model":"ragchat","messages":[{"role":"user"}],"stream":"yes"}', 400),
    (b'{"model":"../../offline","messages":[{"role":"user","content":"a"}]}', 404),
    (b'{"model":"' + b"a" * 100_000 + b'","messages":[{"role":"user","content":"a"}]}', 404),
    (b'{"model":"ragchat","a":"' + b"a" * MAX_BODY + b'"}', 413),
]
PATHS = [
    "/v1",
    "/v1/",
    "/V1/models",
    "//v1/models",
    "/v1/../api/sessions",
    "/v1/%2e%2e/api/sessions",
    "/v1/models/",
]
PATHS += [
    "/v1/chat/completions/..",
    "/v1/static/page.js",
    "/v1%2fapi/sessions",
    "/api/sessions",
    "/v1\\models",
]


async def test_no_attack_gets_an_answer(tmp_path: Path) -> None:
    memory = ListMemory([SKY])
    async with door(tmp_path, memory=memory) as opened:
        port = opened.origin.rpartition(":")[2]
        signed_in = opened.keys.sign_in()
        body = {"model": "ragchat", "messages": ASKED}

        def filled(headers: dict[str, str]) -> dict[bytes, bytes]:
            values = {"PORT": port, "TOKEN": TOKEN, "OURS": opened.origin, "SIGNED_IN": signed_in}
            for name, value in values.items():
                headers = {key: text.replace(name, value) for key, text in headers.items()}
            return {key.encode(): text.encode() for key, text in headers.items()}

        for given, statuses in (
            *(({**opened.token, **headers}, (403,)) for headers in WITH_TOKEN),
            *((headers, (401, 403)) for headers in WITHOUT_TOKEN),
        ):
            for method, path in (("GET", "/v1/models"), ("POST", "/v1/chat/completions")):
                content = json.dumps(body).encode() if method == "POST" else b""
                encoded = filled({"content-type": "application/json", **given})
                answer = await opened.client.request(method, path, headers=encoded, content=content)
                assert answer.status_code in statuses, (given, answer.text)
                assert answer.json()["error"]["message"]
                assert not [name for name in answer.headers if name.startswith("access-control-")]
        for content, expected in BODIES:
            headers = {**opened.token, "content-type": "application/json"}
            answer = await opened.client.post("/v1/chat/completions", content=content, headers=headers)
            assert answer.status_code == expected, (content[:80], answer.text[:300])
            assert answer.json()["error"]["message"]
        for type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            headers = {**opened.token, "content-type": type}
            answer = await opened.client.post(
                "/v1/chat/completions", content=json.dumps(body), headers=headers
            )
            assert answer.status_code == 400
        for path in PATHS:  # The token opens nothing of the page.
            answer = await opened.client.get(path, headers=opened.token)
            assert answer.status_code in (401, 404), path
        for method in ("PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"):
            answer = await opened.client.request(method, "/v1/chat/completions", headers=opened.token)
            assert answer.status_code in (404, 405)
        assert memory.asked == []
        # The server still answers those that may ask.
        assert (await opened.post(body)).status_code == 200


@pytest.mark.full
@pytest.mark.smoke
async def test_other_programs_alone_are_served_without_tools_of_other_servers(program: Program) -> None:
    write(program.home, mine=GOOD)
    held = Reply("Slowly, word by word, it comes.", hold_after=4)
    with OpenAIServer([Reply(tool_calls=[("mine__Echo", {"text": "x"})]), Reply("Done."), held]) as model:
        async with serving(with_model(program, model), "--api-only") as web:
            token = (program.home / "data" / "web-token").read_text(encoding="utf-8").strip()
            assert httpx2.get(f"{web.origin}/static/page.js", timeout=LONGEST_SECONDS).status_code == 404
            assert "without --api-only" in httpx2.get(f"{web.origin}/sign-in", timeout=LONGEST_SECONDS).text
            refused = httpx2.get(f"{web.origin}/v1", timeout=LONGEST_SECONDS)
            assert (refused.status_code, refused.json()["error"]["message"]) == (
                404,
                "There is no page here: other programs are served at /v1.",
            )
            with openai.OpenAI(base_url=f"{web.origin}/v1", api_key=token, timeout=LONGEST_SECONDS) as client:
                answered = client.chat.completions.create(model="ragchat", messages=ASKED)
                assert (answered.choices[0].message.content or "").startswith("Done.")
                assert {one["function"]["name"] for one in model.requests[0]["tools"]} == {"Query"}
                assert model.requests[1]["messages"][-1]["content"].startswith("There is no tool mine__Echo.")
                stream = client.chat.completions.create(model="ragchat", messages=ASKED, stream=True)
                next(iter(stream))
                began = time.monotonic()
                web.stop()
                assert web.process.returncode == 0
                assert time.monotonic() - began < LONGEST_SECONDS / 2
