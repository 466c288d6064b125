"""Load what is at a web address that the user has named, and nothing that it refers to.

A page, a redirect or a name server must not lead to the services of this machine or of the private network
(server-side request forgery, CWE-918). Each host is resolved and checked before a request, and again when it
is connected to, because a name can get another address in between. With a proxy, only the first check is
possible.
"""

from __future__ import annotations

import re
import ssl
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import anyio
import httpx2
import msgspec

from ragcommon.files.decoding import NotText
from ragmcp.http.reach import WITHOUT_PROXY, WORDS, Zone, addresses_of, guard, zone_of
from ragmemory import __version__

if TYPE_CHECKING:
    from protego import Protego

NAME = "ragchat"
HEADERS = {
    "user-agent": f"{NAME}/{__version__} (loads pages that its user names)",
    "accept": "text/html, application/xhtml+xml, application/pdf, text/markdown, text/plain, */*;q=0.5",
    # Decompressed here, in steps: httpx2 would decompress a whole part, and encodings within encodings.
    "accept-encoding": "gzip",
}
MAX_PAGE_BYTES = 64 << 20
MAX_ROBOTS_BYTES = 512 << 10  # RFC 9309, 2.5: at least 500 KiB
MAX_REDIRECTS = 5
CONNECT_SECONDS = 10.0
# Between two parts of an answer; and for the whole answer.
SILENCE_SECONDS, ANSWER_SECONDS = 20.0, 120.0
# Between two requests to one host, at least; robots.txt may ask for more.
PAUSE_SECONDS, MAX_PAUSE_SECONDS = 1.0, 30.0
# How long the rules of a host are kept (RFC 9309, 2.4: a day at most).
RULES_SECONDS = 3600.0
GONE = frozenset((404, 410))
# Before the reason in an error of the operating system.
_NUMBER = re.compile(r"\A\[(?:Errno|WinError) -?\d+\] ")

# The stamp that memory has for an address; "": none.
StampOf = Callable[[str], Awaitable[str]]


class NotFetched(NotText):
    """The message is the end of a sentence that begins with the named address.

    `gone` is the address where the server says that there is no document any more; "": it does not.
    """

    def __init__(self, reason: str, gone: str = "") -> None:
        super().__init__(reason)
        self.gone = gone


class Page(NamedTuple):
    """What is at an address, which is that after all redirects. `data` is None if the stamp is current."""

    address: str
    data: bytes | None
    media_type: str = ""
    charset: str = ""
    stamp: str = ""


class _Answer(NamedTuple):
    address: str
    status: int
    headers: httpx2.Headers
    body: bytes


def normalized(address: str) -> str:
    """The address in its normal form, without its fragment. Raises NotFetched unless it may be loaded."""
    try:
        url = httpx2.URL(address.strip())
    except httpx2.InvalidURL as error:
        raise NotFetched(f"is not a valid address ({error})") from None
    if url.scheme not in ("http", "https"):
        raise NotFetched("is not loaded: only http and https addresses are")
    if url.userinfo:
        raise NotFetched("is not loaded: it contains a user name or password, which memory would keep")
    if not url.host or (url.port or 1) > 65_535:
        raise NotFetched("is not a valid address (it names no host)")
    return str(url.copy_with(raw_path=url.raw_path, fragment=None))  # An empty path becomes "/".


