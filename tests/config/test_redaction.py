"""Secrets that this process has read are kept out of texts and logs."""

from __future__ import annotations

import logging

import pytest

from ragconfig import redaction


@pytest.fixture(autouse=True)
def no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_secrets", set())


def test_every_secret_is_replaced_also_one_that_contains_another() -> None:
    for secret in ("sk-12345", "sk-12345-67890"):
        redaction.add_secret(secret)
    assert redaction.redacted("key sk-12345-67890, key sk-12345!") == "key ***, key ***!"


def test_a_placeholder_for_a_key_is_no_secret() -> None:
    redaction.add_secret("ollama")
    assert redaction.redacted("ollama runs") == "ollama runs"


def test_user_password_and_query_of_an_address_are_secrets() -> None:
    for address in ("http://ann:pass@host/v1?key=sk-12345", "http://other/v1", ""):
        redaction.add_secrets_of(address)
    assert redaction.redacted("http://ann:pass@host/v1?key=sk-12345") == "http://***@host/v1?***"
    assert redaction.redacted("http://other/v1") == "http://other/v1"


def test_secrets_in_any_address_are_replaced_however_short() -> None:
    said = "No answer from 'http://ann:pw@host/v1?v=2&api_key=a.b'. See http://ann@b/?key#key=1, (//a?sig=x)."
    assert redaction.redacted(said) == (
        "No answer from 'http://***@host/v1?v=2&api_key=***'. See http://ann@b/?key#key=1, (//a?sig=***)."
    )


def test_an_address_without_a_password_beside_another_text_stays() -> None:
    for said in ('{"url":"http://host:8080","user":"ann@b"}', "http://host:8080,ann@b", "<http://h:80>ann@b"):
        assert redaction.redacted(said) == said


def test_what_is_named_like_no_secret_is_not_redacted_elsewhere() -> None:
    redaction.add_secrets_of("http://host/search?author=melville")
    assert redaction.redacted("by melville") == "by melville"


def test_a_key_that_a_server_repeats_without_the_address_is_replaced() -> None:
    redaction.add_secrets_of("http://host/v1?version=2024-10-21&token=sk-12345")
    assert redaction.redacted("sk-12345, 2024-10-21") == "***, 2024-10-21"


def test_a_log_line_with_its_traceback_is_redacted() -> None:
    secret = "sk-12345"
    redaction.add_secret(secret)
    try:
        raise ValueError(f"refused: {secret}")
    except ValueError as error:
        information = (type(error), error, error.__traceback__)
    record = logging.LogRecord("test", logging.ERROR, "", 0, "with %s", (secret,), information)
    line = redaction.RedactingFormatter().format(record)
    assert "with ***" in line
    assert "ValueError: refused: ***" in line
    assert secret not in line
