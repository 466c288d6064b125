"""Models behind a real HTTP server: `client`, `completion`, `listing` and `errors` together."""

from __future__ import annotations

import dataclasses
import gzip
import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from unittest.mock import Mock

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from msgspec.structs import replace

from ragchat.llm import errors
from ragchat.llm.client import Model
from ragchat.llm.completion import Completion
from ragchat.llm.tokens import prompt_at_most
from ragchat.llm.types import ModelEndpoint, ToolRequest, Usage
from ragchat.settings import ModelSettings
from tests.support.openai_server import OpenAIServer, Reply, poured
from tests.support.ports import free_port

HELLO = [{"role": "user", "content": "Hello, you!"}]
TOOL = {"type": "function", "function": {"name": "Query", "parameters": {"type": "object"}}}


def settings(retries: int = 0, timeout: float = 10.0) -> ModelSettings:
    return ModelSettings(
        name="auto",
        base_url="",
        key_file="",
        openai_model="gpt-5-mini",
        ollama_url="",
        ollama_seconds=0.1,
        context_tokens=4096,
        answer_tokens=512,
        temperature=-1.0,
        max_tokens=0,
        reasoning_effort="",
        extra_body={},
        timeout_seconds=timeout,
        retries=retries,
        turn_seconds=600.0,
        answer_characters=1_000_000,
        message_bytes=1_000_000,
        prices={},
    )


@asynccontextmanager
async def model_at(
    base_url: str, *, name: str = "test-model", key: str = "", retries: int = 0, timeout: float = 10.0
) -> AsyncGenerator[Model, None]:
    model = Model(ModelEndpoint(name, base_url, key), settings(retries, timeout))
    try:
        yield model
    finally:
        await model.aclose()


EVENTS = "text/event-stream"


def event(**delta: str) -> str:
    """An event of a stream."""
    return f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta}]})}\n\n"


def ignore(text: str) -> None:
    """The text is in the completion, too."""


async def answer(
    base_url: str,
    *,
    name: str = "test-model",
    key: str = "",
    retries: int = 0,
    on_text: Callable[[str], None] = ignore,
) -> Completion:
    async with model_at(base_url, name=name, key=key, retries=retries) as model:
        return await model.complete(HELLO, [TOOL], on_text=on_text)


async def test_the_reasoning_of_a_model_is_not_its_answer() -> None:
    with OpenAIServer([Reply("<think>\nWhat is asked? Tea.\n</think>\n\nTea is hot.")]) as server:
        assert (await answer(server.base_url)).text == "Tea is hot."


async def test_an_answer_about_the_tag_is_whole_if_its_reasoning_was_recognised() -> None:
    text = "Qwen writes its reasoning first. The tag </think> ends it."
    with OpenAIServer([Reply(f"<think>Hm.</think>{text}"), Reply(text, reasoning="Hm.")]) as server:
        assert (await answer(server.base_url)).text == text
        assert (await answer(server.base_url)).text == text


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    "reply", [Reply("Tea.", reasoning="What is asked?"), Reply("<think>What is asked?</think>Tea.")]
)
async def test_reasoning_is_passed_on_apart_from_the_answer(reply: Reply, whole: bool) -> None:
    reasoning: list[str] = []
    with OpenAIServer([dataclasses.replace(reply, whole=whole)]) as server:
        async with model_at(server.base_url) as model:
            completion = await model.complete(HELLO, on_text=ignore, on_reasoning=reasoning.append)
    assert (completion.text, "".join(reasoning)) == ("Tea.", "What is asked?")


async def test_an_answer_comes_in_pieces_and_ends_with_its_usage() -> None:
    pieces: list[str] = []
    with OpenAIServer([Reply("One two three.", prompt_tokens=12)]) as server:
        completion = await answer(server.base_url, on_text=pieces.append)
    assert pieces == ["One", " two", " three."]
    assert completion == Completion("One two three.", [], Usage(12, 4, None, 37, 6))
    assert server.requests[0]["messages"] == HELLO
    assert server.requests[0]["stream"] is True


