"""Where a server may lead the client, by the addresses of both."""

from __future__ import annotations

import socket
from contextlib import AbstractAsyncContextManager

import anyio
import httpx2
import pytest

from ragmcp.client.features import Client
from ragmcp.errors import ServerUnreachable
from ragmcp.http.connect import open_http
from ragmcp.http.reach import AddressRefused, Reach, Zone, guard, zone_of
from tests.support.http_script import Said, Scripted
from tests.support.http_server import served
from tests.support.internet import ELSEWHERE, PRIVATE, PUBLIC, Internet
from tests.support.ports import free_port
from tests.support.processes import LONGEST_SECONDS

LOOPBACK, LINK_LOCAL = "127.0.0.1", "169.254.169.254"


@pytest.fixture
def internet(monkeypatch: pytest.MonkeyPatch) -> Internet:
    return Internet(monkeypatch)


@pytest.mark.parametrize(
    ("zone", "addresses"),
    [
        (Zone.THIS_MACHINE, "127.0.0.1 127.9.9.9 0.0.0.0 ::1 :: ::127.0.0.1 ::ffff:127.0.0.1"),
        (Zone.THIS_MACHINE, "64:ff9b::127.0.0.1 ::ffff:0:7f00:1 2002:7f00:1::"),
        (Zone.PRIVATE, "10.0.0.1 172.31.0.1 192.168.0.1 100.64.0.1 100.127.255.255 fc00::1 fd12::1 fec0::1"),
        (Zone.PRIVATE, "::ffff:10.0.0.1 64:ff9b::192.168.0.1 64:ff9b:1::a00:1 2002:a00:1::1"),
        (Zone.LINK_LOCAL, "169.254.169.254 fe80::1 fe80::1%eth0 ::ffff:169.254.169.254"),
        (Zone.RESERVED, "224.0.0.1 224.0.1.1 ff02::1 ff0e::1 255.255.255.255 240.0.0.1 0.1.2.3 198.18.0.1"),
        (Zone.PUBLIC, "93.184.216.34 172.32.0.1 2606:4700::1 64:ff9b::1.1.1.1 ::ffff:1.1.1.1 2002:101:101::"),
    ],
)
def test_every_address_is_in_a_zone(zone: Zone, addresses: str) -> None:
    assert {address: zone_of(address) for address in addresses.split()} == dict.fromkeys(
        addresses.split(), zone
    )


@pytest.mark.parametrize(
    ("server", "leads_to"),
    [
        (PUBLIC, {ELSEWHERE}),
        (LINK_LOCAL, {ELSEWHERE, LINK_LOCAL}),
        (PRIVATE, {ELSEWHERE, "10.0.0.1"}),
        (LOOPBACK, {ELSEWHERE, "10.0.0.1", "127.0.0.2"}),
    ],
)
async def test_a_server_leads_to_public_addresses_and_to_where_it_is(
    internet: Internet, server: str, leads_to: set[str]
) -> None:
    internet.names["server.example"] = [[server]]
    reach = Reach("http://server.example")
    found = set()
    for address in (ELSEWHERE, LINK_LOCAL, "10.0.0.1", "127.0.0.2"):
        internet.names["other.example"] = [[address]]
        try:
            await reach.check("https://other.example/token")
        except AddressRefused:
            continue
        found.add(address)
    assert found == leads_to


@pytest.mark.parametrize(
    "url",
    ["http://127.1", "http://2130706433/", "http://0x7f.1", "http://[::ffff:7f00:1]"],
)
async def test_an_unusual_form_of_an_address_is_no_way_around(internet: Internet, url: str) -> None:
    internet.names["server.example"] = [[PUBLIC]]
    with pytest.raises(AddressRefused, match="on this machine"):
        await Reach("http://server.example").check(url)


async def test_a_name_with_a_public_address_is_elsewhere_whatever_its_others(internet: Internet) -> None:
    """Else a server could choose where it is, with one more address for its name."""
    internet.names["server.example"] = [[LOOPBACK, PRIVATE, PUBLIC]]
    with pytest.raises(AddressRefused):
        await Reach("http://server.example").check("http://127.0.0.1/")


async def test_the_most_public_of_its_addresses_says_where_a_server_is() -> None:
    reach = Reach("http://server.example")
    for address in (LOOPBACK, PUBLIC, LOOPBACK):
        reach.note_connection("server.example", address)
    with pytest.raises(AddressRefused):
        await reach.check("http://127.0.0.1/")


async def test_a_host_that_only_a_proxy_knows_is_left_to_it(internet: Internet) -> None:
    internet.names["server.example"] = [[PUBLIC]]
    await Reach("http://server.example").check("https://no.such.name.invalid/")


