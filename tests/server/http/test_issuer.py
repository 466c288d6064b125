"""Tokens of an identity provider for the named memories of a server. Covers `issuer`."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from cryptography.hazmat.primitives import serialization

from ragmcp.http.connect import open_http
from ragmcp.http.reach import Reach
from ragmcp.oauth.authorization import OAuth
from ragmcp.oauth.discovery import ResourceMetadata, challenge_of, find_resource
from ragmcp.oauth.store import Registration
from ragmcp.oauth.web import open_web
from ragmemory.http import issuer as issuers
from ragmemory.http.issuer import InvalidToken, Issuer
from tests.support.http_memory import PLAIN_HTTP, host
from tests.support.identity_provider import ALGORITHMS, IdentityProvider, identity_provider, new_key, public
from tests.support.oauth_grants import ClientCredentials
from tests.support.processes import LONGEST_SECONDS, run_memory
from tests.support.team_memory import (
    RIGHTS,
    Team,
    listening,
    team_memory,
    token_of,
    usual_memories,
    write_file,
)

SECRET = b"a-shared-secret-of-more-than-thirty-two-bytes"


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as provider:
        provider.more_keys = [
            {"kty": "oct", "kid": "shared", "k": base64url(SECRET)},
            {**public("for-encryption", OTHER_KEY), "use": "enc"},
        ]
        yield provider


@pytest.fixture(scope="module")
def team(provider: IdentityProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    with team_memory(tmp_path_factory.mktemp("team"), "-v", RAGCHAT_HTTP_ISSUER=provider.url) as team:
        yield team


def asked(team: Team, memory: str, token: str) -> httpx2.Response:
    with host(team.url(memory), token=token) as speaker:
        return speaker.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_token_is_accepted_with_the_right_that_its_scope_names(
    team: Team, provider: IdentityProvider, algorithm: str
) -> None:
    for scope, tools in (("read", ["Query"]), ("profile write", ["Inject", "Query"]), ("read admin", None)):
        response = asked(team, "notes", provider.token(team.url("notes"), scope, algorithm=algorithm))
        assert response.status_code == 200
        assert [tool["name"] for tool in response.json()["result"]["tools"]] == tools or tools is None


@pytest.mark.parametrize(
    "claims", [{"scope": None, "scp": "read write"}, {"scope": None, "scp": ["write", 1]}, {"aud": None}]
)
def test_other_ways_to_say_the_same_are_understood(
    team: Team, provider: IdentityProvider, claims: dict[str, Any]
) -> None:
    if "aud" in claims:
        claims = {"aud": ["https://elsewhere.example", team.url("notes")]}
    token = provider.token(team.url("notes"), **{"scope": "write"} | claims)
    assert asked(team, "notes", token).status_code == 200


def test_a_token_for_one_memory_opens_no_other(team: Team, provider: IdentityProvider) -> None:
    for audience in (team.url("notes"), team.url(), team.server.root, f"{team.url('plans')}/", "plans"):
        for memory in ("plans", "nowhere"):
            assert asked(team, memory, provider.token(audience, "admin")).status_code == 401
    # For an unknown memory not even a token that would be good.
    assert asked(team, "nowhere", provider.token(team.url("nowhere"), "admin")).status_code == 401
    with host(team.server.url, token=provider.token(team.server.url, "admin")) as speaker:
        assert speaker.post({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}).status_code == 401


def test_a_session_belongs_to_its_user_whose_tokens_change(team: Team, provider: IdentityProvider) -> None:
    ping = {"jsonrpc": "2.0", "id": 5, "method": "ping"}
    url = team.url("notes")
    with host(url, "2025-11-25", provider.token(url)) as ours:
        ours.begin()
        for claims, status in (({"jti": "2"}, 200), ({"sub": "bert"}, 404), ({"sub": None}, 404)):
            with host(url, "2025-11-25", provider.token(url, **claims)) as other:
                other.heads = ours.heads
                assert other.post(ping).status_code == status


def test_the_name_by_which_a_client_addresses_the_server_changes_no_audience(
    team: Team, provider: IdentityProvider
) -> None:
    headers = {"host": "evil.example", "content-type": "application/json"}
    for root, status in (("http://evil.example", 401), (team.server.root, 400)):
        token = provider.token(f"{root}/mcp/notes", "admin")
        response = httpx2.post(
            team.url("notes"),
            headers=headers | {"authorization": f"Bearer {token}"},
            content=b"{}",
            **PLAIN_HTTP,
        )
        assert response.status_code == status


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def with_header(token: str, secret: bytes = b"", **header: Any) -> str:
    """The same claims under another header, signed with a secret if there is one."""
    signed = f"{base64url(json.dumps(header).encode())}.{token.split('.')[1]}"
    return f"{signed}.{base64url(hmac.digest(secret, signed.encode(), 'sha256')) if secret else ''}"


def public_pem(key: Any) -> bytes:
    pem: bytes = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return pem


def self_signed(provider: IdentityProvider, audience: str) -> str:
    headers = {"kid": "own", "jwk": public("own", OTHER_KEY), "jku": f"{provider.url}/own"}
    return provider.token(audience, "admin", key=OTHER_KEY, headers=headers)


def changed(token: str) -> str:
    head, claims, signature = token.split(".")
    return f"{head}.{claims[:-8]}AAAAAAAA.{signature}"


def nested(_: IdentityProvider, __: str) -> str:
    deep = base64url(b"[" * 12_000)
    return f"{deep}.{deep}.{deep}"


OTHER_KEY = new_key("RS256")
# Tokens for an audience that must not be accepted.
FORGED: dict[str, Callable[[IdentityProvider, str], str]] = {
    "without a signature": lambda p, to: with_header(p.token(to, "admin"), alg="none", kid="RS256"),
    "without an algorithm": lambda p, to: with_header(p.token(to, "admin"), kid="RS256"),
    "signed with the public key as a secret": lambda p, to: with_header(
        p.token(to, "admin"), public_pem(p.keys["RS256"]), alg="HS256", kid="RS256"
    ),
    "signed with a secret that is among the keys": lambda p, to: with_header(
        p.token(to, "admin"), SECRET, alg="HS256", kid="shared"
    ),
    "with an algorithm that is not allowed": lambda p, to: p.token(
        to, "admin", algorithm="PS256", key=p.keys["RS256"], headers={"kid": "RS256"}
    ),
    "of another key of the same name": lambda p, to: p.token(to, "admin", key=OTHER_KEY),
    "with the key of another algorithm": lambda p, to: p.token(
        to, "admin", algorithm="ES256", headers={"kid": "EdDSA"}
    ),
    "with a key for encryption": lambda p, to: p.token(
        to, "admin", key=OTHER_KEY, headers={"kid": "for-encryption"}
    ),
    "with a key that it brings itself": self_signed,
    "without the name of its key": lambda p, to: p.token(to, "admin", headers={"kid": None}),
    "of which a claim was changed": lambda p, to: changed(p.token(to, "admin")),
    "cut short": lambda p, to: p.token(to, "admin")[:-4],
    "expired": lambda p, to: p.token(to, "admin", exp=time.time() - 60),
    "not valid yet": lambda p, to: p.token(to, "admin", nbf=time.time() + 600),
    "without an end": lambda p, to: p.token(to, "admin", exp=None),
    "with an end that is no time": lambda p, to: p.token(to, "admin", exp="soon"),
    "that never ends": lambda p, to: p.token(to, "admin", exp=1e400),
    "of another issuer": lambda p, to: p.token(to, "admin", iss="https://evil.example"),
    "without an issuer": lambda p, to: p.token(to, "admin", iss=None),
    "without an audience": lambda p, to: p.token(to, "admin", aud=None),
    "that is no token": lambda _, __: "a.b.c",
    "of empty parts": lambda _, __: "..",
    "nested too deeply": nested,
}


@pytest.mark.parametrize("kind", FORGED)
def test_a_token_that_is_not_good_is_refused(provider: IdentityProvider, team: Team, kind: str) -> None:
    response = asked(team, "notes", FORGED[kind](provider, team.url("notes")))
    assert response.status_code == 401
    expected = "has expired" if kind == "expired" else "is wrong"
    assert response.json()["error"]["message"].endswith(f"the token sent {expected}.")
    assert "Traceback" not in team.log


def test_a_token_without_any_right_is_told_which_one_it_needs(team: Team, provider: IdentityProvider) -> None:
    for scope in ("", "profile", "readwrite", ["read", 5], 7, None):
        response = asked(team, "notes", provider.token(team.url("notes"), scope))
        if scope == ["read", 5]:
            assert response.status_code == 200
            continue
        assert response.status_code == 403
        challenge = challenge_of([response.headers["www-authenticate"]])
        assert (challenge["error"], challenge["scope"]) == ("insufficient_scope", "read")


async def test_clients_find_out_who_gives_tokens(team: Team, provider: IdentityProvider) -> None:
    refused = asked(team, "notes", "wrong")
    challenge = challenge_of([refused.headers["www-authenticate"]])
    assert challenge["resource_metadata"].endswith("/.well-known/oauth-protected-resource/mcp/notes")
    assert challenge["scope"] == "read"
    async with open_web(Reach(team.url("notes"))) as web:
        found = await find_resource(web, team.url("notes"), challenge)
    assert found == ResourceMetadata(team.url("notes"), [provider.url], [*RIGHTS])
    document = httpx2.get(challenge["resource_metadata"], **PLAIN_HTTP).json()
    assert document["bearer_methods_supported"] == ["header"]
    # A memory that does not exist is described alike.
    other = httpx2.get(challenge["resource_metadata"].replace("notes", "no/w%22here"), **PLAIN_HTTP)
    assert other.json() == {**document, "resource": f"{team.url()}/no%2Fw%22here"}
    inject = {"name": "Inject", "arguments": {"text": "x"}}
    with host(team.url("notes"), token=provider.token(team.url("notes"))) as reader:
        response = reader.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": inject})
    assert response.status_code == 403
    step_up = challenge_of([response.headers["www-authenticate"]])
    assert step_up == {
        "error": "insufficient_scope",
        "scope": "write",
        "resource_metadata": challenge["resource_metadata"],
    }


async def test_a_client_gets_a_token_by_itself_and_a_larger_one_once_it_needs_that(
    team: Team, provider: IdentityProvider
) -> None:
    url = team.url("plans")
    authorization = OAuth(url, ClientCredentials(Registration("us", "secret")))
    async with open_http(
        url, client_name="tests", client_version="0", message_bytes=2**20, authorization=authorization
    ) as client:
        assert [tool.name for tool in await client.list_tools()] == ["Query"]
        done = await client.call_tool("Inject", {"text": "Foxes jump."}, timeout=LONGEST_SECONDS)
        assert not done.is_error
    assert provider.asked == ["read", "read write"]


def test_tokens_of_the_file_are_accepted_as_well(team: Team) -> None:
    assert asked(team, "notes", token_of("notes", "read")).status_code == 200
    assert asked(team, "notes", token_of("plans", "read")).status_code == 401


def test_a_stream_ends_with_its_token(provider: IdentityProvider, team: Team) -> None:
    # Until then a busy machine, too, has begun the stream.
    token = provider.token(team.url("notes"), exp=time.time() - issuers.LEEWAY_SECONDS + 6)
    with host(team.url("notes"), token=token) as speaker:
        with listening(speaker, resourcesListChanged=True) as lines:
            assert [line for line in lines if line.startswith("data")] == []
        assert asked(team, "notes", token).status_code == 401


def test_no_token_is_in_the_log(team: Team, provider: IdentityProvider) -> None:
    token = provider.token(team.url("plans"))
    assert asked(team, "notes", token).status_code == 401
    assert not [part for part in token.split(".") if part in team.log]


# Keys


@contextmanager
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The seconds by which the clock of the keys is ahead."""
    ahead = [0.0]
    with monkeypatch.context() as patch:
        patch.setattr(issuers, "monotonic", lambda: time.monotonic() + ahead[0])
        yield ahead


