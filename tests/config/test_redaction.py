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
    assert redaction.redacted("key sk-12345-67890, key sk-12345!") == "key …, key …!"


def test_a_placeholder_for_a_key_is_no_secret() -> None:
    redaction.add_secret("ollama")
    assert redaction.redacted("ollama runs") == "ollama runs"


def test_user_password_and_query_of_an_address_are_secrets() -> None:
    for address in ("http://ann:pass@host/v1?key=sk-12345", "http://other/v1", ""):
        redaction.add_secrets_of(address)
    assert redaction.redacted("http://ann:pass@host/v1?key=sk-12345") == "http://…@host/v1?…"
    assert redaction.redacted("http://other/v1") == "http://other/v1"


def test_a_log_line_with_its_traceback_is_redacted() -> None:
    secret = "sk-12345"
    redaction.add_secret(secret)
    try:
        raise ValueError(f"refused: {secret}")
    except ValueError as error:
        information = (type(error), error, error.__traceback__)
    record = logging.LogRecord("test", logging.ERROR, "", 0, "with %s", (secret,), information)
    line = redaction.RedactingFormatter().format(record)
    assert "with …" in line
    assert "ValueError: refused: …" in line
    assert secret not in line
