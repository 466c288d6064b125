"""How the page is served: who could reach it, its addresses, limits and certificate."""

from __future__ import annotations

import re
import socket
import ssl
from math import ceil

from ragchat.settings import ConnectionSettings, WebSettings
from ragchat.web.errors import WebRefused
from ragcommon.errors import os_reason
from ragcommon.listening import ConnectionLimits, is_wildcard, listens_on_loopback
from ragconfig.home import user_path
from ragconfig.keys import WEB_TOKEN, find_token, stored_token
from ragconfig.settings import Settings
from ragmcp.http.access import LOOPBACK

_PUBLIC_URL = re.compile(r"https://[^\s/?#@]+/?", re.IGNORECASE)


def programs_token(settings: Settings, table: WebSettings) -> tuple[str, str]:
    """The token of other programs, and the file that holds it. Raises SettingsError."""
    if table.token_file:
        return find_token(table.token_file) or "", table.token_file
    path = settings.home.data / WEB_TOKEN
    return stored_token(path)[0], str(path)


def check_protected(table: WebSettings, listening: socket.socket, password: str, *, page: bool) -> None:
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


def page_origins(table: WebSettings, listening: socket.socket) -> list[str]:
    """The origins of the page as browsers write them, the one to show first."""
    port, scheme = listening.getsockname()[1], "https" if table.certificate else "http"
    names = [f"[{table.host}]" if ":" in table.host else table.host.lower()]
    names += [name for name in LOOPBACK if name not in names and listens_on_loopback(listening)]
    proxied = [table.public_url.rstrip("/").lower()] if table.public_url else []
    origins = proxied + [f"{scheme}://{name}:{port}" for name in names]
    return [one.removesuffix(":443" if one.startswith("https:") else ":80") for one in origins]


def limits(settings: Settings) -> ConnectionLimits:
    table = settings.table("http", ConnectionSettings)
    return ConnectionLimits(
        table.head_seconds, table.header_bytes, table.idle_seconds, ceil(table.leave_seconds)
    )


def tls(table: WebSettings) -> tuple[str, str] | None:
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