def opened(url: str) -> AbstractAsyncContextManager[Client]:
    return open_http(url, client_name="me", client_version="1", message_bytes=1000)


async def get(url: str, reach: Reach) -> httpx2.Response:
    client = httpx2.AsyncClient(timeout=LONGEST_SECONDS)
    guard(client, reach)
    async with client:
        return await client.get(url)


async def test_the_checked_address_is_connected_to_under_its_name(internet: Internet) -> None:
    internet.names["server.example"] = [[PUBLIC]]
    internet.ours = {PUBLIC}
    async with served(script := Scripted(lambda _: Said(body={}))) as root:
        url = root.replace(LOOPBACK, "server.example")
        assert (await get(url, Reach(url))).status_code == 200
    assert internet.connected == [PUBLIC]
    assert script.heard[0].headers["host"].startswith("server.example:")


async def test_a_peer_that_is_gone_without_a_word_is_noticed_while_a_request_waits() -> None:
    async with served(Scripted(lambda _: Said(body={}))) as root:
        client = httpx2.AsyncClient(trust_env=False)
        guard(client, Reach(root))
        async with client, client.stream("GET", root) as response:
            connected = response.extensions["network_stream"].get_extra_info("socket")
            assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
                parts = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
                idle, interval, probes = (
                    connected.getsockopt(socket.IPPROTO_TCP, getattr(socket, part)) for part in parts
                )
                assert idle + interval * probes <= 60
                assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 60_000


async def test_a_name_that_changes_between_check_and_connection_leads_nowhere(internet: Internet) -> None:
    internet.names |= {"server.example": [[PUBLIC]], "token.example": [[ELSEWHERE], [LOOPBACK]]}
    async with served(script := Scripted(lambda _: Said(body={}))) as root:
        url, reach = root.replace(LOOPBACK, "token.example"), Reach("http://server.example")
        await reach.check(url)
        with pytest.raises(AddressRefused, match=r"leads to token.example:\d+ \(127.0.0.1\), which"):
            await get(url, reach)
    assert (script.heard, internet.connected) == ([], [])


async def test_of_several_addresses_only_those_that_are_allowed_are_tried(internet: Internet) -> None:
    internet.names |= {"server.example": [[PUBLIC]], "token.example": [[LOOPBACK, ELSEWHERE]]}
    internet.ours = {ELSEWHERE}
    async with served(Scripted(lambda _: Said(body={}))) as root:
        await get(root.replace(LOOPBACK, "token.example"), Reach("http://server.example"))
    assert internet.connected == [ELSEWHERE]


async def test_an_address_that_does_not_answer_does_not_keep_the_others_waiting(
    internet: Internet, monkeypatch: pytest.MonkeyPatch
) -> None:
    internet.names["server.example"] = [["93.184.216.1", PUBLIC]]
    internet.ours = {PUBLIC}
    lead = anyio.connect_tcp

    async def silent(remote_host: str, remote_port: int, **options: object) -> object:
        if remote_host == "93.184.216.1":
            await anyio.sleep_forever()
        return await lead(remote_host, remote_port, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(anyio, "connect_tcp", silent)
    async with served(Scripted(lambda _: Said(body={}))) as root:
        url = root.replace(LOOPBACK, "server.example")
        with anyio.fail_after(LONGEST_SECONDS):
            assert (await get(url, Reach(url))).status_code == 200


async def test_a_server_whose_addresses_all_refuse_is_unreachable_for_the_system_s_reason(
    internet: Internet,
) -> None:
    internet.names["server.example"] = [[PUBLIC, ELSEWHERE]]
    internet.ours = {PUBLIC, ELSEWHERE}
    with pytest.raises(ServerUnreachable, match="nothing listens there"):
        async with opened(f"http://server.example:{free_port()}/mcp"):
            pass
    assert internet.connected == [PUBLIC, ELSEWHERE]


@pytest.mark.parametrize("name", ["no.such.name.invalid", "a..b", "x" * 70 + ".example"])
async def test_a_server_whose_name_cannot_be_resolved_is_unreachable(name: str) -> None:
    with pytest.raises(ServerUnreachable):
        async with opened(f"http://{name}/mcp"):
            pass


async def test_a_redirect_of_a_server_whose_name_changes_leads_nowhere(internet: Internet) -> None:
    internet.names["server.example"] = [[PUBLIC], [LOOPBACK]]
    internet.ours = {PUBLIC}
    moved = Said(307, headers={"location": "/admin?delete=all", "connection": "close"})
    async with served(script := Scripted(lambda _: moved)) as root:
        with pytest.raises(AddressRefused, match=r"leads to server\.example"):
            async with opened(f"{root.replace(LOOPBACK, 'server.example')}/mcp"):
                pass
    assert {heard.path for heard in script.heard} == {"/mcp"}
