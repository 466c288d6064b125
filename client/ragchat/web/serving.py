"""Runs the page: listens, prints and opens its address, and serves until it is cancelled."""

from __future__ import annotations

import re
import socket
import ssl
import sys
import webbrowser
from contextlib import suppress
from functools import partial
from html import escape
from math import ceil
from threading import Thread

import anyio

from ragchat.commands.invocation import Invocation
from ragchat.commands.stdin import read_line
from ragchat.conversation import Conversation
from ragchat.errors import RagChatError
from ragchat.memory.client import MemoryClient
from ragchat.servers.manager import ServerManager
from ragchat.settings import ConnectionSettings, WebSettings
from ragchat.web.access import Keys
from ragchat.web.app import make_app
from ragchat.web.asking import PageUser
from ragchat.web.chats import Chats
from ragchat.web.errors import WebRefused
from ragchat.web.loads import Loads
from ragchat.web.programs import Programs
from ragchat.web.site import Site
from ragcommon.errors import os_reason
from ragcommon.files.writing import replace_file
from ragconfig.home import user_path
from ragconfig.keys import WEB_TOKEN, find_token, read_key, stored_token
from ragconfig.settings import Settings
from ragmcp.concurrency import background_task
from ragmcp.http.access import LOOPBACK
from ragmcp.http.listening import ConnectionLimits, Listener, bound, is_wildcard, listens_on_loopback

_PUBLIC_URL = re.compile(r"https://[^\s/?#@]+/?", re.IGNORECASE)
# A private file that sends the browser to the address: other users of this machine could read the key in the
# arguments of the browser.
_OPENED = "web.html"
_REDIRECT = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={url}">\n'


async def serve(run: Invocation) -> None:
    """Serve until cancelled. Raises SettingsError, AddressUnusable, WebRefused."""
    table = run.settings.table("web", WebSettings)
    password = read_key(table.password_file, "", kind="password file") if table.password_file else ""
    page = not run.arguments.api_only
    with bound(table.host, table.port) as listening:
        _check_protected(table, listening, password, page=page)
        token, token_file = _token(run.settings, table)
        keys = Keys(password, token)
        origins = _origins(table, listening)
        # No user could allow what a tool of another server does for another program.
        async with (
            run.servers(only_memory=run.arguments.no_tools) as servers,
            run.servers(only_memory=True) as no_servers,
        ):
            memory = await servers.open_memory(run.settings)

            def make(servers: ServerManager) -> Conversation:
                return Conversation(
                    run.settings, memory, servers, trust_read_only_hints=run.arguments.yes_read_only
                )

            async with (
                Chats(partial(make, servers)) as chats,
                Programs(partial(make, no_servers)) as programs,
                Loads() as loads,
                run.sessions() as sessions,
            ):
                site = Site(run.settings, run.config_file, memory, servers, sessions, chats, loads, programs)
                servers.user = PageUser(site.dialogs, servers.permissions).user()
                cookie = f"ragchat_{listening.getsockname()[1]}"
                private = listens_on_loopback(listening) and not table.public_url
                app = make_app(site, keys, frozenset(origins), cookie, private=private, page=page)
                listener = Listener(app, _limits(run.settings), _tls(table))
                async with background_task(partial(listener.run_on, listening)) as tasks:
                    await listener.started_listening.wait()
                    _announce(run, keys, origins[0], token_file)
                    tasks.start_soon(_start_memory, memory)
                    if page and sys.stdin.isatty() and not run.console.json:
                        tasks.start_soon(_print_addresses, run, keys, origins[0])
                    await anyio.sleep_forever()


async def _start_memory(memory: MemoryClient) -> None:
    """Start the memory's server while the browser starts. The views say what fails."""
    with suppress(RagChatError):
        await memory.stats()


def _token(settings: Settings, table: WebSettings) -> tuple[str, str]:
    """The token of other programs, and the file that holds it. Raises SettingsError."""
    if table.token_file:
        return find_token(table.token_file) or "", table.token_file
    path = settings.home.data / WEB_TOKEN
    return stored_token(path)[0], str(path)


