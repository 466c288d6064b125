"""A web server on loopback whose pages are functions of the request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Reply = Callable[[BaseHTTPRequestHandler], None]


class PageServer:
    """`pages` by path; all others are not found. `asked` has the paths in the order of the requests."""

    def __init__(self, url: str, stopping: threading.Event) -> None:
        self.url = url
        self.pages: dict[str, Reply] = {}
        self.asked: list[str] = []
        self.stopping = stopping

    def add(self, path: str, body: bytes | str, status: int = 200, **headers: str) -> str:
        """Serve a body; `_` in the names of headers is `-`. Returns the address."""
        data = body.encode() if isinstance(body, str) else body
        named = {"content-type": "text/html", "content-length": str(len(data))}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}

        def reply(request: BaseHTTPRequestHandler) -> None:
            is_known = named.get("etag") and request.headers.get("if-none-match") == named["etag"]
            request.send_response(304 if is_known else status)
            for name, value in named.items():
                request.send_header(name, value)
            request.end_headers()
            if not is_known:
                request.wfile.write(data)

        self.pages[path] = reply
        return self.url + path


@contextmanager
def page_server() -> Iterator[PageServer]:
    """A server with a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            pages.asked.append(self.path)
            reply = pages.pages.get(self.path) or (lambda request: request.send_error(404))
            try:
                reply(self)
            except OSError:  # The client has left.
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Not to stderr."""

    stopping = threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        pages = PageServer(f"http://127.0.0.1:{server.server_port}", stopping)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield pages
        finally:
            stopping.set()
            server.shutdown()
            thread.join()
