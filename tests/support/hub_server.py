"""A real HTTP server that speaks the API of the Hugging Face Hub, as far as a download needs it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "c" * 40


class Hub:
    """`files` of every repository, by path. The first answer with the file `damages` has other bytes than
    announced; the next one with the file `breaks` ends in its middle.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files
        self.breaks = ""
        self.damages = ""
        self.ranges: list[str] = []
        self.url = ""

    def listed(self) -> list[dict[str, Any]]:
        return [
            {"type": "file", "path": path, "size": len(data), "oid": "0" * 40}
            | {"lfs": {"oid": digest(data), "size": len(data), "pointerSize": 130}}
            for path, data in self.files.items()
        ]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextmanager
def hub_server(hub: Hub) -> Iterator[Hub]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if "/resolve/" in path:
                self._file(path.partition("/resolve/")[2].partition("/")[2])
            elif "/tree/" in path:
                self._send(json.dumps(hub.listed()).encode())
            else:
                siblings = [{"rfilename": name} for name in hub.files]
                self._send(json.dumps({"id": "a/b", "sha": COMMIT, "siblings": siblings}).encode())

        def _file(self, name: str) -> None:
            if (data := hub.files.get(name)) is None:
                self.send_error(404)
                return
            headers = {"ETag": f'"{digest(data)}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
            is_damaged = name == hub.damages and self.command == "GET"
            if is_damaged:
                hub.damages, data = "", data[:-1] + bytes([data[-1] ^ 1])
            wanted = self.headers.get("Range", "")
            if wanted and self.command == "GET":
                hub.ranges.append(wanted)
                start = int(wanted.removeprefix("bytes=").partition("-")[0])
                headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
                self._send(data[start:], headers, 206)
            elif name == hub.breaks and not is_damaged and self.command == "GET":
                hub.breaks = ""
                self._send(data, headers, cut=len(data) // 2)
            else:
                self._send(data, headers)

        def _send(
            self,
            data: bytes,
            headers: Mapping[str, str] | None = None,
            status: int = 200,
            cut: int | None = None,
        ) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data[:cut])
            self.close_connection = cut is not None

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
