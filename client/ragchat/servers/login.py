"""Logging in to remote servers: the user's browser, and the file with tokens and registrations."""

from __future__ import annotations

import webbrowser
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio
from msgspec import Struct

from ragchat import CLIENT_NAME, __version__
from ragchat.errors import CredentialsUnusable
from ragchat.servers.configs import ServerConfig
from ragchat.servers.private_json import read_private, write_private
from ragchat.settings import ServerSettings
from ragcommon.concurrency import first_of
from ragconfig.redaction import add_secret
from ragmcp.http.connect import open_http
from ragmcp.http.reach import Reach
from ragmcp.oauth.authorization import OAuth
from ragmcp.oauth.dpop import Prover
from ragmcp.oauth.errors import LoginRequired
from ragmcp.oauth.grants import Login, TokenRequest, TokenSource
from ragmcp.oauth.redirect import Redirect, has_state, open_redirect
from ragmcp.oauth.registration import Identity
from ragmcp.oauth.store import Grant, Registration, RunStore, Store
from ragmcp.oauth.web import Web, open_web

FILE = "credentials.json"
# Asks the user for a line; None if they do not want to type one.
Read = Callable[[str], Awaitable[str | None]]
# The time a user may take to log in.
LOGIN_SECONDS = 600.0
# A server may request a second login at once, for more scopes.
MAX_LOGINS = 2


class _File(Struct):
    registrations: dict[str, Registration] = {}  # by issuer
    grants: dict[str, Grant] = {}  # by the address of the server
    wanted: dict[str, str] = {}  # the scopes that a server requests beyond its grant, by its address