async def test_tool_calls_are_put_together_from_their_parts() -> None:
    reply = Reply("Let me see.", tool_calls=[("Query", {"query": "a"}), ("Query", {"query": "b"})])
    with OpenAIServer([reply]) as server:
        completion = await answer(server.base_url)
    assert completion.requests == [
        ToolRequest("call_0", "Query", '{"query": "a"}'),
        ToolRequest("call_1", "Query", '{"query": "b"}'),
    ]


@pytest.mark.parametrize("reported", [-1, 0])
@pytest.mark.parametrize("whole", [False, True])
async def test_usage_that_a_server_does_not_report_is_not_known(reported: int, whole: bool) -> None:
    with OpenAIServer([Reply("Hi.", prompt_tokens=reported, whole=whole)]) as server:
        completion = await answer(server.base_url)
    assert completion.text == "Hi."
    assert completion.usage.prompt_tokens is None
    assert not completion.usage.is_reported


async def test_a_server_that_refuses_stream_options_is_asked_without_them_from_then_on() -> None:
    with OpenAIServer(stream_options=False) as server:
        async with model_at(server.base_url) as model:
            for _ in range(2):
                assert (await model.complete(HELLO, on_text=ignore)).text
    assert ["stream_options" in request for request in server.requests] == [True, False, False]


IMAGES = {0: ["data:image/png;base64,QUJD"]}


@pytest.mark.parametrize(
    "refusal",
    [
        Reply(status=400, message="Invalid content type."),
        Reply(status=404, code="404", message="No endpoints found that support image input"),
        Reply(status=500, message="image input is not supported - you may need to provide the mmproj"),
    ],
    ids=["OpenAI", "OpenRouter", "llama.cpp"],
)
async def test_a_model_that_refuses_images_is_asked_without_them_from_then_on(refusal: Reply) -> None:
    with OpenAIServer([refusal, Reply("Hi.")]) as server:
        async with model_at(server.base_url) as model:
            for _ in range(2):
                assert (await model.complete(HELLO, on_text=ignore, images=IMAGES)).text == "Hi."
            assert not model.takes_images
    assert ["image_url" in str(request["messages"]) for request in server.requests] == [True, False, False]


async def test_a_request_that_fails_for_another_reason_does_not_end_the_use_of_images() -> None:
    with OpenAIServer([Reply(status=400), Reply(status=400), Reply("Hi.")]) as server:
        async with model_at(server.base_url) as model:
            with pytest.raises(errors.ModelRefused):
                await model.complete(HELLO, on_text=ignore, images=IMAGES)
            assert (await model.complete(HELLO, on_text=ignore, images=IMAGES)).text == "Hi."
    assert "image_url" in str(server.requests[-1]["messages"])


async def test_an_error_about_images_after_words_were_shown_is_not_repeated() -> None:
    chunk = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "A cat"}}]}
    events = [chunk, {"error": {"message": "The image could not be read."}}]
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    with OpenAIServer([Reply(page=stream, content_type="text/event-stream"), Reply("A cat.")]) as server:
        async with model_at(server.base_url) as model:
            with pytest.raises(errors.ModelBroken):
                await model.complete(HELLO, on_text=ignore, images=IMAGES)
    assert len(server.requests) == 1


async def test_a_model_without_tools_is_asked_without_them() -> None:
    refusal = Reply(status=400, message="registry/gemma:2b does not support tools")
    with OpenAIServer([refusal, Reply("Hi.")]) as server:
        assert (await answer(server.base_url)).text == "Hi."
    assert ["tools" in request for request in server.requests] == [True, False]


