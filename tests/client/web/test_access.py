"""Attacks on the page from web pages, other servers and users of the machine: none does anything.

Of `access` and `app`. Each case is one attempt, with the cookie of a signed-in browser
if that helps.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import httpx2
import pytest

from ragchat.web.access import FREE_TRIES, HEADERS, WAIT_SECONDS, Keys
from ragchat.web.site import MAX_BODY
from tests.support.browser import Browser, Web, chromium_running, expect, serving, visiting, web_process
from tests.support.processes import LONGEST_SECONDS
from tests.support.program import Program, program_in

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with web_process(program_in(tmp_path_factory.mktemp("web"), RAGCHAT_HTTP_HEAD_SECONDS="1")) as web:
        yield web


@pytest.fixture(scope="module")
def client(web: Web) -> Iterator[httpx2.Client]:
    with web.signed_in() as client:
        yield client


def cookie(client: httpx2.Client) -> str:
    return "; ".join(f"{one.name}={one.value}" for one in client.cookies.jar)


def exchange(web: Web, request: bytes) -> str:
    """All that comes back for these bytes, until the server closes."""
    address = urlsplit(web.origin)
    with socket.create_connection((address.hostname, address.port), LONGEST_SECONDS) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(1 << 16), b"")).decode()


def status(answer: str) -> int:
    return int(answer.split(" ", 2)[1])


# PORT is that of the page.
FOREIGN_HOSTS = [
    "",
    "evil.example",
    "evil.example:PORT",
    "127.0.0.1",
    "localhost",
    "127.0.0.1:1",
    "localhost:1",
    "localhost.:PORT",
    "127.0.0.1.:PORT",
    "127.1:PORT",
    "127.0.0.2:PORT",
    "0.0.0.0:PORT",
    "0:PORT",
    "2130706433:PORT",
    "0x7f000001:PORT",
    "0177.0.0.1:PORT",
    "[::ffff:127.0.0.1]:PORT",
    "[0:0:0:0:0:0:0:1]:PORT",
    "127.0.0.1.evil.example:PORT",
    "localhost.evil.example:PORT",
    "evil.example:PORT@127.0.0.1:PORT",
    "127.0.0.1:PORT@evil.example",
    "127.0.0.1:PORT, evil.example",
    "127.0.0.1:PORT/evil",
    "127.0.0.1:0PORT",
    "127.0.0.1:+PORT",
    "127。0。0。1:PORT",
]


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_name_that_another_page_binds_to_loopback_is_refused(
    web: Web, client: httpx2.Client, host: str
) -> None:
    named = host.replace("PORT", f"{urlsplit(web.origin).port}")
    for path in ("/api/sessions", "/", "/sign-in", "/static/page.js"):
        head = (
            f"GET {path} HTTP/1.1\r\nHost: {named}\r\nCookie: {cookie(client)}\r\nConnection: close\r\n\r\n"
        )
        assert status(exchange(web, head.encode())) in (400, 403)


def test_two_hosts_none_and_a_foreign_one_in_the_target_are_refused(web: Web, client: httpx2.Client) -> None:
    ours = urlsplit(web.origin).netloc
    rest = f"Cookie: {cookie(client)}\r\nConnection: close\r\n\r\n"
    for head in (
        f"GET /api/sessions HTTP/1.1\r\nHost: {ours}\r\nHost: evil.example\r\n",
        f"GET /api/sessions HTTP/1.1\r\nHost: {ours}\r\nHost: {ours}\r\n",
        "GET /api/sessions HTTP/1.1\r\n",
        "GET /api/sessions HTTP/1.0\r\n",
        f"GET http://evil.example/api/sessions HTTP/1.1\r\nHost: {ours}\r\n",
        f"GET http://{ours}@evil.example/api/sessions HTTP/1.1\r\nHost: {ours}\r\n",
        f"GET http://evil.example\\@{ours}/api/sessions HTTP/1.1\r\nHost: {ours}\r\n",
    ):
        assert status(exchange(web, (head + rest).encode())) in (400, 403), head


@pytest.mark.smoke
async def test_a_browser_whose_name_server_binds_a_name_to_loopback_sees_nothing(program: Program) -> None:
    async with (
        serving(program) as web,
        chromium_running("--host-resolver-rules=MAP evil.example 127.0.0.1") as browser,
        visiting(browser, web, expected=("evil.example", "403", "Opener-Policy")) as page,
    ):
        answer = await page.goto(web.origin.replace("127.0.0.1", "evil.example"))
        assert answer is not None
        assert answer.status == 403
        await expect(page.locator("body")).to_contain_text("This page is not served as 'evil.example")


FOREIGN_ORIGINS = [
    None,
    "null",
    "",
    "http://evil.example",
    "https://127.0.0.1:PORT",
    "http://127.0.0.1",
    "http://127.0.0.1:1",
    "http://localhost:1",
    "http://localhost.evil.example:PORT",
    "http://127.0.0.1:PORT.evil.example",
    "http://127.0.0.1:PORT/",
    "HTTP://127.0.0.1:PORT",
    "http://127.0.0.1:PORT, http://evil.example",
    "file://",
    "chrome-extension://abcdefghijklmnop",
]


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
@pytest.mark.parametrize(
    "type", ["application/json", "text/plain", "application/x-www-form-urlencoded", None]
)
def test_nothing_is_changed_for_another_origin(
    web: Web, client: httpx2.Client, origin: str | None, type: str | None
) -> None:
    port = f"{urlsplit(web.origin).port}"
    headers = {"content-type": type} if type else {}
    if origin is not None:
        headers["origin"] = origin.replace("PORT", port)
    for method, path in (("POST", "/api/sessions"), ("DELETE", "/api/sessions/0"), ("POST", "/sign-out")):
        with httpx2.Client(base_url=web.origin, cookies=client.cookies, timeout=LONGEST_SECONDS) as attacker:
            answer = attacker.request(method, path, content=b"{}", headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "ORIGIN_NOT_ALLOWED")
        assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert client.get("/api/sessions").json() == {"sessions": []}


@pytest.mark.parametrize(
    "type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_a_form_is_no_request_to_the_api(client: httpx2.Client, type: str) -> None:
    answer = client.post("/api/sessions/0/ask", content=b'{"question": "a"}', headers={"content-type": type})
    assert answer.json()["error"]["code"] == "BAD_REQUEST"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"question": "\xff"}', "it is not text in UTF-8"),
        (b'{"question": 5}', "question must be a text, not a whole number"),
    ],
)
def test_a_request_that_cannot_be_read_is_a_bad_one(
    client: httpx2.Client, content: bytes, reason: str
) -> None:
    type = {"content-type": "application/json"}
    answer = client.post("/api/sessions/0/ask", content=content, headers=type)
    message = answer.json()["error"]["message"]
    assert (answer.status_code, message) == (400, f"The request cannot be read: {reason}.")


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
def test_what_another_page_loads_is_refused_though_the_cookie_comes_with_it(
    client: httpx2.Client, site: str
) -> None:
    for mode in ("no-cors", "cors", "websocket"):
        headers = {"sec-fetch-site": site, "sec-fetch-mode": mode}
        del client.headers["origin"]
        try:
            assert client.get("/api/sessions", headers=headers).status_code == 403
            assert client.get("/", headers={**headers, "sec-fetch-mode": "navigate"}).status_code == 200
        finally:
            client.headers["origin"] = f"{client.base_url}".rstrip("/")


HOSTILE_PAGE = """<!doctype html><title>hostile</title>
<img src="ORIGIN/api/sessions"><script src="ORIGIN/api/sessions"></script>
<link rel=stylesheet href="ORIGIN/static/page.css">
<iframe name=framed src="ORIGIN/"></iframe><iframe name=answer></iframe>
<form method=post action="ORIGIN/api/sessions" target=answer enctype=text/plain>
<input name='{"a":"' value='"}'></form>
<form method=post action="ORIGIN/sign-out" target=answer><input name=a></form>
<script>
const attempts = [
  fetch("ORIGIN/api/sessions", {credentials: "include"}),
  fetch("ORIGIN/api/sessions", {method: "POST", credentials: "include", mode: "no-cors", body: "{}"}),
  fetch("ORIGIN/api/sessions", {method: "POST", credentials: "include", body: "{}",
                                headers: {"content-type": "application/json"}}),
  fetch("ORIGIN/api/sessions/0", {method: "DELETE", credentials: "include"}),
  fetch("ORIGIN/", {credentials: "include", mode: "no-cors"}),
];
navigator.sendBeacon("ORIGIN/api/sessions", "{}");
for (const form of document.forms) form.submit();
Promise.allSettled(attempts).then((done) =>
  document.title = done.map((one) => one.value?.type ?? "failed").join(" "));
