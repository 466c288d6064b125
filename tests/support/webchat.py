"""Requests of the page's conversation to a running `ragchat web`, without a browser."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import httpx2

from tests.support.openai_server import OpenAIServer
from tests.support.program import Program


def with_model(program: Program, model: OpenAIServer) -> Program:
    variables = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "k", "RAGCHAT_MODEL_NAME": "test-model"}
    return Program(program.home, program.folder, {**program.environ, **variables})


def new_session(client: httpx2.Client) -> str:
    session_id: str = client.post("/api/sessions", json={}).raise_for_status().json()["session_id"]
    return session_id


def events(
    client: httpx2.Client, session_id: str, kind: str = "ask", **asked: Any
) -> Generator[dict[str, Any], None, None]:
    """The events of a turn, as they come; `kind` "answer": of the one that goes on."""
    method, sent = ("GET", None) if kind == "answer" else ("POST", asked)
    with client.stream(method, f"/api/sessions/{session_id}/{kind}", json=sent) as response:
        response.raise_for_status()
        for line in response.iter_lines():
            yield json.loads(line)


def last_event(
    client: httpx2.Client, session_id: str, question: str = "", kind: str = "ask", **asked: Any
) -> dict[str, Any]:
    """`turn` or `error`."""
    return [*events(client, session_id, kind, question=question, **asked)][-1]


def ask(client: httpx2.Client, session_id: str, question: str, **asked: Any) -> dict[str, Any]:
    """The finished turn."""
    event = last_event(client, session_id, question, **asked)
    assert event["type"] == "turn", event
    turn: dict[str, Any] = event["turn"]
    return turn
