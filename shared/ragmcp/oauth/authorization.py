"""Adds a token to each request to a server; renews it, or requests more scopes, when the server refuses it.

Source: basic/authorization.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import anyio
import httpx2

from ragmcp.http.client import Attempt
from ragmcp.http.reach import Reach
from ragmcp.oauth import discovery, dpop
from ragmcp.oauth.discovery import ServerMetadata
from ragmcp.oauth.dpop import Prover
from ragmcp.oauth.errors import AuthorizationFailed
from ragmcp.oauth.grants import TokenRequest, TokenSource, refresh
from ragmcp.oauth.store import Grant, RunStore, Store
from ragmcp.oauth.web import Web, open_web

log = logging.getLogger(__name__)

OFFLINE_ACCESS = "offline_access"
# How often one request may be repeated with a renewed authorization.
MAX_RENEWALS = 2


class OAuth:
    """Authorizes requests to the server at `url`; an `Authorization` of `ragmcp.http.client`.

    `scope` has scopes, separated by spaces, to request in addition to those that the server names.
    Every method may raise AuthorizationFailed, AddressRefused.
    """

    def __init__(self, url: str, source: TokenSource, store: Store | None = None, scope: str = "") -> None:
        self._url = url
        self._source = source
        self._store = store or RunStore()
        self._grant = self._store.grant(url)
        self._prover = Prover(self._grant.key) if self._grant and self._grant.key else None
        self._asked = {*scope.split(), *(self._grant.scope if self._grant else "").split()}
        # One renewal at a time; waiting requests use its result.
        self._renewing = anyio.Lock()
        self._refreshed = ""  # the token of the last refresh

    async def send(self, attempt: Attempt, verb: str, url: str, reach: Reach) -> httpx2.Response:
        """The response; a refused request is repeated if our authorization can be renewed."""
        for renewals in range(MAX_RENEWALS + 1):
            response = await attempt(await self.headers(verb, url, reach))
            if response.status_code not in (401, 403) or renewals == MAX_RENEWALS:
                break
            try:
                may_repeat = await self.renew(response, reach)
            except BaseException:
                await response.aclose()
                raise
            if not may_repeat:
                break
            await response.aclose()
        return response

    async def headers(self, verb: str, url: str, reach: Reach) -> dict[str, str]:
        """The headers of one request."""
        async with self._renewing:
            grant = self._grant
            if grant is not None and grant.is_expired and grant.refresh_token:
                async with open_web(reach) as web:
                    await self._refresh(web, grant, await discovery.find_server(web, grant.issuer))
        grant = self._grant
        if grant is None:
            return {}
        if self._prover is not None and grant.token_type.lower() == dpop.TOKEN_TYPE:
            proof = self._prover.proof(verb, url, grant.access_token)
            return {"authorization": f"DPoP {grant.access_token}", "dpop": proof}
        return {"authorization": f"Bearer {grant.access_token}"}

    async def renew(self, response: httpx2.Response, reach: Reach) -> bool:
        """Handle a refusal (401, 403); returns whether the request should be retried."""
        challenge = discovery.challenge_of(response.headers.get_list("www-authenticate"))
        if (nonce := response.headers.get("dpop-nonce")) and self._prover is not None:
            self._prover.note_nonce(str(response.request.url), nonce)
            if challenge.get("error") == "use_dpop_nonce":
                return True
        if response.status_code == 403 and challenge.get("error") != "insufficient_scope":
            return False
        used = response.request.headers.get("authorization", "").partition(" ")[2]
        async with self._renewing:
            if self._grant is not None and self._grant.access_token != used:
                return True  # Another request has renewed it.
            async with open_web(reach) as web:
                await self._renew(web, challenge, may_refresh=response.status_code == 401)
        return True

    async def _renew(self, web: Web, challenge: Mapping[str, str], *, may_refresh: bool) -> None:
        resource = await discovery.find_resource(web, self._url, challenge)
        if resource is None or not resource.authorization_servers:
            raise AuthorizationFailed(self._url, "it does not say which server grants access to it")
        server = await discovery.find_server(web, resource.authorization_servers[0])
        grant = self._grant
        # If a freshly refreshed token is refused, refreshing again does not help.
        if grant is None or grant.issuer != server.issuer or grant.access_token == self._refreshed:
            may_refresh = False
        if grant and may_refresh and await self._refresh(web, grant, server):
            return
        self._asked |= _scopes(challenge, resource.scopes_supported or [], server.scopes_supported)
        wanted = TokenRequest(server, resource.resource, " ".join(sorted(self._asked)))
        if dpop.ALGORITHM not in server.dpop_signing_alg_values_supported or not dpop.is_available():
            self._prover = None
        elif self._prover is None:
            self._prover = Prover()
        self._keep(await self._source.obtain(web, wanted, self._prover, self._store))

    async def _refresh(self, web: Web, grant: Grant, server: ServerMetadata) -> bool:
        """Refresh the token; returns whether that succeeded."""
        us = self._store.registration(server.issuer)
        if us is None or not grant.refresh_token:
            return False
        try:
            renewed = await refresh(web, grant, us, server, self._prover)
        except AuthorizationFailed as error:
            log.info("%s", error)
            return False
        self._refreshed = renewed.access_token
        self._keep(renewed)
        return True

    def _keep(self, grant: Grant) -> None:
        self._grant = grant
        self._store.keep_grant(self._url, grant)


def _scopes(challenge: Mapping[str, str], of_resource: list[str], of_server: list[str]) -> set[str]:
    """The scopes of the challenge, else of the resource; plus offline_access if supported."""
    scopes = {*(challenge["scope"].split() if "scope" in challenge else of_resource)}
    return scopes | ({OFFLINE_ACCESS} & {*of_server})
