"""The page for browsers: what this server is, and the settings to paste into each host. No scripts."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from string import Template

from ragcommon.hosts import HOSTS, Host, reached, write

_PAGE = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
_STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # The same path gives JSON to programs.
    "Vary": "Accept",
}


def render(version: str, url: str, tools: Iterable[str], command: Sequence[str], *, token: bool) -> str:
    """The page of the server at `url`. `command` is our own program; `token`: whether one is required."""
    blocks = (_block(host, url, command, token) for host in HOSTS.values())
    return _PAGE.substitute(
        style=_STYLE,
        version=escape(version),
        url=escape(url),
        tools=", ".join(f"<code>{escape(name)}</code>" for name in tools),
        access="with the bearer token of its owner" if token else "from this machine, without a password",
        hosts="\n".join(blocks),
    )


def _block(host: Host, url: str, command: Sequence[str], token: bool) -> str:
    settings = write(reached(host, url, command, token=token), host.format)
    return (
        f'<details><summary>{escape(host.title)}</summary><p class="where">{escape(host.where)}</p>'
        f"<pre>{escape(settings)}</pre></details>"
    )