</script>"""


async def test_a_page_of_another_server_of_this_machine_can_do_nothing(
    browser: Browser, program: Program
) -> None:
    cookies: list[str] = []

    class Hostile(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            cookies.append(self.headers.get("cookie", ""))
            page = HOSTILE_PAGE.replace("ORIGIN", ours.origin).encode()
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", f"{len(page)}")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: object) -> None:
            pass

    async with serving(program) as ours, visiting(browser, ours, expected=(".",)) as page:
        with ThreadingHTTPServer(("127.0.0.1", 0), Hostile) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                await page.goto(f"http://127.0.0.1:{server.server_port}/")
                await expect(page).to_have_title("failed failed failed failed failed")
                # No frame shows the page, and none has run a script of it.
                assert await page.locator("iframe").count() == 2
                for frame in page.frames[1:]:
                    assert await frame.locator("nav").count() == 0
            finally:
                server.shutdown()
                thread.join()
        await page.goto(ours.origin)
        await expect(page.get_by_label("Question")).to_be_visible()  # still signed in
        listed = await page.evaluate("fetch('/api/sessions').then((answer) => answer.json())")
        assert listed == {"sessions": []}
    # Browsers keep a host's cookies for all its ports; why other users are refused even with the cookie:
    assert any(cookies)


AS_ANOTHER_USER = """
import socket, sys
with socket.socket(getattr(socket, sys.argv[3])) as connection:
    connection.connect((sys.argv[1], int(sys.argv[2])))
    connection.sendall(sys.stdin.buffer.read())
    while received := connection.recv(65536):
        print(received.decode())
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize(("family", "host"), [("AF_INET", "127.0.0.1"), ("AF_INET6", "::ffff:127.0.0.1")])
@pytest.mark.smoke
def test_another_user_with_the_stolen_cookie_is_refused(
    web: Web, client: httpx2.Client, family: str, host: str
) -> None:
    ours = urlsplit(web.origin)
    head = (
        f"GET /api/sessions HTTP/1.1\r\nHost: {ours.netloc}\r\nX-Forwarded-For: 10.0.0.1\r\n"
        f"Cookie: {cookie(client)}\r\nConnection: close\r\n\r\n"
    )
    command = [sys.executable, "-c", AS_ANOTHER_USER, host, f"{ours.port}", family]
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--clear-groups", *command], input=head.encode(), capture_output=True
    )
    assert b"USER_NOT_ALLOWED" in done.stdout, done.stderr
    assert client.get("/api/sessions").status_code == 200


