"""Find the authorization server of an MCP server, and its metadata.

Source: basic/authorization/authorization-server-discovery, RFC 9728, RFC 8414, OpenID Connect Discovery.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from httpx2 import URL, InvalidURL
from msgspec import Struct

from ragmcp.http.client import origin
from ragmcp.oauth.errors import AuthorizationFailed
from ragmcp.oauth.web import Web, check_secure

_PARAMETER = re.compile(r'([A-Za-z_]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^\s,"]+)')


class ResourceMetadata(Struct, frozen=True):
    """The metadata of a protected resource (RFC 9728)."""

    resource: str
    authorization_servers: list[str] = []
    scopes_supported: list[str] | None = None


class ServerMetadata(Struct, frozen=True):
    """The metadata of an authorization server (RFC 8414)."""

    issuer: str
    token_endpoint: str
    authorization_endpoint: str = ""
    registration_endpoint: str = ""
    jwks_uri: str = ""
    scopes_supported: list[str] = []
    token_endpoint_auth_methods_supported: Sequence[str] = ("client_secret_basic",)
    code_challenge_methods_supported: list[str] = []
    client_id_metadata_document_supported: bool = False
    authorization_response_iss_parameter_supported: bool = False
    dpop_signing_alg_values_supported: list[str] = []


def challenge_of(headers: Iterable[str]) -> dict[str, str]:
    """The parameters of `WWW-Authenticate`; the first value of a repeated one."""
    found: dict[str, str] = {}
    for header in headers:
        for name, value in _PARAMETER.findall(header):
            text = value[1:-1] if value.startswith('"') else value
            found.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", text))
    return found


async def find_resource(web: Web, url: str, challenge: Mapping[str, str]) -> ResourceMetadata | None:
    """The resource metadata of the MCP server at `url`; None if there is none.

    Raises AuthorizationFailed if it is on another server, or describes another one.
    """
    parts = urlsplit(str(URL(url)))
    well_known = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource"
    places = [f"{well_known}{parts.path.rstrip('/')}", well_known]
    if named := challenge.get("resource_metadata"):
        check_secure(named)
        # Otherwise a server could make us request any address that this machine reaches.
        if origin(URL(named)) != origin(URL(url)):
            raise AuthorizationFailed(url, f"its metadata is at another server, {named}")
        places = [named]
    for place in dict.fromkeys(places):
        if (found := await web.document(place, ResourceMetadata)) is not None:
            if not _covers(found.resource, url):
                raise AuthorizationFailed(url, f"its metadata is about another server, {found.resource}")
            return found
    return None


async def find_server(web: Web, issuer: str) -> ServerMetadata:
    """The metadata of the authorization server `issuer`. Raises AuthorizationFailed."""
    await web.check(issuer)
    for place in _places(issuer):
        if (found := await web.document(place, ServerMetadata)) is not None:
            # RFC 8414, 3.3: otherwise a server could impersonate another.
            if found.issuer != issuer:
                raise AuthorizationFailed(issuer, f"its metadata names another issuer, {found.issuer}")
            for endpoint in (found.token_endpoint, found.authorization_endpoint, found.registration_endpoint):
                await web.check(endpoint)
            return found
    raise AuthorizationFailed(issuer, "it does not describe itself at any of the usual addresses")


def _places(issuer: str) -> list[str]:
    parts = urlsplit(str(URL(issuer)))  # normalized like the requests
    root, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    oauth, openid = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
    places = [f"{root}{oauth}{path}", f"{root}{openid}{path}"]
    return [*places, f"{root}{path}{openid}"] if path else places


def _covers(resource: str, url: str) -> bool:
    """Whether a token for `resource` is valid for `url`: the same path, or a path below it."""
    try:
        ours, theirs = URL(url), URL(resource)
    except InvalidURL:
        return False
    path = f"{theirs.path.rstrip('/')}/"
    return origin(ours) == origin(theirs) and f"{ours.path.rstrip('/')}/".startswith(path)
