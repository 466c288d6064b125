"""Who may use the page: one-time keys, the cookie that they are exchanged for, and foreign hosts and origins.

Other programs use `/v1` with a token, which no browser knows, and never with the cookie.

A key travels in an address, so it is valid once. Cookies and loopback addresses are shared by all ports of a
host: a page of another local server could send our cookie, so the origin is compared with its port.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from time import monotonic
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragchat.web.errors import (
    ForeignHost,
    ForeignOrigin,
    ForeignRequest,
    ForeignUser,
    NoPage,
    NotSignedIn,
    TokenNeeded,
    WebError,
    error_response,
    openai_response,
)
from ragcommon.peer import is_of_another_user

# What can be asked for without a cookie: nothing here says anything about the user.
OPEN_PATHS = frozenset({"/sign-in", "/health/live"})
OPEN_FOLDER = "/static/"
# What other programs use.
PROGRAMS = "/v1/"
SAFE_METHODS = frozenset({"GET", "HEAD"})
# Bad passwords in a row, from all clients together, after which the next ones wait.
FREE_TRIES, WAIT_SECONDS = 5, 5.0
COOKIE_SECONDS = 30 * 86_400

CSP = (
    "default-src 'none'; script-src 'self'; require-trusted-types-for 'script'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CSP,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # With "no-referrer" a browser would send the form of the password without its origin.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Keys:
    """One-time keys, the password if there is one, and the signed-in browsers. Nothing is stored.

    `token` is that of other programs.
    """

    def __init__(self, password: str = "", token: str = "") -> None:
        self.password = password
        self._token = token
        self._keys: set[str] = set()
        self._sessions: set[bytes] = set()  # hashes of cookies
        self._failures, self._locked_until = 0, 0.0

    def new_key(self) -> str:
        key = secrets.token_urlsafe(32)
        self._keys.add(key)
        return key

    def use(self, key: str) -> bool:
        """Whether the key was valid; it is not any more."""
        found = next((one for one in self._keys if hmac.compare_digest(one.encode(), key.encode())), None)
        self._keys.discard(found or "")
        return found is not None

    def seconds_locked(self) -> float:
        return max(0.0, self._locked_until - monotonic())

    def is_password(self, given: str) -> bool:
        right = bool(self.password) and hmac.compare_digest(given.encode(), self.password.encode())
        self._failures = 0 if right else self._failures + 1
        if self._failures >= FREE_TRIES:
            self._locked_until = monotonic() + WAIT_SECONDS
        return right

    def is_token(self, given: str) -> bool:
        return bool(self._token) and hmac.compare_digest(given.encode(), self._token.encode())

    def sign_in(self) -> str:
        """The value of a new cookie."""
        value = secrets.token_urlsafe(32)
        self._sessions.add(_hash(value))
        return value

    def sign_out(self, value: str) -> None:
        self._sessions.discard(_hash(value))

    def is_signed_in(self, value: str) -> bool:
        return _hash(value) in self._sessions


def _hash(value: str) -> bytes:
    return hashlib.sha256(value.encode()).digest()


class Access:
    """ASGI middleware. `origins` are those of this server, such as `http://127.0.0.1:8766`.

    `private`: only connections of the user who runs it are accepted, where the system can tell. `page`: False
    if only the API is served.
    """

    def __init__(
        self,
        app: ASGIApp,
        keys: Keys,
        origins: frozenset[str],
        cookie: str,
        *,
        private: bool,
        page: bool = True,
    ) -> None:
        self._app = app
        self._page = page
        self._keys = keys
        self._origins = origins
        self._hosts = {urlsplit(origin).netloc for origin in origins}
        self._cookie = cookie
        self._private = private

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            if self._private and is_of_another_user(scope["client"], scope["server"]):
                raise ForeignUser
            self._check(HTTPConnection(scope), scope["method"], scope["path"])
        except WebError as error:
            response = self._refusal(error, scope)
            await response(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)

    def _check(self, request: HTTPConnection, method: str, path: str) -> None:
        if path.startswith(PROGRAMS):
            self._check_program(request.headers)
            return
        self._check_source(request.headers, method)
        is_open = path in OPEN_PATHS or path.startswith(OPEN_FOLDER)
        if not is_open and not self._keys.is_signed_in(request.cookies.get(self._cookie, "")):
            raise NotSignedIn

    def _check_program(self, headers: Headers) -> None:
        self._check_source(headers, "GET")  # Programs send no origin.
        if "cookie" in headers:
            raise ForeignRequest
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer":
            raise TokenNeeded("none was sent")
        if len(headers.getlist("authorization")) != 1 or not self._keys.is_token(token.strip()):
            raise TokenNeeded("the one that was sent is wrong")

    def _check_source(self, headers: Headers, method: str) -> None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            raise ForeignHost(", ".join(hosts))
        origin = headers.get("origin")
        # Browsers send the origin with each request that may change something.
        if (origin is not None or method not in SAFE_METHODS) and origin not in self._origins:
            raise ForeignOrigin(origin or "an unknown page")
        # A page of another port is of the same site: the cookie comes with what it loads. It may link to us.
        site, mode = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode")
        if site not in ("none", "same-origin") and mode != "navigate":
            raise ForeignOrigin("another page")

    def _refusal(self, error: WebError, scope: Scope) -> Response:
        if scope["path"].startswith(PROGRAMS):
            return openai_response(error)
        wants_page = "text/html" in Headers(scope=scope).get("accept", "")
        if isinstance(error, NotSignedIn) and scope["method"] in SAFE_METHODS and wants_page:
            return RedirectResponse("/sign-in", 303)
        if isinstance(error, NotSignedIn) and not self._page:
            error = NoPage()
        if wants_page:
            return PlainTextResponse(f"{error} {error.hint}".rstrip(), error.status)
        return error_response(error)