async def test_fields_that_the_user_sets_are_sent_and_no_others() -> None:
    chosen = replace(
        settings(), temperature=0.0, max_tokens=99, reasoning_effort="low", extra_body={"top_k": 40}
    )
    with OpenAIServer() as server:
        for each in (settings(), chosen):
            async with model_at(server.base_url) as model:
                model.settings = each
                await model.complete(HELLO, on_text=ignore)
    plain, with_fields = server.requests
    fields = {"temperature": 0.0, "max_tokens": 99, "reasoning_effort": "low", "top_k": 40}
    assert with_fields == plain | fields
    assert not fields.keys() & plain.keys()


async def test_a_model_that_does_not_take_max_tokens_gets_its_newer_name() -> None:
    refusal = Reply(status=400, message="'max_tokens' is not supported. Use 'max_completion_tokens' instead.")
    with OpenAIServer([refusal, Reply("Hi.")]) as server:
        async with model_at(server.base_url) as model:
            model.settings = replace(settings(), max_tokens=99)
            assert (await model.complete(HELLO, on_text=ignore)).text == "Hi."
    assert server.requests[1]["max_completion_tokens"] == 99
    assert "max_tokens" not in server.requests[1]


async def test_a_field_of_the_user_that_the_server_refuses_is_not_dropped() -> None:
    with OpenAIServer([Reply(status=400, message="temperature must be 1"), Reply("Hi.")]) as server:
        async with model_at(server.base_url) as model:
            model.settings = replace(settings(), temperature=0.5)
            with pytest.raises(errors.ModelRefused, match="temperature must be 1"):
                await model.complete(HELLO, on_text=ignore)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(status=401), errors.MissingKey),
        (Reply(status=404, code="model_not_found"), errors.UnknownModel),
        # As litellm's proxy sends them.
        (
            Reply(status=400, message="/chat/completions: Invalid model name passed in model=gpt"),
            errors.UnknownModel,
        ),
        (Reply(status=400, code="no_db_connection", message="No connected db."), errors.MissingKey),
        (
            Reply(
                status=400, message="litellm.ContextWindowExceededError: litellm.BadRequestError: too long"
            ),
            errors.ContextOverflow,
        ),
        (Reply(status=404, code="not_found", message="page not found"), errors.NoApi),
        (Reply(status=429, retry_after=3), errors.RateLimited),
        (Reply(status=429, code="insufficient_quota"), errors.QuotaUsedUp),
        (Reply(status=402, code="", message="Insufficient Balance"), errors.QuotaUsedUp),
        (Reply(status=400, code="context_length_exceeded"), errors.ContextOverflow),
        (Reply(status=400, message="the request exceeds the available context size"), errors.ContextOverflow),
        (Reply(status=500, message="input exceeds n_ctx"), errors.ContextOverflow),
        (Reply(status=400, message="temperature must be 1"), errors.ModelRefused),
        (Reply(status=403), errors.ModelRefused),
        (Reply(status=500), errors.ModelBroken),
        (Reply(status=503), errors.ModelBroken),
        (Reply(status=409), errors.ModelBroken),
        (Reply(status=500, message="error loading model: no such file"), errors.ModelBroken),
        (Reply("a b c", break_after=2), errors.BrokenStream),
        (Reply(page="<html>Welcome</html>"), errors.NoApi),
        (Reply(page=f"{event(content='a b')}data: oops\n\n", content_type=EVENTS), errors.BrokenStream),
        (Reply(page="data: oops\n\n", content_type=EVENTS), errors.NoApi),
        (Reply(page="{}", content_type="application/json"), errors.ModelBroken),
        (Reply(page="[]", content_type="application/json"), errors.ModelBroken),
        (Reply(page="[", content_type="application/json"), errors.NoApi),
        (
            Reply(page='{"error": "Unexpected endpoint or method."}', content_type="application/json"),
            errors.NoApi,
        ),
        (
            Reply(page='{"error": {"message": "exceeds n_ctx"}}', content_type="application/json"),
            errors.ContextOverflow,
        ),
    ],
)
async def test_a_failure_becomes_the_error_that_says_what_to_do(
    reply: Reply, expected: type[errors.ModelError]
) -> None:
    with OpenAIServer([reply]) as server, pytest.raises(expected) as caught:
        await answer(server.base_url)
    assert type(caught.value) is expected
    assert caught.value.__cause__ is not caught.value
    assert not str(caught.value).endswith("..")
    if isinstance(caught.value, errors.ContextOverflow):
        assert caught.value.tokens == prompt_at_most(HELLO)
    if isinstance(caught.value, errors.RateLimited):
        assert caught.value.retry_after == 3


