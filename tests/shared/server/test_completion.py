"""Completion of what a user types, in every revision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ragmcp.protocol.schema.completion import PromptReference, Reference, TemplateReference
from ragmcp.server.core import Server
from tests.support.raw_mcp import raw_client
from tests.support.schemas import REVISIONS


async def complete(
    reference: Reference, argument: str, typed: str, others: Mapping[str, str]
) -> Sequence[str]:
    match reference:
        case PromptReference(name="numbers"):
            return [str(n) for n in range(1000) if str(n).startswith(typed)]
        case TemplateReference(uri="test://{city}/{street}") if argument == "street":
            return [f"{others.get('city', '?')} {typed}street"]
    return []


def server() -> Server:
    return Server("completer", "1", [], complete=complete)


def params(typed: str, **others: Any) -> dict[str, Any]:
    return {
        "ref": {"type": "ref/prompt", "name": "numbers"},
        "argument": {"name": "n", "value": typed},
    } | others


@pytest.mark.parametrize("revision", REVISIONS)
async def test_values_that_fit_come_best_first(revision: str) -> None:
    async with raw_client(server(), revision) as client:
        completion = (await client.request("completion/complete", params("99")))["result"]["completion"]
        assert completion == {
            "values": ["99", *(str(n) for n in range(990, 1000))],
            "total": 11,
            "hasMore": False,
        }


@pytest.mark.parametrize("revision", REVISIONS)
async def test_at_most_a_hundred_values_are_sent_and_the_others_counted(revision: str) -> None:
    async with raw_client(server(), revision) as client:
        completion = (await client.request("completion/complete", params("")))["result"]["completion"]
        assert (len(completion["values"]), completion["total"], completion["hasMore"]) == (100, 1000, True)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_what_nobody_knows_is_completed_to_nothing(revision: str) -> None:
    async with raw_client(server(), revision) as client:
        unknown = {"type": "ref/prompt", "name": "nope"}
        completion = (await client.request("completion/complete", params("x", ref=unknown)))["result"][
            "completion"
        ]
        assert completion == {"values": [], "total": 0, "hasMore": False}


@pytest.mark.parametrize("revision", REVISIONS)
async def test_what_was_filled_in_before_helps(revision: str) -> None:
    async with raw_client(server(), revision) as client:
        asked = {
            "ref": {"type": "ref/resource", "uri": "test://{city}/{street}"},
            "argument": {"name": "street", "value": "Main "},
            "context": {"arguments": {"city": "Aldermoor"}},
        }
        completion = (await client.request("completion/complete", asked))["result"]["completion"]
        assert completion["values"] == ["Aldermoor Main street"]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    "ref", [{"type": "ref/other"}, {"type": "ref/prompt"}, {"type": "ref/resource"}, {}, 5]
)
async def test_a_reference_to_nothing_known_is_refused(revision: str, ref: Any) -> None:
    async with raw_client(server(), revision) as client:
        assert (await client.request("completion/complete", params("x", ref=ref)))["error"]["code"] == -32602


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_server_without_completion_does_not_know_the_method(revision: str) -> None:
    async with raw_client(Server("none", "1", []), revision) as client:
        assert (await client.request("completion/complete", params("x")))["error"]["code"] == -32601
