"""A stand-in for the web search of Tavily: a proxy that answers for the address its MCP server has fixed."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.certificates import certificate_of

HOST = "api.tavily.com"
TEXT = "Brew it at 75 degrees."
FOUND = {"title": "Green tea", "url": "https://tea.example/green", "content": TEXT, "score": 0.9}


@dataclass
class Tavily:
    """`environ` makes a Node program reach it; `requests` are the paths and bodies that came in."""

    environ: dict[str, str]
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


@contextmanager
def tavily(folder: Path) -> Iterator[Tavily]:
    """Serve it; its certificate is written into `folder`."""
    certificate, tls = folder / "tavily.pem", ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.write_bytes(certificate_of(HOST))
    tls.load_cert_chain(certificate)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

        def do_CONNECT(self) -> None:
            self.send_response(200 if self.path == f"{HOST}:443" else 502)
            self.end_headers()
            with tls.wrap_socket(self.connection, server_side=True) as inner:
                Handler(inner, self.client_address, self.server)
            self.close_connection = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            running.requests.append((self.path, body))
            data = json.dumps({"query": body.get("query"), "results": [FOUND]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(data)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        proxy = f"http://127.0.0.1:{server.server_address[1]}"
        running = Tavily(
            {
                "HTTPS_PROXY": proxy,
                "NO_PROXY": "",
                "NODE_EXTRA_CA_CERTS": str(certificate),
                "TAVILY_API_KEY": "k",
            }
        )
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield running
        finally:
            server.shutdown()
