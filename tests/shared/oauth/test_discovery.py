"""Which documents describe a server, and which of them are believed."""

from __future__ import annotations

from typing import Any

import pytest

from ragmcp.http.reach import AddressRefused, Reach
from ragmcp.oauth.discovery import challenge_of, find_resource, find_server
from ragmcp.oauth.errors import AuthorizationFailed
from ragmcp.oauth.web import MAX_ANSWER_BYTES, check_secure, open_web
from tests.support.http_script import Heard, Said, Scripted
from tests.support.http_server import served

HERE = Reach("http://127.0.0.1")


def test_the_parameters_of_a_challenge_are_read() -> None:
    realm = 'Bearer realm="a, \\"b\\"", error=insufficient_scope'
    header = f'{realm}, scope="one two", Resource_Metadata="https://a/b"'
    assert challenge_of([header, 'DPoP error="use_dpop_nonce"']) == {
        "realm": 'a, "b"',
        "error": "insufficient_scope",
        "scope": "one two",
        "resource_metadata": "https://a/b",
    }
    assert challenge_of(["Negotiate"]) == {}


@pytest.mark.parametrize("url", ["https://a.org/token", "http://127.0.0.1:1/t", "http://localhost/t", ""])
def test_tokens_are_sent_over_https_and_on_this_machine(url: str) -> None:
    check_secure(url)


@pytest.mark.parametrize(
    "url", ["http://a.org/token", "http://127.0.0.1.a.org/", "ftp://a.org", "file:///etc"]
)
def test_tokens_are_sent_nowhere_else(url: str) -> None:
    with pytest.raises(AuthorizationFailed, match="not an HTTPS address"):
        check_secure(url)


@pytest.mark.parametrize(
    ("resource", "is_ours"),
    [("/mcp", True), ("", True), ("/", True), ("/mc", False), ("/mcp/more", False), ("/other", False)],
)
async def test_metadata_must_be_about_this_server(resource: str, is_ours: bool) -> None:
    described: dict[str, Any] = {}
    async with served(Scripted(lambda _: Said(body=described))) as root, open_web(HERE) as web:
        described |= {"resource": f"{root}{resource}", "authorization_servers": [root]}
        if is_ours:
            assert await find_resource(web, f"{root}/mcp", {}) is not None
        else:
            with pytest.raises(AuthorizationFailed, match="about another server"):
                await find_resource(web, f"{root}/mcp", {})


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Said(status=404, body={}), "does not describe itself"),
        (Said(body=[1, 2]), "does not describe itself"),
        (Said(body={"issuer": "https://evil.org", "token_endpoint": "https://evil.org/t"}), "another issuer"),
        (Said(body=b'"' + b"x" * MAX_ANSWER_BYTES + b'"'), "longer than"),
        (Said(status=302, body={}, headers={"location": "https://evil.org"}), "does not describe itself"),
    ],
)
async def test_an_authorization_server_must_describe_itself(answer: Said, reason: str) -> None:
    async with served(Scripted(lambda _: answer)) as root, open_web(HERE) as web:
        with pytest.raises(AuthorizationFailed, match=reason):
            await find_server(web, root)


async def test_endpoints_must_be_secure() -> None:
    described: dict[str, Any] = {}
    async with served(Scripted(lambda _: Said(body=described))) as root, open_web(HERE) as web:
        described |= {"issuer": root, "token_endpoint": "http://a.org/token"}
        with pytest.raises(AuthorizationFailed, match="not an HTTPS address"):
            await find_server(web, root)


async def test_an_authorization_server_that_is_away_is_named() -> None:
    async with served(Scripted(lambda _: Said())) as root:
        pass
    async with open_web(HERE) as web:
        with pytest.raises(AuthorizationFailed, match="cannot be reached"):
            await find_server(web, root)


async def test_a_proxy_is_not_asked_for_what_the_server_must_not_lead_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with served(proxy := Scripted(lambda _: Said(status=404))) as url:
        monkeypatch.setenv("HTTPS_PROXY", url)
        async with open_web(Reach("http://93.184.216.34/mcp")) as web:
            with pytest.raises(AddressRefused):
                await web.post("https://10.0.0.1/token", form={})
    assert proxy.heard == []


async def test_no_proxy_is_between_us_and_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token would leave it in plain text."""
    async with (
        served(proxy := Scripted(lambda _: Said(status=404))) as away,
        served(Scripted(_listed)) as here,
    ):
        monkeypatch.setenv("HTTP_PROXY", away)
        async with open_web(HERE) as web:
            for url in (here, here.replace("127.0.0.1", "localhost")):
                assert await web.document(url, list) == [1]
    assert proxy.heard == []


def _listed(_: Heard) -> Said:
    return Said(body=[1])
