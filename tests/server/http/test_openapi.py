from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from ragmemory.mcp import toolsets
from tests.support.http_memory import PLAIN_HTTP, HttpMemory, http_memory

ALL = ("--toolsets", ",".join(toolsets._TOOLSETS))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpMemory]:
    with http_memory(tmp_path_factory.mktemp("http"), *ALL, RAGCHAT_HTTP_PLAIN_FORM="true") as server:
        yield server


def described(server: HttpMemory, **headers: str) -> Any:
    response = httpx2.get(f"{server.root}/openapi.json", headers=headers, **PLAIN_HTTP)
    assert response.status_code == 200
    return response.json()


def validator(document: Any, name: str) -> Draft202012Validator:
    """Validates against a schema of the document."""
    resource = Resource.from_contents(document, default_specification=DRAFT202012)
    registry: Registry[Any] = Registry().with_resource("urn:openapi", resource)
    return Draft202012Validator({"$ref": f"urn:openapi#/components/schemas/{name}"}, registry=registry)


def test_the_schemas_of_the_description_are_valid_and_every_path_is_served(server: HttpMemory) -> None:
    document = described(server)
    for path, operations in document["paths"].items():
        for method in operations:
            with httpx2.stream(method, f"{server.root}{path}", **PLAIN_HTTP) as response:
                assert response.status_code != 404 or "SESSION" in response.read().decode(), path
    assert document["openapi"].startswith("3.1")
    assert document["servers"] == [{"url": server.root}]
    assert "security" not in document
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


@pytest.mark.full
def test_the_description_is_valid_and_has_the_plain_form_of_every_tool(server: HttpMemory) -> None:
    document = described(server)
    pytest.importorskip("openapi_spec_validator").validate(document)
    schemas = document["components"]["schemas"]
    assert {name for name in schemas if name.endswith(".request")} == {
        f"{tool}.request" for tool in server.told["tools"]
    }
    for tool, params in (
        ("Inject", {"text": "Foxes jump.", "metadata": {"uri": "fox"}}),
        ("get_document", {"document": "fox"}),
        ("get_document", {"document": "no fox"}),
        ("get_memory_stats", {}),
    ):
        request = {"method": tool, "params": params, "id": 1}
        validator(document, f"{tool}.request").validate(request)
        answer = httpx2.post(server.url, json=request, **PLAIN_HTTP)
        validator(document, f"{tool}.response").validate(answer.json())
    assert not validator(document, "Inject.request").is_valid({"method": "Inject", "params": {}})


@pytest.mark.full
def test_without_the_plain_form_no_tool_is_described(tmp_path: Path) -> None:
    with http_memory(tmp_path, *ALL, RAGCHAT_HTTP_PLAIN_FORM="false") as server:
        assert described(server)["components"]["schemas"].keys() == {"Message", "Error", "ToolFailure"}


def test_the_description_needs_the_token_and_names_it(tmp_path: Path) -> None:
    with http_memory(tmp_path, RAGMEMORY_TOKEN="t" * 32) as server:
        address = f"{server.root}/openapi.json"
        refused = httpx2.get(address, **PLAIN_HTTP)
        assert refused.status_code == 401
        document = described(server, authorization=f"Bearer {'t' * 32}")
        assert document["security"] == [{"token": []}]
        assert document["paths"]["/health"]["get"]["security"] == []