async def test_the_page_of_a_proxy_is_not_shown() -> None:
    page = Reply(status=502, message="<html><head><title>502 Bad Gateway</title></head></html>")
    with OpenAIServer([page]) as server, pytest.raises(errors.ModelBroken) as caught:
        await answer(server.base_url)
    assert caught.value.message == "502, Bad Gateway"


async def test_a_model_that_declines_in_a_field_of_its_own_has_answered() -> None:
    page = f"{event(role='assistant')}{event(refusal='I cannot ')}{event(refusal='help.')}data: [DONE]\n\n"
    with OpenAIServer([Reply(page=page, content_type=EVENTS)]) as server:
        assert (await answer(server.base_url)).text == "I cannot help."


async def test_a_wrong_key_is_another_error_than_a_missing_one() -> None:
    with OpenAIServer(key="right") as server:
        with pytest.raises(errors.KeyRejected) as caught:
            await answer(server.base_url, key="wrong-secret")
        assert "wrong-secret" not in str(caught.value)
        assert (await answer(server.base_url, key="right")).text


async def test_a_refused_connection_names_the_server() -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    with pytest.raises(errors.ModelUnreachable) as caught:
        await answer(url)
    assert caught.value.base_url == url


@pytest.mark.parametrize("address", ["localhost:11434/v1", "http://[::1"])
async def test_an_address_that_is_none_is_unreachable_too(address: str) -> None:
    with pytest.raises(errors.ModelUnreachable):
        await answer(address)


@pytest.mark.parametrize("key", ["ключ", "two\nlines"])
async def test_a_key_that_no_header_can_hold_is_named(key: str) -> None:
    with pytest.raises(errors.KeyUnusable):
        await answer(f"http://127.0.0.1:{free_port()}/v1", key=key)


async def test_a_server_that_falls_silent_is_given_up() -> None:
    with OpenAIServer([Reply("a b c", hold_after=1)]) as server:
        async with model_at(server.base_url, timeout=0.2) as model:
            with anyio.fail_after(60), pytest.raises(errors.ModelTimedOut) as caught:
                await model.complete(HELLO, on_text=ignore)
    assert caught.value.seconds == 0.2


async def test_an_answer_in_one_piece_is_taken_from_a_server_that_does_not_stream() -> None:
    reply = Reply(
        "<think>Hm.</think>One.", tool_calls=[("Query", {"query": "a"})], prompt_tokens=9, whole=True
    )
    with OpenAIServer([reply]) as server:
        completion = await answer(server.base_url)
    assert (completion.text, completion.usage.prompt_tokens) == ("One.", 9)
    assert completion.requests == [ToolRequest("call_0", "Query", '{"query": "a"}')]
    assert len(server.requests) == 1


async def test_a_stream_without_any_event_is_asked_once_more_in_one_piece_for_its_error() -> None:
    full = Reply(status=400, message="This model's maximum context length is 512 tokens")
    with OpenAIServer([Reply(empty=True), full]) as server:
        async with model_at(server.base_url, retries=2) as model:
            with pytest.raises(errors.ContextOverflow):
                await model.complete(HELLO, on_text=ignore)
    assert [request["stream"] for request in server.requests] == [True, False]


async def test_a_stream_without_any_event_is_no_error_if_the_answer_comes_in_one_piece() -> None:
    with OpenAIServer([Reply(empty=True), Reply("There.")]) as server:
        assert (await answer(server.base_url)).text == "There."