class Web:
    """Loads pages. `private`: also from this machine and from private networks.

    `pause` is in seconds, between two requests to one host.
    """

    def __init__(self, *, private: bool, pause: float = PAUSE_SECONDS) -> None:
        self._private = private
        self._pause = pause
        self._pauses: dict[str, float] = {}  # that robots.txt of a host asks for
        self._next: dict[str, float] = {}  # when the next request to a host may begin
        self._rules: dict[str, tuple[float, Protego]] = {}  # by origin, with the time when they were read

    def named(self, address: str) -> str:
        """The normal form of an address; `fetch` refuses one that has none."""
        try:
            return normalized(address)
        except NotFetched:
            return address

    async def fetch(self, address: str, stamp_of: StampOf) -> Page:
        """The document at an address. Raises NotFetched."""
        async with self._client() as client:
            answer = await self._answer(client, address, MAX_PAGE_BYTES, stamp_of=stamp_of)
        headers = answer.headers
        if answer.status == 304:
            return Page(answer.address, None)
        media_type, _, _ = headers.get("content-type", "").partition(";")
        stamp = ""
        # Others could not be sent back.
        named = {name: headers.get(name, "") for name in ("etag", "last-modified")}
        if states := {name: one for name, one in named.items() if one.isascii() and one.strip()}:
            stamp = msgspec.json.encode(states).decode()
        charset = httpx2.Response(200, headers=headers).charset_encoding or ""
        return Page(answer.address, answer.body, media_type.strip().lower(), charset, stamp)

    async def final(self, address: str) -> str:
        """The address of a document after all redirects. Raises NotFetched if there is none."""
        async with self._client() as client:
            return (await self._answer(client, address, 0)).address

    def _client(self) -> httpx2.AsyncClient:
        """Of one page: its cookies are not kept."""
        client = httpx2.AsyncClient(
            verify=_trusted(),
            headers=HEADERS,
            timeout=httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
            mounts=dict.fromkeys(WITHOUT_PROXY),
        )
        guard(client, self)
        return client

    # What connections may lead to: see `guard`

    async def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of a host that may be connected to. Raises NotFetched, OSError."""
        found = await addresses_of(host, port)
        allowed = [one for one in found if self._private or zone_of(one) is Zone.PUBLIC]
        if not allowed:
            place = WORDS[zone_of(found[0])]
            raise NotFetched(
                f"is not loaded: {host} ({found[0]}) is {place}, which only --allow-private allows"
            )
        return allowed

    def note_connection(self, host: str, address: str) -> None:
        """Nothing depends on it here."""

    # Requests

    async def _answer(
        self,
        client: httpx2.AsyncClient,
        address: str,
        limit: int,
        *,
        stamp_of: StampOf | None = None,
        is_page: bool = True,
    ) -> _Answer:
        """The answer after all redirects. A page must be allowed by robots.txt, and must be there."""
        for _ in range(MAX_REDIRECTS + 1):
            address = normalized(address)
            url = httpx2.URL(address)
            port = url.port or (443 if url.scheme == "https" else 80)
            with suppress(OSError):  # A proxy may know the host; without one, the connection fails.
                await self.addresses(url.raw_host.decode(), port)
            if is_page:
                await self._obey(client, url)
            stamp = await stamp_of(address) if stamp_of else ""
            answer = await self._get(client, url, limit, stamp)
            if not (300 <= answer.status < 400 and "location" in answer.headers):
                break
            try:
                address = str(url.join(answer.headers["location"]))
            except httpx2.InvalidURL as error:
                raise NotFetched(f"redirects to an invalid address ({error})") from None
        else:
            raise NotFetched(f"redirects more than {MAX_REDIRECTS} times")
        if is_page and not (answer.status == 200 or (answer.status == 304 and stamp)):
            phrase = httpx2.codes.get_reason_phrase(answer.status)
            raise NotFetched(
                f"answers {answer.status} {phrase}".rstrip(), address if answer.status in GONE else ""
            )
        return answer

    async def _obey(self, client: httpx2.AsyncClient, url: httpx2.URL) -> None:
        """Raises NotFetched if robots.txt of the host excludes this program from the address."""
        from protego import Protego

        robots = str(url.copy_with(raw_path=b"/robots.txt"))
        read_at, rules = self._rules.get(robots, (0.0, None))
        if rules is None or anyio.current_time() - read_at > RULES_SECONDS:
            try:
                answer = await self._answer(client, robots, MAX_ROBOTS_BYTES, is_page=False)
            except NotFetched as error:
                raise NotFetched(f"is not loaded, because {robots} {error}") from None
            if answer.status >= 500:  # RFC 9309, 2.3.1.4: then everything is excluded.
                raise NotFetched(f"is not loaded, because {robots} answers {answer.status}")
            rules = Protego.parse(answer.body.decode(errors="replace") if answer.status == 200 else "")
            self._rules[robots] = anyio.current_time(), rules
            asked = float(rules.crawl_delay(NAME) or 0.0)
            self._pauses[url.host] = max(min(asked, MAX_PAUSE_SECONDS), self._pause)
        if not rules.can_fetch(str(url), NAME):
            raise NotFetched(f"is not loaded: {robots} excludes it for programs such as this one")

    async def _turn(self, host: str) -> None:
        """Wait until a request to the host may begin."""
        now = anyio.current_time()
        begin = max(now, self._next.get(host, now))
        self._next[host] = begin + self._pauses.get(host, self._pause)
        await anyio.sleep(begin - now)

    async def _get(self, client: httpx2.AsyncClient, url: httpx2.URL, limit: int, stamp: str) -> _Answer:
        """The answer to one request; the body only of status 200, of at most `limit` bytes; 0: without it."""
        states = msgspec.json.decode(stamp, type=dict[str, str]) if stamp else {}
        names = {"etag": "if-none-match", "last-modified": "if-modified-since"}
        request = client.build_request("GET", url, headers={names[name]: states[name] for name in states})
        await self._turn(url.host)
        try:
            with anyio.fail_after(ANSWER_SECONDS):
                response = await client.send(request, stream=True)
                try:
                    body = await _body(response, limit) if response.status_code == 200 and limit else b""
                finally:
                    with anyio.move_on_after(1, shield=True):
                        await response.aclose()
        except (TimeoutError, httpx2.TimeoutException):
            raise NotFetched("did not answer in time") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            reason = _NUMBER.sub("", str(error))
            raise NotFetched(f"cannot be reached ({reason or type(error).__name__})") from None
        return _Answer(str(url), response.status_code, response.headers, body)


async def _body(response: httpx2.Response, limit: int) -> bytes:
    """The decompressed body. Raises NotFetched if it is larger than `limit`."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip", ""):
        raise NotFetched(f"is sent in the encoding {encoding[:40]!r}, although only gzip was asked for")
    decoder = zlib.decompressobj(wbits=31) if "gzip" in encoding else None
    body = bytearray()
    async for part in response.aiter_raw():
        try:
            body += decoder.decompress(part, limit + 1 - len(body)) if decoder else part
        except zlib.error:
            raise NotFetched("is not compressed as its server says") from None
        if decoder and decoder.unused_data:
            raise NotFetched("sends more than the text that it has compressed")
        if len(body) > limit:
            raise NotFetched(f"is larger than {limit / 2**20:g} MiB")
    if decoder and not decoder.eof and body:
        raise NotFetched("ends too early")
    return bytes(body)


@cache
def _trusted() -> ssl.SSLContext:
    """Made once: reading the certificates takes 30 ms."""
    return httpx2.create_ssl_context()