async def check(issuer: Issuer, token: str) -> str | None:
    try:
        return (await issuer.check(token, "here"))[0]
    except InvalidToken:
        return "invalid"


async def test_keys_are_read_once_and_again_for_an_unknown_one_at_most_once_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with identity_provider() as provider, clock(monkeypatch) as ahead:
        issuer = Issuer(provider.url)
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(check, issuer, provider.token("here"))
        assert await check(issuer, provider.token("here")) == "read"
        assert provider.count["/keys"] == 1
        provider.keys["new"] = new_key("ES256")
        rotated = provider.token("here", algorithm="ES256", key=provider.keys["new"], headers={"kid": "new"})
        for _ in range(10):
            assert await check(issuer, rotated) == "invalid"
        assert provider.count["/keys"] == 1
        ahead[0] = issuers.RETRY_SECONDS + 1
        assert await check(issuer, rotated) == "read"
        assert provider.count["/keys"] == 2


async def test_a_key_that_is_withdrawn_is_not_accepted_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    with identity_provider() as provider, clock(monkeypatch) as ahead:
        issuer = Issuer(provider.url)
        token = provider.token("here", exp=time.time() + 9_999)
        assert await check(issuer, token) == "read"
        del provider.keys["RS256"]
        assert await check(issuer, token) == "read"
        ahead[0] = issuers.KEYS_SECONDS + 1
        assert await check(issuer, token) == "invalid"