async def test_a_base_url_without_its_v1_has_a_hint() -> None:
    with OpenAIServer() as server:
        url = server.base_url.removesuffix("/v1")
        async with model_at(url) as model:
            for request in (model.names(), model.complete(HELLO, on_text=ignore)):
                with pytest.raises(errors.NoApi) as caught:
                    await request
                assert caught.value.hint.startswith(f"Did you mean {url}/v1?")


async def test_a_page_in_place_of_the_models_is_an_error_of_the_address() -> None:
    with OpenAIServer(page="<html>Welcome</html>") as server:
        async with model_at(server.base_url) as model:
            with pytest.raises(errors.NoApi):
                await model.names()


async def test_a_rate_limited_request_is_repeated_after_the_pause_that_the_server_names() -> None:
    told: list[tuple[errors.ModelError, float]] = []
    with OpenAIServer([Reply(status=429, retry_after=0.01), Reply("There.")]) as server:
        async with model_at(server.base_url, retries=1) as model:
            completion = await model.complete(
                HELLO, on_text=ignore, on_retry=lambda error, pause: told.append((error, pause))
            )
    assert completion.text == "There."
    [(error, pause)] = told
    assert (type(error), pause) == (errors.RateLimited, 0.01)


async def test_a_pause_of_an_hour_is_left_to_the_user() -> None:
    server = OpenAIServer([Reply(status=429, retry_after=3600)])
    with server, pytest.raises(errors.RateLimited) as caught:
        await answer(server.base_url, retries=2)
    assert caught.value.retry_after == 3600
    assert len(server.requests) == 1


async def test_a_used_up_quota_is_not_asked_for_again() -> None:
    server = OpenAIServer([Reply(status=429, code="insufficient_quota")])
    with server, pytest.raises(errors.QuotaUsedUp):
        await answer(server.base_url, retries=2)
    assert len(server.requests) == 1


async def test_an_overloaded_server_is_asked_again() -> None:
    with OpenAIServer([Reply(status=503, retry_after=0.01), Reply("There.")]) as server:
        assert (await answer(server.base_url, retries=1)).text == "There."
    assert len(server.requests) == 2


async def test_a_model_that_is_loading_is_waited_for_even_without_retries() -> None:
    loading = Reply(status=503, code="unavailable_error", message="Loading model")
    told: list[errors.ModelError] = []
    with OpenAIServer([loading, Reply("There.")]) as server:
        async with model_at(server.base_url, retries=0) as model:
            done = await model.complete(HELLO, on_retry=lambda error, _: told.append(error))
    assert done.text == "There."
    assert [type(error) for error in told] == [errors.ModelLoading]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (503, "Loading model"),
        (500, "unexpected server status: llm server loading model"),
        (503, "Model org/m is currently loading"),
    ],
)
async def test_a_model_that_takes_too_long_to_load_is_said_to_be_loading(status: int, message: str) -> None:
    with OpenAIServer([Reply(status=status, message=message)]) as server:
        async with model_at(server.base_url, retries=2, timeout=0.4) as model:
            with pytest.raises(errors.ModelLoading):
                await model.complete(HELLO, on_retry=lambda *_: None)
    assert len(server.requests) == 1  # the next one would have been after the timeout


async def test_a_stream_that_breaks_before_its_first_word_is_begun_again() -> None:
    with OpenAIServer([Reply("lost", break_after=1), Reply("There.")]) as server:
        assert (await answer(server.base_url, retries=1)).text == "There."


async def test_a_stream_that_breaks_after_words_were_shown_is_not_repeated() -> None:
    with OpenAIServer([Reply("a b c", break_after=3), Reply("There.")]) as server:
        with pytest.raises(errors.BrokenStream):
            await answer(server.base_url, retries=1)
        assert len(server.requests) == 1