def test_a_key_lets_one_browser_in_once(web: Web, client: httpx2.Client) -> None:
    assert client.get("/api/sessions").status_code == 200
    assert client.get(web.url).status_code == 200
    with httpx2.Client(base_url=web.origin, timeout=LONGEST_SECONDS) as thief:
        answer = thief.get(web.url)
        assert answer.status_code == 401
        assert "it has been used, is of an earlier start, or is incomplete." in answer.text
        assert not thief.cookies
        assert thief.get("/api/sessions").json()["error"]["code"] == "NOT_SIGNED_IN"


def test_guessed_keys_and_cookies_of_other_servers_let_no_one_in(web: Web, client: httpx2.Client) -> None:
    name = next(iter(client.cookies))
    right = client.cookies[name]
    with httpx2.Client(base_url=web.origin, timeout=LONGEST_SECONDS) as thief:
        for key in ("0", "A" * 43, right, "%00", "%F0%9F", "[]", "None", " "):
            assert "set-cookie" not in thief.get(f"/sign-in?key={key}").headers
        for value in ("", "1", right[:-1], right + "a", right.lower(), "A" * 43, "é"):
            given = {b"cookie": f"{name}={value}".encode()}
            assert thief.get("/api/sessions", headers=given).status_code == 401
        # That of a page on another port has another name.
        assert thief.get("/api/sessions", headers={"cookie": f"ragchat_1={right}"}).status_code == 401


