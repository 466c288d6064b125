"""Connects to a memory server that is already running: one that the user names, or one on this machine."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

import msgspec
from anyio import to_thread

from ragchat import CLIENT_NAME, __version__
from ragchat.servers.supervisor import Supervised
from ragcommon.errors import DECODE_ERRORS
from ragcommon.files.uris import is_http_url
from ragcommon.server_note import CHALLENGE, OWNER_PATH, PROOF, Note, find_note, note_of
from ragconfig.keys import find_token
from ragconfig.settings import Settings, fingerprint
from ragmcp.client.features import Client

MCP_PATH = "/mcp"
# Seconds that a found or named server may take to prove its identity.
PROOF_SECONDS = 0.25
NAMED_SECONDS = 10.0
MAX_ANSWER = 1 << 14


async def find_running(settings: Settings) -> Note | None:
    """The note of a running server of this memory that has proved its identity."""
    note = find_note(settings.memory_path, fingerprint(settings, __version__), settings.home.state)
    return note if note is not None and await to_thread.run_sync(is_proved, note, PROOF_SECONDS) else None


async def proved_note(settings: Settings, url: str) -> Note | None:
    """The note of the server at a URL, or of one of its memories, if it has proved that it runs here.

    The address says less: a port of this machine may lead through a tunnel to another one.
    """
    note = note_of(url.partition(f"{MCP_PATH}/")[0], settings.home.state)
    return note if note is not None and await to_thread.run_sync(is_proved, note, NAMED_SECONDS) else None


def is_proved(note: Note, seconds: float) -> bool:
    """Whether the server that answers is the one of the note. Blocks for at most `seconds`."""
    challenge = secrets.token_hex(16)
    try:
        answer = _get(note.url, f"/health?{CHALLENGE}={challenge}", seconds)
        proof = msgspec.json.decode(answer, type=dict[str, str]).get(PROOF, "")
    except (OSError, *DECODE_ERRORS):
        # It has ended without removing its note, or another program answers.
        return False
    return note.proves(challenge, proof)


def _get(url: str, target: str, seconds: float) -> bytes:
    """The body of the response. Does not import an HTTP client, which takes long. Raises OSError."""
    parts = urlsplit(url)
    end = time.monotonic() + seconds
    with socket.create_connection((parts.hostname or "", parts.port or 80), seconds) as connection:
        connection.sendall(f"GET {target} HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n".encode())
        answer = b""
        while len(answer) < MAX_ANSWER and (left := end - time.monotonic()) > 0:
            connection.settimeout(left)
            if not (part := connection.recv(MAX_ANSWER)):
                break
            answer += part
    return answer.partition(b"\r\n\r\n")[2]


def named(settings: Settings) -> tuple[Supervised, str]:
    """The server that the settings name, and its base URL. Raises SettingsError.

    `run` connects to it.
    """
    url = _root(settings)
    token = find_token(settings.tables["memory_server"]["token_file"])
    return Supervised(partial(_connected, settings, url, token)), url


def endpoint(settings: Settings) -> str:
    """The MCP endpoint of the server that the settings name. Raises InvalidSetting."""
    url = _root(settings)
    return url if _is_named(url) else url + MCP_PATH


def _is_named(url: str) -> bool:
    """Whether a URL is that of one memory of a server with several."""
    return f"{MCP_PATH}/" in urlsplit(url).path


@asynccontextmanager
async def _connected(settings: Settings, url: str, token: str | None) -> AsyncIterator[Client]:
    note = None if _is_named(url) else await proved_note(settings, url)
    address, secret = (url + OWNER_PATH, note.key) if note is not None else (endpoint(settings), token)
    async with opened(settings, address, secret) as client:
        yield client


def _root(settings: Settings) -> str:
    """The base URL of the server that the settings name. Raises InvalidSetting."""
    url: str = settings.tables["memory_server"]["url"]
    parts = urlsplit(url if is_http_url(url) else "")
    if not parts.netloc or parts.username or parts.query or parts.fragment:
        reason = "it must be the address of a server, such as http://127.0.0.1:8765"
        raise settings.invalid("memory_server.url", reason)
    netloc = f"127.0.0.1:{parts.port}" if parts.hostname == "localhost" and parts.port else parts.netloc
    return parts._replace(netloc=netloc, path=parts.path.rstrip("/").removesuffix(MCP_PATH)).geturl()


def opened(settings: Settings, url: str, token: str | None) -> AbstractAsyncContextManager[Client]:
    from ragmcp.http.connect import open_http

    return open_http(
        url,
        client_name=CLIENT_NAME,
        client_version=__version__,
        message_bytes=settings.tables["limits"]["message_bytes"],
        era="modern",
        token=token,
        # Each call has its own timeout, as over stdio.
        silence_seconds=None,
    )