async def test_a_stream_that_breaks_after_the_finish_reason_has_the_whole_answer() -> None:
    last = f"data: {json.dumps({'choices': [{'index': 0, 'delta': {}, 'finish_reason': 'stop'}]})}\n\n"
    sent = Reply(page=f"{event(content='There.')}{last}data: oops\n\n", content_type=EVENTS)
    with OpenAIServer([sent]) as server:
        assert (await answer(server.base_url)).text == "There."


async def test_an_answer_without_a_finish_reason_is_complete_if_the_server_says_that_it_is_done() -> None:
    for end, error in ((b"data: [DONE]\n\n", None), (b"\n", errors.BrokenStream)):
        sent = Reply(pours=(poured(content="There."), end, b""), content_type=EVENTS)
        with OpenAIServer([sent]) as server, pytest.raises(error) if error else nullcontext():
            assert (await answer(server.base_url)).text == "There."


async def test_a_cancelled_answer_lets_go_of_its_connection() -> None:
    reply = Reply("a b c", hold_after=2)
    with OpenAIServer([reply, Reply("Next.")]) as server:
        async with model_at(server.base_url) as model:
            with anyio.fail_after(60):
                async with anyio.create_task_group() as group:
                    group.start_soon(partial(model.complete, HELLO, on_text=ignore))
                    await anyio.to_thread.run_sync(reply.reached.wait)
                    group.cancel_scope.cancel()
                assert (await model.complete(HELLO, on_text=ignore)).text == "Next."


EVENTS = "text/event-stream"
BEGUN = poured(content="Some words")
NO_END = b'data: {"choices": "'
MIB = 1 << 20
CALL = {"index": 0, "function": {"name": "Query", "arguments": "a" * 1000}}


def pouring(*data: bytes, content_type: str = EVENTS, status: int = 200, encoding: str = "") -> Reply:
    return Reply(pours=data, content_type=content_type, status=status, encoding=encoding)


def limited(**limits: float) -> ModelSettings:
    return replace(settings(), **limits)


@pytest.mark.parametrize(
    ("reply", "setting"),
    [
        (pouring(BEGUN, NO_END, b"x" * MIB), "model.message_bytes = 1000000"),
        (pouring(BEGUN, b"data: 1\n" * 1000), "model.message_bytes = 1000000"),
        (pouring(BEGUN, b": no blank line\n" * 1000), "model.message_bytes = 1000000"),
        (pouring(BEGUN, poured(content="more " * 1000)), "model.answer_characters = 1000000"),
        (pouring(BEGUN, poured(content=" " * 800_000)), "model.answer_characters = 1000000"),
        (pouring(BEGUN, poured(reasoning="hm " * 1000)), "model.answer_characters = 1000000"),
        (pouring(BEGUN, poured()), "model.turn_seconds = 2"),
        (pouring(BEGUN, b": alive\n\n"), "model.turn_seconds = 2"),
        (Reply("Some words there", hold_after=3), "model.turn_seconds = 2"),
    ],
    ids=[
        "one event",
        "many lines of an event",
        "comments alone",
        "words",
        "long words",
        "reasoning",
        "empty deltas",
        "keep-alives",
        "nothing",
    ],
)
async def test_what_has_arrived_at_a_limit_is_the_answer(reply: Reply, setting: str) -> None:
    seconds = 2.0 if "seconds" in setting else 60.0  # On a busy machine, too, words have arrived by then.
    with OpenAIServer([reply]) as server:
        async with model_at(server.base_url) as model:
            await model.load()
            model.settings = limited(turn_seconds=seconds)
            with anyio.fail_after(60):
                completion = await model.complete(HELLO, on_text=ignore)
    assert completion.text.startswith("Some words")
    assert len(completion.text) <= 1_000_000
    assert completion.cut_off == f"The answer was cut off at the limit {setting}."
    assert server.poured < 100 * MIB


