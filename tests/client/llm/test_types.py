"""What is known of a model."""

from __future__ import annotations

from ragchat.llm.types import ModelEndpoint


def test_a_key_is_never_shown() -> None:
    assert "secret" not in repr(ModelEndpoint("m", "http://x/v1", "secret"))