def test_keys_and_cookies_are_forgotten() -> None:
    keys = Keys()
    key = keys.new_key()
    assert keys.use(key)
    assert not keys.use(key)
    value = keys.sign_in()
    assert keys.is_signed_in(value)
    keys.sign_out(value)
    assert not keys.is_signed_in(value)


def test_passwords_are_tried_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("ragchat.web.access.monotonic", lambda: now)
    keys = Keys("right")
    for _ in range(FREE_TRIES):
        assert keys.seconds_locked() == 0
        assert not keys.is_password("wrong")
    assert keys.seconds_locked() == WAIT_SECONDS
    now += WAIT_SECONDS
    assert keys.seconds_locked() == 0
    assert not keys.is_password("wrong")
    assert keys.seconds_locked() == WAIT_SECONDS
    now += WAIT_SECONDS
    assert keys.is_password("right")
    assert keys.seconds_locked() == 0
    assert not Keys("").is_password("")


@pytest.mark.parametrize(
    "path", ["/", "/sign-in", "/search?q=a", "/api/sessions", "/static/page.js", "/nothing"]
)
def test_every_answer_forbids_frames_scripts_and_other_hosts(client: httpx2.Client, path: str) -> None:
    for answer in (client.get(path), client.get(path, headers={"host": "evil.example"})):
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS


@pytest.mark.parametrize(
    "path",
    [
        "/static/../access.py",
        "/static/..%2faccess.py",
        "/static/%2e%2e/access.py",
        "/static/%2e%2e%2faccess.py",
        "/static/..%5caccess.py",
        "/static/....//access.py",
        "/static/..;/access.py",
        "/static//etc/passwd",
        "/static/%2fetc/passwd",
        "/static/%00",
        "/static/page.js%00.html",
        "/static/views/../../access.py",
        "/static/..%252faccess.py",
        "/static/" + "a" * 5_000,
        "/static/",
        "/static",
        "/static/../api/sessions",
        "/sign-in/../api/sessions",
    ],
)
def test_no_other_file_is_served(web: Web, path: str) -> None:
    ours = urlsplit(web.origin).netloc
    answer = exchange(web, f"GET {path} HTTP/1.1\r\nHost: {ours}\r\nConnection: close\r\n\r\n".encode())
    assert status(answer) in (400, 401, 404, 405), answer


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example/",
        "//evil.example/search/",
        "/\\evil.example/",
        "/%2f%2fevil.example/",
        "/search/",
        "/sessions/%2e%2e%2f%2e%2e//evil.example/",
        "/sign-in?key=0&next=//evil.example",
        "/?next=https://evil.example",
        "/sign-in?key=%0d%0aset-cookie:%20a=b",
        "/search?q=%0d%0aset-cookie:%20a=b",
        "/%0d%0aset-cookie:%20a=b",
        "/document?id=%0d%0aset-cookie:%20a=b",
    ],
)
@pytest.mark.parametrize("signed_in", [True, False])
def test_no_address_leads_elsewhere_or_adds_a_header(
    web: Web, client: httpx2.Client, path: str, signed_in: bool
) -> None:
    given = f"Cookie: {cookie(client)}\r\n" if signed_in else ""
    head = f"GET {path} HTTP/1.1\r\nHost: {urlsplit(web.origin).netloc}\r\nAccept: text/html\r\n{given}"
    answer = exchange(web, f"{head}Connection: close\r\n\r\n".encode()).partition("\r\n\r\n")[0].lower()
    assert "set-cookie" not in answer
    assert answer.count("location:") == answer.count("location: /sign-in")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "OPTIONS", "CONNECT", "PROPFIND", "X"])