@pytest.mark.parametrize(
    ("reply", "setting"),
    [
        (pouring(NO_END, b"x" * MIB), "model.message_bytes = 1000000"),
        (pouring(b"[" * MIB, content_type="application/json"), "model.message_bytes = 1000000"),
        (pouring(b"\n" * MIB, content_type="text/html"), "model.message_bytes = 1000000"),
        (pouring(b"x" * MIB, content_type="application/json", status=500), "model.message_bytes = 1000000"),
        (pouring(gzip.compress(bytes(64 * MIB), 1), encoding="gzip"), "model.message_bytes = 1000000"),
        (pouring(poured(reasoning_content="hm " * 1000)), "model.answer_characters = 1000000"),
        (
            pouring(poured(content="<think>"), poured(content="hm " * 1000)),
            "model.answer_characters = 1000000",
        ),
        (pouring(poured(content=" " * 1000)), "model.answer_characters = 1000000"),
        (pouring(poured(tool_calls=[CALL])), "model.answer_characters = 1000000"),
    ],
    ids=["event", "body", "page", "error", "gzip", "reasoning", "<think>", "blanks", "call"],
)
async def test_a_limit_before_the_first_word_is_an_error_that_names_it(reply: Reply, setting: str) -> None:
    server = OpenAIServer([reply])
    with server, anyio.fail_after(60), pytest.raises(errors.LimitReached) as caught:
        await answer(server.base_url, retries=2)
    assert caught.value.setting == setting
    assert len(server.requests) == 1
    assert server.poured < 100 * MIB


async def test_a_list_of_models_without_end_is_not_read_to_its_end() -> None:
    with OpenAIServer(pours=[b'{"data": [', b'{"id": "a"},' * 1000]) as server:
        async with model_at(server.base_url) as model:
            with pytest.raises(errors.LimitReached):
                await model.names()
    assert server.poured < 100 * MIB


async def test_a_compressed_stream_is_read() -> None:
    stream = BEGUN + b"data: [DONE]\n\n"
    end = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'
    with OpenAIServer([pouring(gzip.compress(end + stream), encoding="gzip")]) as server:
        assert (await answer(server.base_url)).text == "Some words"


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
async def test_the_end_of_an_event_is_seen_across_pieces(end: bytes) -> None:
    event = [BEGUN.replace(b"\n", b""), end, end]
    many = [piece for _ in range(500) for piece in (b": " + b"x" * 2_500, end, end)]
    with OpenAIServer([pouring(*event, *many, poured(content=" " * 900_000))]) as server:
        completion = await answer(server.base_url)
    assert "answer_characters" in completion.cut_off


async def test_a_connection_is_used_again_for_the_next_request() -> None:
    with OpenAIServer() as server:
        async with model_at(server.base_url) as model:
            for _ in range(3):
                await model.complete(HELLO, on_text=ignore)
    assert server.connections == 1


@pytest.mark.parametrize(
    "reply",
    [
        pouring(poured(content="word ")),
        pouring(poured(content="word " * 20_000)),
        pouring(poured()),
        pouring(b": alive\n\n" * 10_000),
        pouring(gzip.compress(b": alive\n\n" * 4_000_000, 1), encoding="gzip"),
        pouring(b"x" * MIB),
    ],
    ids=["words", "long words", "empty", "keep-alives", "gzip", "one event"],
)
async def test_a_stream_that_pours_lets_other_tasks_run(reply: Reply) -> None:
    """The loop may not be held for long: a signal is handled by the loop.

    Held by work, that is: by the processor time of its thread. The clock goes on while others run.
    """
    longest = 0.0
    with OpenAIServer([reply]) as server:
        async with model_at(server.base_url) as model:
            model.settings = limited(answer_characters=10**8, message_bytes=10**8, turn_seconds=0.2)
            async with anyio.create_task_group() as group:
                group.start_soon(partial(_complete_somehow, model, group.cancel_scope))
                while True:
                    before = time.thread_time()
                    await anyio.lowlevel.checkpoint()
                    longest = max(longest, time.thread_time() - before)
    assert longest < 0.5


