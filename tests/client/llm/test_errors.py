"""Every error of the language model, with the sentence and the hint that the user reads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from ragchat.llm import errors
from ragchat.llm.errors import ModelError

URL = "http://127.0.0.1:1/v1"

TABLE: list[tuple[ModelError, str, str]] = [
    (
        errors.MissingKey("gpt-5"),
        "The model gpt-5 needs a key, and none is set.",
        "Set OPENAI_API_KEY, name a key file in model.key_file, or use --offline.",
    ),
    (
        errors.PullFailed("qwen3:8b", "the connection broke", "Run it again."),
        "Ollama did not pull qwen3:8b: the connection broke.",
        "Run it again.",
    ),
    (
        errors.KeyRejected(URL),
        f"{URL} did not accept the key.",
        "Check OPENAI_API_KEY or model.key_file, and that the key belongs to this server.",
    ),
    (
        errors.KeyUnusable(),
        "The key for the model cannot be sent: it contains characters that are not allowed in a key.",
        "Check OPENAI_API_KEY or model.key_file.",
    ),
    (
        errors.ModelUnreachable(URL, "refused"),
        f"{URL} cannot be reached: refused.",
        "Is the server running? Check model.base_url and OPENAI_BASE_URL, or use --offline.",
    ),
    (
        errors.ServerHungUp(URL, "Server disconnected"),
        f"{URL} runs, but closed the connection without an answer: Server disconnected.",
        "Look at the server's own log. It may be out of memory, or its context too small for the prompt.",
    ),
    (
        errors.PromptNotTaken(URL, 2100),
        f"{URL} answers a short prompt, but closes the connection on one of about 2100 tokens: its context "
        "is probably too small.",
        "Start the server with a larger context (n_ctx), or lower model.context_tokens to what it has.",
    ),
    (errors.UnknownModel("a", URL, [], ["b", "c"]), f"{URL} has no model a.", "It has b, c."),
    (
        errors.UnknownModel("a", URL, ["b"], ["b", "c"]),
        f"{URL} has no model a.",
        "Did you mean b? It has b, c.",
    ),
    (
        errors.UnknownModel("a", URL, ["a1", "a2"], [*"bcdefg"]),
        f"{URL} has no model a.",
        "Did you mean a1 or a2? It has 6 chat models.",
    ),
    (
        errors.UnknownModel("a", URL, [], [*"bcdefg"]),
        f"{URL} has no model a.",
        "It has 6 chat models, among them b, c, d, e, f.",
    ),
    (
        errors.UnknownModel("a", URL, ["a"], ["a"]),
        f"{URL} has no model a.",
        "It lists this model: the key may have no right to it, or the server could not load it.",
    ),
    (errors.UnknownModel("a", URL), f"{URL} has no model a.", "Check model.name and model.base_url."),
    (errors.NoChatModel(URL), f"{URL} lists no chat model.", "Name one with --model or model.name."),
    (
        errors.ContextOverflow("m", "you requested 9801 tokens", 9000),
        "The prompt of about 9000 tokens is more than m can hold: you requested 9801 tokens.",
        "Lower model.context_tokens to what the model holds.",
    ),
    (
        errors.SessionOverflow("m", "you requested 9801 tokens", 9000),
        "The prompt of about 9000 tokens is more than m can hold: you requested 9801 tokens.",
        "Lower model.context_tokens to what the model holds, or ask without -c and --session.",
    ),
    (
        errors.QuestionTooLong(900, 10),
        "The question has about 900 tokens; there is room for 10.",
        "Shorten it, put the text into memory with `ragchat inject`, or use a larger context.",
    ),
    (
        errors.ContextTooSmall(1500, 1000, 620),
        "A context of 1500 tokens has no room for a question: 1000 are kept for the answer, and the "
        "instructions and tools take about 620.",
        "Raise model.context_tokens if the model holds more, lower model.answer_tokens, or use --no-tools.",
    ),
    (
        errors.RateLimited(URL, "slow down", 7.4),
        f"{URL} accepts no more requests for now: slow down.",
        "Ask again in 7 s.",
    ),
    (
        errors.RateLimited(URL, "slow down"),
        f"{URL} accepts no more requests for now: slow down.",
        "Ask again in 5 s.",
    ),
    (
        errors.QuotaUsedUp(URL, "no credits"),
        f"The quota of your key at {URL} is used up: no credits.",
        "Waiting does not help: check the account's plan and billing, use another model, or --offline.",
    ),
    (
        errors.ModelTimedOut(URL, 2.5),
        f"{URL} sent nothing for 2.5 s.",
        "Ask again; a slow machine may need a larger model.timeout_seconds.",
    ),
    (
        errors.ModelLoading(URL, 120.0),
        f"{URL} is still loading its model.",
        "Ask again in a while; a large model may need a larger model.timeout_seconds.",
    ),
    (errors.ModelRefused(URL, 422, "no"), f"{URL} refused the request (422): no.", ""),
    (
        errors.ModelBroken(URL, "500, oops"),
        f"{URL} failed: 500, oops.",
        "Ask again; if it fails again, look at the server's own log.",
    ),
    (
        errors.NoApi("http://127.0.0.1:1", "404, Not Found"),
        "http://127.0.0.1:1 is not the address of a model's API: 404, Not Found.",
        "Did you mean http://127.0.0.1:1/v1? Check model.base_url and OPENAI_BASE_URL.",
    ),
    (
        errors.NoApi(URL, "it sent something that is not JSON"),
        f"{URL} is not the address of a model's API: it sent something that is not JSON.",
        "Check model.base_url and OPENAI_BASE_URL.",
    ),
    (
        errors.BrokenStream(URL, "closed"),
        f"{URL} broke off in the middle of the answer: closed.",
        "Ask again.",
    ),
    (
        errors.EmptyAnswer("tiny"),
        "The model tiny gave an empty answer.",
        "Ask again, or choose another model.",
    ),
    (
        errors.LimitReached("tiny", "model.turn_seconds = 60"),
        "The model tiny gave no answer within the limit model.turn_seconds = 60.",
        "Ask again, raise the limit, or choose another model.",
    ),
    (
        errors.ToolCallsUsedUp("tiny", "tools.rounds = 4"),
        "The model tiny gave no answer: it called tools until the limit (tools.rounds = 4).",
        "Ask again, raise the limit, or choose another model.",
    ),
]


@pytest.mark.parametrize(("error", "sentence", "hint"), TABLE, ids=lambda value: type(value).__name__)
def test_an_error_says_what_happened_and_what_to_do(error: ModelError, sentence: str, hint: str) -> None:
    assert (str(error), error.hint) == (sentence, hint)
    assert error.code.startswith("MODEL_")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "too long"}}, "too long"),
        ({"error": "no such path"}, "no such path"),
        ({"detail": "Not Found"}, "Not Found"),
        ("<html>", "<html>"),
        ({"a": 1}, "{'a': 1}"),
    ],
)
def test_the_message_is_found_in_the_bodies_of_all_servers(body: object, message: str) -> None:
    assert errors.message_in(body) == message


def test_a_pause_may_be_given_as_a_date() -> None:
    in_a_minute = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert 50 < (errors.seconds_until(in_a_minute) or 0) <= 60
    assert errors.seconds_until("soon") is None


def test_the_table_holds_every_error() -> None:
    roots = (ModelError, errors.ModelServerError, errors.ContextOverflow)
    leaves = {leaf for root in roots for leaf in root.__subclasses__()} - {errors.ModelServerError}
    assert {type(error) for error, _, _ in TABLE} == leaves