def test_other_methods_do_nothing(web: Web, client: httpx2.Client, method: str) -> None:
    ours = urlsplit(web.origin)
    for origin in (web.origin, "http://evil.example"):
        head = (
            f"{method} /api/sessions HTTP/1.1\r\nHost: {ours.netloc}\r\nOrigin: {origin}\r\n"
            f"Cookie: {cookie(client)}\r\nX-HTTP-Method-Override: POST\r\nConnection: close\r\n\r\n"
        )
        answer = exchange(web, head.encode())
        assert status(answer) in (400, 403, 404, 405)
        assert "access-control-" not in answer.lower()
    assert client.get("/api/sessions").json() == {"sessions": []}


SMUGGLED = [
    "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX",
    "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nX",
    "Content-Length: 0\r\nContent-Length: 30\r\n\r\n",
    "Content-Length: 0, 30\r\n\r\n",
    "Content-Length: +5\r\n\r\nAAAAA",
    "Content-Length: -1\r\n\r\n",
    "Content-Length: 0x5\r\n\r\nAAAAA",
    "Content-Length : 5\r\n\r\nAAAAA",
    "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: identity, chunked, identity\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\n1\r\nAAAA\r\n0\r\n\r\n",
    "A: b\n\n",
    "A: b\r\n c: d\r\n\r\n",
    "A\x00: b\r\n\r\n",
]


@pytest.mark.parametrize("rest", SMUGGLED)
def test_a_request_whose_end_is_ambiguous_ends_the_connection(
    web: Web, client: httpx2.Client, rest: str
) -> None:
    ours = urlsplit(web.origin)
    smuggled = f"GET /api/sessions HTTP/1.1\r\nHost: {ours.netloc}\r\nCookie: {cookie(client)}\r\n\r\n"
    head = f"POST /sign-in HTTP/1.1\r\nHost: {ours.netloc}\r\nOrigin: {web.origin}\r\n"
    answer = exchange(web, (head + rest + smuggled).encode())
    assert '"sessions"' not in answer


def test_a_body_that_is_too_large_is_refused_before_it_is_read(client: httpx2.Client) -> None:
    for path in ("/sign-in", "/api/sessions/0/ask"):
        for content in (b"a" * (MAX_BODY + 1), iter([b"a" * MAX_BODY, b"a"])):
            answer = client.post(path, content=content, headers={"content-type": "application/json"})
            assert (answer.status_code, answer.json()["error"]["code"]) == (413, "TOO_LARGE")


def test_a_head_that_is_too_slow_or_too_large_ends_the_connection(web: Web, client: httpx2.Client) -> None:
    ours = urlsplit(web.origin).netloc
    assert exchange(web, f"GET /sign-in HTTP/1.1\r\nHost: {ours}\r\nA: ".encode()) == ""
    assert exchange(web, b"") == ""
    large = f"GET /sign-in HTTP/1.1\r\nHost: {ours}\r\nA: {'b' * 1_000_000}".encode()
    with suppress(OSError):  # It was reset, with what had not been read.
        assert exchange(web, large) == ""
    assert client.get("/health/live").json() == {"status": "ok"}