async def test_known_keys_are_used_while_the_provider_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with identity_provider() as provider, clock(monkeypatch) as ahead:
        issuer, token = Issuer(provider.url), provider.token("here")
        assert await check(issuer, token) == "read"
        ahead[0] = issuers.KEYS_SECONDS + 1
        provider.answers.clear()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(check, issuer, token)
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(issuers.FETCH_SECONDS / 2):
                assert await check(issuer, token) == "read"
            provider.answers.set()


async def test_keys_that_cannot_be_read_again_stay_and_are_named_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with clock(monkeypatch) as ahead:
        with identity_provider() as provider:
            issuer, token = Issuer(provider.url), provider.token("here")
            assert await check(issuer, token) == "read"
        ahead[0] = issuers.KEYS_SECONDS + 1
        assert await check(issuer, token) == "read"
    assert f"The keys of {provider.url} cannot be read" in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {"issuer": "https://evil.example"},
        {"jwks_uri": "http://keys.example/keys"},
        {"jwks_uri": ""},
        {"jwks_uri": "/keys"},
        {"jwks_uri": 5},
    ],
    ids=str,
)
async def test_a_provider_that_says_nothing_usable_of_itself_gives_no_keys(
    metadata: dict[str, Any] | None, caplog: pytest.LogCaptureFixture
) -> None:
    with identity_provider() as provider:
        provider.metadata = metadata
        assert await check(Issuer(provider.url), provider.token("here")) == "invalid"
        assert provider.count["/keys"] == 0
        assert "cannot be read" in caplog.text
        # Where its keys are may be said in the settings.
        assert await check(Issuer(provider.url, f"{provider.url}/keys"), provider.token("here")) == "read"


