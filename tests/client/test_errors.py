"""Every error of the conversation, and the sentence it makes of its data."""

from __future__ import annotations

import pytest

from ragchat import errors
from ragchat.errors import RagChatError

URL = "http://127.0.0.1:1/v1"

TABLE: list[tuple[RagChatError, str, str]] = [
    (errors.MissingKey("gpt-5"), "The model gpt-5 needs a key, and none is set.", "OPENAI_API_KEY"),
    (errors.KeyRejected(URL), f"{URL} did not accept the key.", "OPENAI_API_KEY"),
    (errors.ModelUnreachable(URL, "refused"), f"{URL} cannot be reached: refused.", "--offline"),
    (errors.UnknownModel("a", URL, ["b", "c"]), f"{URL} has no model a.", "It has b, c."),
    (errors.UnknownModel("a", URL), f"{URL} has no model a.", "model.name"),
    (errors.NoChatModel(URL), f"{URL} lists no chat model.", "--model"),
    (
        errors.ContextOverflow("m", 9000),
        "The prompt of about 9000 tokens is more than m can hold.",
        "model.context_tokens",
    ),
    (
        errors.QuestionTooLong(900, 10),
        "The question has about 900 tokens; there is room for 10.",
        "/inject",
    ),
    (errors.RateLimited(URL, "slow down", 7), f"{URL} takes no more requests now: slow down.", "in 7 s"),
    (errors.RateLimited(URL, "slow down"), f"{URL} takes no more requests now: slow down.", "Ask again"),
    (
        errors.QuotaUsedUp(URL, "no credits"),
        f"The quota of your key at {URL} is used up: no credits.",
        "billing",
    ),
    (errors.ModelTimedOut(URL, 2.5), f"{URL} sent nothing for 2.5 s.", "model.timeout_seconds"),
    (errors.ModelRefused(URL, 422, "no"), f"{URL} refused the request (422): no.", ""),
    (errors.ModelBroken(URL, "500, oops"), f"{URL} failed: 500, oops.", "Ask again"),
    (
        errors.BrokenStream(URL, "closed"),
        f"{URL} broke off in the middle of the answer: closed.",
        "Ask again",
    ),
    (errors.EmptyAnswer("tiny"), "The model tiny gave an empty answer.", "another model"),
    (
        errors.ToolRoundsUsedUp("tiny", 4),
        "The model tiny gave no answer: it called tools until the limit (tools.rounds = 4).",
        "raise tools.rounds",
    ),
    (errors.EmptyQuestion(), "The question is empty.", ""),
    (errors.NothingToRetry(), "There is no question to repeat.", "Ask"),
    (
        errors.PromptUnreadable("prompts.system", "x.md", "gone"),
        "The prompt file x.md cannot be read: gone.",
        "prompts.system",
    ),
    (errors.UnknownSession("ab"), "There is no session ab.", "session ls"),
    (errors.NoSession(), "There is no past session yet.", "Ask"),
    (errors.AmbiguousSession("a", ["ab", "ac"]), "2 sessions begin with a.", "ab, ac"),
    (
        errors.SessionsUnavailable("s.db", "disk full"),
        "The sessions in s.db cannot be used: disk full.",
        "sessions.path",
    ),
]


@pytest.mark.parametrize(("error", "sentence", "hint"), TABLE, ids=lambda value: type(value).__name__)
def test_an_error_writes_its_own_sentence_and_says_what_to_do(
    error: RagChatError, sentence: str, hint: str
) -> None:
    assert str(error) == sentence
    assert hint in error.hint
    assert error.code == error.code.upper()
    assert type(error).code != RagChatError.code