async def _complete_somehow(model: Model, done: anyio.CancelScope) -> None:
    with suppress(errors.LimitReached):
        await model.complete(HELLO, on_text=ignore)
    done.cancel()


@pytest.mark.parametrize(
    ("fields", "pages", "context"),
    [
        ({}, {}, None),
        ({"max_model_len": 2048, "owned_by": "vllm"}, {}, 2048),
        ({"context_length": 2048}, {}, 2048),
        (
            {"owned_by": "llamacpp", "meta": {"n_ctx_train": 131072}},
            {"/props": {"default_generation_settings": {"n_ctx": 2048}}},
            2048,
        ),
        ({"owned_by": "llamacpp", "meta": {"n_ctx": 2048}}, {"/props": {}}, 2048),
        ({"owned_by": "llamacpp"}, {"/props": []}, None),
        ({"owned_by": "library"}, {"/api/ps": {"models": [{"name": "a", "context_length": 4096}]}}, None),
        ({"owned_by": "library"}, {"/api/ps": {"models": [{"name": "m", "context_length": 2048}]}}, 2048),
        ({"max_model_len": "large", "context_length": -1}, {}, None),
    ],
)
async def test_the_context_is_the_one_that_the_server_says_it_has(
    fields: dict[str, object], pages: dict[str, object], context: int | None
) -> None:
    with OpenAIServer(models=["m", "other"], fields=fields, pages=pages) as server:
        async with model_at(server.base_url, name="m") as model:
            await model.find_context()
            assert model.context == context


async def test_a_server_that_hangs_up_on_a_long_prompt_is_not_taken_for_one_that_is_down() -> None:
    long = [{"role": "user", "content": "word " * 1000}]
    with OpenAIServer(context_tokens=500, hangs_up=True) as server:
        async with model_at(server.base_url) as model:
            with pytest.raises(errors.PromptNotTaken) as caught:
                await model.complete(long, on_text=ignore)
    assert caught.value.tokens == prompt_at_most(long)
    assert server.requests[-1]["max_tokens"] == 1


async def test_a_server_that_cuts_its_stream_before_the_first_word_is_asked_what_it_takes() -> None:
    server = OpenAIServer([Reply("lost", break_after=1), Reply("Hello.")])
    with server, pytest.raises(errors.PromptNotTaken):
        await answer(server.base_url)


async def test_a_server_that_hangs_up_on_every_prompt_runs_but_is_broken() -> None:
    with OpenAIServer([Reply(hangs_up=True)]) as server, pytest.raises(errors.ServerHungUp) as caught:
        await answer(server.base_url)
    assert "cannot be reached" not in str(caught.value)


async def test_a_program_that_hangs_up_on_everything_cannot_be_reached() -> None:
    async def hang_up(stream: SocketStream) -> None:
        await stream.aclose()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, hang_up)
        port = listener.extra(SocketAttribute.local_port)
        with pytest.raises(errors.ModelUnreachable):
            await answer(f"http://127.0.0.1:{port}/v1")
        group.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("base_url", "loaded"),
    [
        ("http://127.0.0.1:9/v1", 0),
        ("http://127.0.0.2:9/v1", 0),
        ("https://127.0.0.1:9/v1", 1),
        ("http://model.example/v1", 1),
    ],
)
async def test_certificates_are_loaded_unless_the_server_is_a_plain_one_on_this_machine(
    base_url: str, loaded: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import httpcore2

    load = Mock(wraps=httpcore2.default_ssl_context)
    monkeypatch.setattr(httpcore2, "default_ssl_context", load)
    async with model_at(base_url) as model:
        await model.load()
    assert load.call_count == loaded


async def test_the_models_of_a_server_are_listed() -> None:
    with OpenAIServer(models=["a", "b"]) as server:
        async with model_at(server.base_url) as model:
            assert await model.names() == ["a", "b"]
