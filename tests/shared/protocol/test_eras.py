"""Which era a request belongs to, and what a server's answer to the probe says."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from ragmcp.errors import InvalidParams, UnsupportedRevision, WireError
from ragmcp.protocol.eras import LEGACY_REVISIONS, ConnectionState, Era, Terms, verdict
from ragmcp.protocol.schema.base import Implementation, Params, RequestMeta

ME = Implementation(name="me", version="1")


def modern(revision: str = "2026-07-28") -> Params:
    meta = RequestMeta(protocol_version=revision, client_info=ME, client_capabilities={"roots": {}})
    return Params(meta=meta)


def initialized(revision: str) -> ConnectionState:
    """A connection after the handshake."""
    session = ConnectionState()
    session.terms = Terms(Era.LEGACY, revision, ME, {})
    return session


def test_a_modern_request_brings_its_own_terms() -> None:
    terms = ConnectionState().admit("tools/list", modern())
    assert (terms.era, terms.revision, terms.client, terms.capabilities) == (
        Era.MODERN,
        "2026-07-28",
        ME,
        {"roots": {}},
    )


def test_a_modern_client_need_not_say_who_it_is() -> None:
    meta = RequestMeta(protocol_version="2026-07-28", client_capabilities={})
    assert ConnectionState().admit("tools/list", Params(meta=meta)).client.name == "unknown"


def test_a_modern_request_without_capabilities_is_malformed() -> None:
    with pytest.raises(InvalidParams, match="clientCapabilities"):
        ConnectionState().admit("tools/list", Params(meta=RequestMeta(protocol_version="2026-07-28")))


@pytest.mark.parametrize("revision", ["1900-01-01", "2025-11-25", ""])
def test_a_revision_that_is_not_modern_is_refused_with_those_that_are(revision: str) -> None:
    with pytest.raises(UnsupportedRevision) as refused:
        ConnectionState().admit("tools/list", modern(revision))
    assert list(refused.value.supported) == ["2026-07-28"]


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
def test_the_handshake_settles_the_terms_of_what_follows(revision: str) -> None:
    terms = initialized(revision).admit("tools/list", Params())
    assert (terms.era, terms.revision, terms.client) == (Era.LEGACY, revision, ME)


def test_both_eras_go_side_by_side_in_one_session() -> None:
    session = initialized("2025-06-18")
    assert session.admit("tools/list", modern()).era is Era.MODERN
    assert session.admit("tools/list", Params()).era is Era.LEGACY


def test_before_the_handshake_only_initialize_and_ping_are_admitted() -> None:
    assert ConnectionState().admit("ping", Params()).era is Era.LEGACY
    assert ConnectionState().admit("initialize", modern()).era is Era.LEGACY
    with pytest.raises(InvalidParams, match="protocolVersion"):
        ConnectionState().admit("tools/list", Params())


@pytest.mark.parametrize(("revision", "batches"), [(r, r == "2025-03-26") for r in LEGACY_REVISIONS])
def test_batches_exist_in_one_revision_only(revision: str, batches: bool) -> None:
    assert not ConnectionState().batches
    assert initialized(revision).batches is batches


def discovered(*versions: str) -> Raw:
    return Raw(
        json.dumps({"supportedVersions": versions, "capabilities": {}, "resultType": "complete"}).encode()
    )


@pytest.mark.parametrize(
    ("answer", "revision"),
    [
        (discovered("2026-07-28", "2025-11-25"), "2026-07-28"),
        (discovered("2025-11-25"), None),
        (discovered(), None),
        (Raw(b'{"hello":1}'), None),
        (Raw(b"[]"), None),
        (None, None),
        (WireError(-32601, "no"), None),
        (WireError(-32602, "no"), None),
        (WireError(-32000, "no", {"supported": ["2026-07-28"]}), None),
        (WireError(-32022, "no", {"supported": ["2026-07-28"]}), "2026-07-28"),
        (WireError(-32022, "no", {"supported": ["2025-11-25"]}), None),
        (WireError(-32021, "no"), "2026-07-28"),
    ],
)
def test_the_verdict_of_a_probe(answer: Raw | WireError | None, revision: str | None) -> None:
    assert verdict(answer) == revision


@pytest.mark.parametrize(
    "answer",
    [
        discovered("2099-01-01"),
        WireError(-32022, "no", {"supported": ["2099-01-01"]}),
        WireError(-32022, "no", 5),
    ],
)
def test_a_modern_server_with_no_revision_in_common_is_an_error_and_not_a_legacy_one(
    answer: Raw | WireError,
) -> None:
    with pytest.raises(UnsupportedRevision):
        verdict(answer)