@pytest.mark.parametrize("keys", [[], [{}], [{"kty": "RSA", "kid": ["x"], "n": "AQ", "e": "AQAB"}]], ids=str)
async def test_unusable_keys_are_no_keys(
    keys: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    with identity_provider() as provider:
        token = provider.token("here")
        provider.keys, provider.more_keys = {}, keys
        assert await check(Issuer(provider.url), token) == "invalid"
    assert "cannot be read" in caplog.text


async def test_more_than_a_provider_ever_sends_is_not_read(caplog: pytest.LogCaptureFixture) -> None:
    with identity_provider() as provider:
        provider.more_keys = [{"kty": "oct", "k": "x" * 2**21}]
        assert await check(Issuer(provider.url), provider.token("here")) == "invalid"
    assert "longer than 1,048,576 bytes" in caplog.text


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"RAGCHAT_HTTP_ISSUER": "http://login.example"}, "it is not an HTTPS address"),
        (
            {"RAGCHAT_HTTP_ISSUER": "https://login.example", "RAGCHAT_HTTP_HOST": "0.0.0.0"},
            "http.public_url names none",
        ),
        (
            {"RAGCHAT_HTTP_ISSUER": "https://login.example", "RAGCHAT_HTTP_MEMORIES": ""},
            "http.memories, which names no file",
        ),
        (
            {"RAGCHAT_HTTP_ISSUER": "https://login.example", "RAGCHAT_HTTP_JWKS": "ftp://x"},
            "not an HTTPS address",
        ),
    ],
    ids=str,
)
def test_a_provider_that_cannot_be_used_safely_is_a_sentence(
    tmp_path: Path, variables: dict[str, Any], sentence: str
) -> None:
    write_file(file := tmp_path / "memories.toml", usual_memories(tmp_path))
    named = {"RAGCHAT_HTTP_MEMORIES": str(file)} | variables
    done = run_memory(tmp_path, "http", "--port", "0", **named)
    assert done.returncode == 1
    assert sentence in done.stderr


def test_behind_a_proxy_tokens_are_for_the_public_address(tmp_path: Path, provider: IdentityProvider) -> None:
    public_url = "https://memory.example.org"
    variables: dict[str, Any] = {
        "RAGCHAT_HTTP_ISSUER": provider.url,
        "RAGCHAT_HTTP_PUBLIC_URL": f"{public_url}/",
    }
    with team_memory(tmp_path, **variables) as team:
        assert asked(team, "notes", provider.token(f"{public_url}/mcp/notes")).status_code == 200
        refused = asked(team, "notes", provider.token(team.url("notes")))
        assert refused.status_code == 401
        place = challenge_of([refused.headers["www-authenticate"]])["resource_metadata"]
        assert place == f"{public_url}/.well-known/oauth-protected-resource/mcp/notes"
