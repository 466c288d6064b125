"""The protocol's own JSON Schemas, and the definition in them that a message must match.

All but the first come with the official conformance suite.
"""

from __future__ import annotations

import functools
import json
import subprocess
from pathlib import Path
from typing import Any, Literal

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from ragmcp.protocol.eras import LATEST_LEGACY, LEGACY_REVISIONS, MODERN_REVISIONS
from ragmcp.protocol.schema.base import PROTOCOL_VERSION
from tests.support.typescript import MODULES, NODE

SUITE = MODULES / "@modelcontextprotocol/conformance/dist/index.js"
# The suite has no schema of this revision.
FIRST = "2024-11-05"
FIRST_SCHEMA = Path(__file__).with_name(f"schema-{FIRST}.json")
EXTRACT = Path(__file__).with_name("extract_schemas.mjs")
MODERN = MODERN_REVISIONS[0]
REVISIONS = [*LEGACY_REVISIONS, MODERN]

Side = Literal["client", "server"]

MODERN_ERRORS = {
    -32020: "HeaderMismatchError",
    -32021: "MissingRequiredClientCapabilityError",
    -32022: "UnsupportedProtocolVersionError",
}


def present() -> bool:
    """Whether every revision has a schema on this machine."""
    return SUITE.exists()


def need() -> None:
    """Skip the test where a revision has none."""
    if not present():
        pytest.skip("no MCP schemas: they come with the conformance suite, which `make test` gets with npm")


@functools.cache
def _schemas() -> dict[str, Any]:
    """By revision."""
    done = subprocess.run([NODE, str(EXTRACT), str(SUITE)], stdout=subprocess.PIPE, check=True)
    return {FIRST: json.loads(FIRST_SCHEMA.read_text(encoding="utf-8")), **json.loads(done.stdout)}


@functools.cache
def _definitions(revision: str) -> tuple[str, dict[str, Any]]:
    # In forms, numbers need not be integers: so says the TypeScript source, which is the normative one.
    text = json.dumps(_schemas()[revision])
    schema = json.loads(text.replace('"string", "integer", "boolean"', '"string", "number", "boolean"'))
    key = "$defs" if "$defs" in schema else "definitions"
    for name, bound in schema[key].get("NumberSchema", {}).get("properties", {}).items():
        if name in ("minimum", "maximum", "default"):
            bound["type"] = "number"
    return key, schema[key]


@functools.cache
def _by_method(revision: str) -> dict[str, str]:
    """The definitions of requests and notifications."""
    _, definitions = _definitions(revision)
    methods = {
        name: definition.get("properties", {}).get("method", {}).get("const")
        for name, definition in definitions.items()
        if name.endswith(("Request", "Notification")) and name != "ClientNotification"
    }
    return {method: name for name, method in methods.items() if method}


@functools.cache
def _validator(revision: str, name: str) -> Draft202012Validator:
    key, definitions = _definitions(revision)
    return Draft202012Validator({key: definitions, "$ref": f"#/{key}/{name}"})


def check(value: Any, revision: str, name: str) -> None:
    """`value` fits the definition `name` of the revision's schema."""
    need()
    if fault := best_match(_validator(revision, name).iter_errors(value)):
        raise AssertionError(
            f"no {name} of {revision}: {fault.json_path}: {fault.message:.300} in {value!r:.500}"
        )


class Conversation:
    """Follows what a client and a server say to each other, and checks it against the revision they speak."""

    def __init__(self) -> None:
        self.revisions: set[str] = set()
        self.methods: set[str] = set()
        self._legacy = self._latest = LATEST_LEGACY
        self._asked: dict[tuple[Side, int | str], tuple[str, str]] = {}

    def note(self, sender: Side, message: Any) -> None:
        """Take notice of a message, whatever it is."""
        for one in message if isinstance(message, list) else [message]:
            if isinstance(one, dict) and "method" in one and isinstance(id := one.get("id"), int | str):
                self._latest = MODERN if _is_modern(one) else self._legacy
                self._asked[sender, id] = (str(one["method"]), self._latest)

    def check(self, sender: Side, message: Any) -> None:
        """Raises AssertionError for a message that does not fit."""
        for one in message if isinstance(message, list) else [message]:
            self.note(sender, one)
            if "method" in one:
                self._check_said(one)
            else:
                self._check_answer("client" if sender == "server" else "server", one)

    def _check_said(self, message: dict[str, Any]) -> None:
        """A request or a notification."""
        self.methods.add(message["method"])
        self.revisions.add(self._latest)
        general = "JSONRPCRequest" if "id" in message else "JSONRPCNotification"
        check(message, self._latest, _by_method(self._latest).get(message["method"], general))

    def _check_answer(self, asker: Side, message: dict[str, Any]) -> None:
        method, revision = self._asked.pop((asker, message.get("id", "")), ("", self._latest))
        if "error" in message:
            # JSON-RPC wants the id of an unreadable request to be null, which the schemas do not know.
            check(
                message | {"id": message["id"] or 0},
                revision,
                _error_name(revision, message["error"]["code"]),
            )
            return
        result = message["result"]
        if method == "initialize":
            revision = self._legacy = self._latest = result["protocolVersion"]
        check(message, revision, "JSONRPCResultResponse" if revision >= "2025-11-25" else "JSONRPCResponse")
        check(result, revision, _result_name(revision, method, result))


def _is_modern(message: dict[str, Any]) -> bool:
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and PROTOCOL_VERSION in meta


def _error_name(revision: str, code: int) -> str:
    if revision == MODERN and code in MODERN_ERRORS:
        return MODERN_ERRORS[code]
    return "JSONRPCErrorResponse" if revision >= "2025-11-25" else "JSONRPCError"


def _result_name(revision: str, method: str, result: Any) -> str:
    if result.get("resultType") == "input_required":
        return "InputRequiredResult"
    name = _by_method(revision).get(method, "").removesuffix("Request") + "Result"
    is_task = result.get("resultType") == "task"
    return name if name in _definitions(revision)[1] and not is_task else "Result"
