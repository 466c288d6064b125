"""`ragchat web`: the conversation, its sources and the library on a page."""

from __future__ import annotations

import sys
import webbrowser
from contextlib import suppress
from dataclasses import replace
from functools import partial
from html import escape
from threading import Thread

import anyio

from ragchat.commands.invocation import Invocation
from ragchat.commands.stdin import read_line
from ragchat.conversation import Conversation
from ragchat.errors import RagChatError
from ragchat.memory.client import MemoryClient
from ragchat.settings import WebSettings
from ragchat.web.access import Keys
from ragchat.web.app import make_app
from ragchat.web.asking import PageUser
from ragchat.web.chats import Chats
from ragchat.web.loads import Loads
from ragchat.web.programs import Programs
from ragchat.web.serving import check_protected, limits, page_origins, programs_token, tls
from ragchat.web.site import Site
from ragcommon.files.writing import replace_file
from ragcommon.listening import Listener, bound, listens_on_loopback
from ragconfig.keys import read_key
from ragmcp.concurrency import background_task

# A private file that sends the browser to the address: other users of this machine could read the key in the
# arguments of the browser.
_OPENED = "web.html"
_REDIRECT = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={url}">\n'
_SETTINGS = ("host", "port", "password_file", "certificate", "private_key", "public_url", "token_file")


async def web(run: Invocation) -> None:
    """Runs until a signal ends it, which is its success."""
    given = {f"web.{name}": getattr(run.arguments, name) for name in _SETTINGS}
    run = replace(run, overrides={key: value for key, value in given.items() if value is not None})
    with suppress(anyio.get_cancelled_exc_class()):
        await _serve(run)


async def _serve(run: Invocation) -> None:
    """Serve until cancelled. Raises SettingsError, AddressUnusable, WebRefused."""
    table = run.settings.table("web", WebSettings)
    password = read_key(table.password_file, "", kind="password file") if table.password_file else ""
    page = not run.arguments.api_only
    with bound(table.host, table.port) as listening:
        check_protected(table, listening, password, page=page)
        token, token_file = programs_token(run.settings, table)
        keys = Keys(password, token)
        origins = page_origins(table, listening)
        # No user could allow what a tool of another server does for another program.
        async with (
            run.servers(only_memory=run.arguments.no_tools) as servers,
            run.servers(only_memory=True) as no_servers,
        ):
            memory = await servers.open_memory(run.settings)
            make = partial(
                Conversation, run.settings, memory, trust_read_only_hints=run.arguments.yes_read_only
            )
            async with (
                Chats(partial(make, servers)) as chats,
                Programs(partial(make, no_servers)) as programs,
                Loads() as loads,
                run.sessions() as sessions,
            ):
                site = Site(run.settings, memory, servers, sessions, chats, loads, programs)
                servers.user = PageUser(site.dialogs, servers.permissions).user()
                cookie = f"ragchat_{listening.getsockname()[1]}"
                private = listens_on_loopback(listening) and not table.public_url
                app = make_app(site, keys, frozenset(origins), cookie, private=private, page=page)
                listener = Listener(app, limits(run.settings), tls(table))
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


def _address(origin: str, keys: Keys) -> str:
    return f"{origin}/sign-in?key={keys.new_key()}"


def _announce(run: Invocation, keys: Keys, origin: str, token_file: str) -> None:
    """Print the addresses, and open the page in the browser."""
    programs = {"api": f"{origin}/v1", "token_file": token_file}
    if run.arguments.api_only:
        said = f"ragchat answers other programs at {programs['api']}"
        notes = [f"Their API key is the token in {token_file}. Ctrl-C stops."]
        run.console.result(programs, said, notes=notes)
        return
    address = _address(origin, keys)
    notes = [
        "The address lets one browser in, once. Ctrl-C stops.",
        f"Other programs use {programs['api']}, with the token in {token_file}.",
    ]
    run.console.result({"url": address, **programs}, f"ragchat is at {address}", notes=notes)
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