def _check_protected(table: WebSettings, listening: socket.socket, password: str, *, page: bool) -> None:
    """Raises WebRefused if others could reach the page without a password, or read what it sends."""
    if table.public_url and not _PUBLIC_URL.fullmatch(table.public_url):
        raise WebRefused(
            f"{table.public_url!r} is not the address of a proxy, such as https://notes.example.org"
        )
    if listens_on_loopback(listening) and not table.public_url:
        return
    if page and not password:
        raise WebRefused("others can reach it there, and there is no password: set --password-file")
    if not table.certificate and not table.public_url:
        raise WebRefused(
            "others could read what it sends: set --certificate and --private-key, or --public-url to the "
            "https:// address of a proxy"
        )
    if is_wildcard(listening) and not table.public_url:
        raise WebRefused(
            f"no browser can open {table.host}: set --public-url to the address that it will have"
        )


def _origins(table: WebSettings, listening: socket.socket) -> list[str]:
    """The origins of the page as browsers write them, the one to show first."""
    port, scheme = listening.getsockname()[1], "https" if table.certificate else "http"
    names = [f"[{table.host}]" if ":" in table.host else table.host.lower()]
    names += [name for name in LOOPBACK if name not in names and listens_on_loopback(listening)]
    proxied = [table.public_url.rstrip("/").lower()] if table.public_url else []
    origins = proxied + [f"{scheme}://{name}:{port}" for name in names]
    return [one.removesuffix(":443" if one.startswith("https:") else ":80") for one in origins]


def _limits(settings: Settings) -> ConnectionLimits:
    table = settings.table("http", ConnectionSettings)
    return ConnectionLimits(
        table.head_seconds, table.header_bytes, table.idle_seconds, ceil(table.leave_seconds)
    )


def _tls(table: WebSettings) -> tuple[str, str] | None:
    """The certificate and its key. Raises WebRefused if they cannot be used."""
    if not table.certificate:
        return None
    files = str(user_path(table.certificate)), str(user_path(table.private_key))
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(*files)
    except (OSError, ssl.SSLError) as error:
        reason = os_reason(error)
        raise WebRefused(f"the certificate {files[0]} with the key {files[1]}: {reason}") from None
    return files


def _address(origin: str, keys: Keys) -> str:
    return f"{origin}/sign-in?key={keys.new_key()}"


def _announce(run: Invocation, keys: Keys, origin: str, token_file: str) -> None:
    """Print the addresses, and open the page in the browser."""
    programs = {"api": f"{origin}/v1", "token_file": token_file}
    if run.arguments.api_only:
        run.console.result(programs, f"ragchat answers other programs at {programs['api']}")
        if not run.console.json:
            run.console.note(f"Their API key is the token in {token_file}. Ctrl-C stops.")
        return
    address = _address(origin, keys)
    if run.console.json:
        run.console.document({"url": address, **programs})
    else:
        run.console.print(f"ragchat is at {address}")
        run.console.note("The address lets one browser in, once. Ctrl-C stops.")
        run.console.note(f"Other programs use {programs['api']}, with the token in {token_file}.")
    if run.arguments.no_open or run.console.json or not sys.stdout.isatty():
        return
    page = run.home.state / _OPENED
    try:
        replace_file(page, _REDIRECT.format(url=escape(_address(origin, keys))).encode())
    except OSError as error:
        run.console.note(f"No browser was opened: {error}.")
        return
    # A browser in the terminal would take it over, and some wait until the browser is closed.
    Thread(target=partial(webbrowser.open, page.as_uri()), daemon=True).start()


async def _print_addresses(run: Invocation, keys: Keys, origin: str) -> None:
    """Print another address, for another browser, each time the user presses Enter."""
    run.console.note("Enter prints another address.")
    while await read_line("") is not None:
        run.console.print(_address(origin, keys))