class Credentials:
    """A `Store` in a file that only the user can read. Every method raises CredentialsUnusable."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def registration(self, issuer: str) -> Registration | None:
        """Our registration at `issuer`."""
        return self._read().registrations.get(issuer)

    def keep_registration(self, issuer: str, registration: Registration) -> None:
        """Keep a registration."""
        file = self._read()
        if file.registrations.get(issuer) != registration:
            file.registrations[issuer] = registration
            self._write(file)

    def grant(self, url: str) -> Grant | None:
        """The grant for the server at `url`."""
        return self._read().grants.get(url)

    def keep_grant(self, url: str, grant: Grant | None) -> None:
        """Keep a grant; None: forget it, and the scopes requested beyond it."""
        file = self._read()
        if grant is None:
            file.grants.pop(url, None)
            file.wanted.pop(url, None)
        else:
            file.grants[url] = grant
        self._write(file)

    def wanted(self, url: str) -> str:
        """The scopes that the server at `url` requests beyond its grant, separated by spaces."""
        return self._read().wanted.get(url, "")

    def keep_wanted(self, url: str, scope: str) -> None:
        """Keep these scopes until the next login; "" forgets them."""
        file = self._read()
        if file.wanted.get(url, "") != scope:
            file.wanted[url] = scope
            self._write(file)

    def _read(self) -> _File:
        # Read each time: other running programs renew tokens too.
        file = read_private(self._path, _File, CredentialsUnusable, private=True)
        for grant in file.grants.values():
            add_secret(grant.access_token)
            add_secret(grant.refresh_token)
        return file

    def _write(self, file: _File) -> None:
        write_private(self._path, file, CredentialsUnusable)


class NoLogin:
    """A token source without a user: a server that requests a login, or more scopes, is reported."""

    def __init__(self, config: ServerConfig, credentials: Credentials) -> None:
        self._config = config
        self._credentials = credentials

    async def obtain(self, web: Web, wanted: TokenRequest, prover: Prover | None, store: Store) -> Grant:  # noqa: ARG002
        """Raises LoginRequired."""
        if store.grant(self._config.url) is not None:  # The next login must request these scopes.
            self._credentials.keep_wanted(self._config.url, wanted.scope)
        hint = f"`ragchat mcp login {self._config.name}`, or /mcp login {self._config.name} in the chat."
        raise LoginRequired(self._config.url, hint)


class _DeferredLogin:
    """A token source that records the token request, and defers the login.

    The requests of a connection have timeouts of seconds, too short for a user.
    """

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self.request: tuple[TokenRequest, Prover | None, Reach] | None = None

    async def obtain(self, web: Web, wanted: TokenRequest, prover: Prover | None, store: Store) -> Grant:  # noqa: ARG002
        """Raises LoginRequired."""
        self.request = (wanted, prover, web.reach)
        raise LoginRequired(self._config.url)


def authorization(config: ServerConfig, source: TokenSource, store: Store, scope: str = "") -> OAuth | None:
    """The authorization of requests to a server; None if its settings have an Authorization header.

    `scope` has scopes to request in addition to those that the server names.
    """
    if any(name.lower() == "authorization" for name in config.headers):
        return None
    return OAuth(config.url, source, store, scope)


async def log_in(
    config: ServerConfig,
    credentials: Credentials,
    settings: ServerSettings,
    show: Callable[[str], None],
    read: Read | None = None,
) -> None:
    """Let the user log in at a server; `show` displays instructions, `read` reads a pasted address.

    Returns at once if the server needs no login. Raises RagMcpError, CredentialsUnusable; TimeoutError after
    `LOGIN_SECONDS`.
    """
    oauth = config.oauth
    identity = Identity(
        name=CLIENT_NAME,
        registered=Registration(oauth.client_id, oauth.client_secret) if oauth.client_id else None,
        registered_at=oauth.issuer,
    )
    with anyio.fail_after(LOGIN_SECONDS):
        async with open_redirect(oauth.callback_port) as redirect:
            source = Login(identity, Browser(redirect, show, read))
            for _ in range(MAX_LOGINS):
                deferred, scope = _DeferredLogin(config), credentials.wanted(config.url)
                try:
                    # Without the grant, the server requests a login, which then includes the new scopes.
                    store = RunStore() if scope else credentials
                    await _ping(config, settings, authorization(config, deferred, store, scope))
                except LoginRequired:
                    if deferred.request is None:
                        raise
                else:
                    return
                wanted, prover, reach = deferred.request
                async with open_web(reach) as web:
                    grant = await source.obtain(web, wanted, prover, credentials)
                credentials.keep_grant(config.url, grant)
                credentials.keep_wanted(config.url, "")
            await _ping(config, settings, authorization(config, NoLogin(config, credentials), credentials))


async def _ping(config: ServerConfig, settings: ServerSettings, authorization: OAuth | None) -> None:
    async with open_http(
        config.url,
        client_name=CLIENT_NAME,
        client_version=__version__,
        message_bytes=settings.message_bytes,
        headers=config.headers,
        authorization=authorization,
    ) as client:
        await client.ping()


class Browser:
    """The user's browser. On a machine without one, the user opens the printed address elsewhere.

    The redirect then goes to the wrong machine, and the user can paste its address here (`read`).
    """

    def __init__(self, redirect: Redirect, show: Callable[[str], None], read: Read | None) -> None:
        self._redirect = redirect
        self._show = show
        self._read = read

    @property
    def redirect_uri(self) -> str:
        return self._redirect.uri

    async def visit(self, url: str, state: str) -> str:
        """Open the page, and wait for the redirect or for its pasted address."""
        self._redirect.expect(state)
        self._show(f"Log in on this page:\n{url}")
        await anyio.to_thread.run_sync(webbrowser.open, url, abandon_on_cancel=True)
        if self._read is None:
            return await self._redirect.wait()
        return await first_of(self._redirect.wait, partial(self._pasted, self._read, state))

    async def _pasted(self, read: Read, state: str) -> str:
        self._show(
            f"If that browser is on another machine, it ends at {self.redirect_uri}?…, which it cannot open."
        )
        while (text := await read("Then paste that whole address here: ")) is not None:
            address = text.strip()
            if address.startswith(f"{self.redirect_uri}?"):
                if has_state(address, state):
                    return address
                self._show("That address belongs to another login.")
            elif address:
                self._show(f"The address begins with {self.redirect_uri}?")
        return await self._redirect.wait()
