"""Logging in at a remote server, and what is kept of it."""

from __future__ import annotations

import stat
import sys
import urllib.error
import urllib.request
import webbrowser
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest

from ragchat.errors import CredentialsUnusable
from ragchat.servers.configs import ConfigScope, ServerConfig
from ragchat.servers.login import FILE, LOGIN_SECONDS, Credentials, NoLogin, authorization, log_in
from ragchat.servers.managed import ServerState
from ragchat.settings import ServerSettings
from ragconfig.redaction import redacted
from tests.support.authorization_server import protected
from tests.support.processes import LONGEST_SECONDS
from tests.support.servers import managed, tool, write

SETTINGS = ServerSettings(start_seconds=60, wait_seconds=3, timeout_seconds=60, calls=4, message_bytes=2**20)


def browse(url: str) -> bool:
    """A browser whose user agrees: it follows redirects."""
    with urllib.request.urlopen(url) as page:
        return bool(page.read())


async def test_a_server_that_wants_a_login_can_be_used_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", browse)
    shown: list[str] = []
    async with protected() as server:
        url = f"{server.url}/mcp"
        write(tmp_path, remote={"url": url})
        async with managed(tmp_path) as manager:
            connection = manager.connections["remote"]
            assert connection.state is ServerState.LOGIN
            assert "mcp login remote" in getattr(connection.failure, "hint", "")
            await manager.log_in("remote", shown.append)
            await manager.restart("remote")
            assert manager.connections["remote"].state is ServerState.READY
        async with managed(tmp_path) as manager:
            assert manager.connections["remote"].state is ServerState.READY
        assert server.count["/authorize"] == 1
    assert "/authorize?" in shown[0]


async def test_the_next_login_asks_for_the_rights_that_a_call_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", browse)
    async with protected() as server:
        server.for_calls = "admin"
        write(tmp_path, remote={"url": f"{server.url}/mcp"})
        async with managed(tmp_path) as manager:
            await manager.log_in("remote", lambda _: None)
            await manager.restart("remote")
            refused = await tool(manager, "remote__Echo").call({"text": "hello"})
            assert "mcp login remote" in refused.text
            assert manager.connections["remote"].state is ServerState.READY
        async with managed(tmp_path) as manager:  # another run of the program
            await manager.log_in("remote", lambda _: None)
            await manager.restart("remote")
            assert (await tool(manager, "remote__Echo").call({"text": "hello"})).text == "hello"
            await manager.log_in("remote", lambda _: None)
        assert server.count["/authorize"] == 2


async def test_a_login_that_the_user_gives_up_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = anyio.Event()
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    async with protected() as server:
        config = ServerConfig(name="a", scope=ConfigScope.USER, file="mcp.json", url=f"{server.url}/mcp")
        with anyio.fail_after(LONGEST_SECONDS):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(log_in, config, Credentials(tmp_path), SETTINGS, lambda _: asked.set())
                await asked.wait()
                tasks.cancel_scope.cancel()
    assert Credentials(tmp_path).grant(config.url) is None


async def test_the_address_of_a_browser_on_another_machine_can_be_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda _: False)

    async def elsewhere() -> str:
        """The user logs in on a machine where nothing listens at the redirect's address."""
        page = next(line for text in shown for line in text.splitlines() if "/authorize?" in line)
        async with httpx2.AsyncClient(trust_env=False) as browser:
            return (await browser.get(page)).headers["location"]

    def other_login() -> str:
        hint = next(text for text in shown if "it ends at " in text)
        return hint.partition("it ends at ")[2].partition("…")[0] + "code=x&state=y"

    replies = iter(["  ", "https://example.org/?code=x", "another", ""])

    async def read(_: str) -> str:
        reply = next(replies)
        return other_login() if reply == "another" else reply or await elsewhere()

    async with protected() as server:
        config = ServerConfig(name="a", scope=ConfigScope.USER, file="mcp.json", url=f"{server.url}/mcp")
        with anyio.fail_after(LONGEST_SECONDS):
            await log_in(config, Credentials(tmp_path), SETTINGS, shown.append, read)
    assert Credentials(tmp_path).grant(config.url) is not None
    assert any(text.startswith("The address begins with http://127.0.0.1:") for text in shown)
    assert "That address belongs to another login." in shown


async def test_a_page_that_sends_the_browser_back_with_another_state_does_not_end_the_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def misled(url: str) -> bool:
        back = parse_qs(urlsplit(url).query)["redirect_uri"][0]
        for wrong in ("code=evil&state=evil", "error=access_denied"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"{back}?{wrong}")
            refused.value.close()
        return browse(url)

    monkeypatch.setattr(webbrowser, "open", misled)
    async with protected() as server:
        config = ServerConfig(name="a", scope=ConfigScope.USER, file="mcp.json", url=f"{server.url}/mcp")
        with anyio.fail_after(LONGEST_SECONDS):
            await log_in(config, Credentials(tmp_path), SETTINGS, lambda _: None)
    assert Credentials(tmp_path).grant(config.url) is not None


async def test_a_user_has_minutes_to_log_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[float] = []
    monkeypatch.setattr(webbrowser, "open", browse)

    async def read(_: str) -> None:
        left.append(anyio.current_effective_deadline() - anyio.current_time())

    async with protected() as server:
        config = ServerConfig(name="a", scope=ConfigScope.USER, file="mcp.json", url=f"{server.url}/mcp")
        await log_in(config, Credentials(tmp_path), SETTINGS, lambda _: None, read)
    assert left[0] > LOGIN_SECONDS / 2


def test_with_a_grant_what_was_wanted_beyond_it_is_forgotten(tmp_path: Path) -> None:
    credentials = Credentials(tmp_path)
    credentials.keep_wanted("https://a.org", "admin")
    assert Credentials(tmp_path).wanted("https://a.org") == "admin"
    credentials.keep_grant("https://a.org", None)
    assert Credentials(tmp_path).wanted("https://a.org") == ""


def test_a_header_for_authorization_needs_no_login(tmp_path: Path) -> None:
    config = ServerConfig(
        name="a", scope=ConfigScope.USER, file="f", url="https://a.org", headers={"authorization": "Bearer x"}
    )
    credentials = Credentials(tmp_path)
    assert authorization(config, NoLogin(config, credentials), credentials) is None


async def test_tokens_are_kept_privately_and_redacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", browse)
    async with protected() as server:
        config = ServerConfig(name="a", scope=ConfigScope.USER, file="mcp.json", url=f"{server.url}/mcp")
        await log_in(config, Credentials(tmp_path), SETTINGS, lambda _: None)
        grant = Credentials(tmp_path).grant(config.url)
    assert grant is not None
    assert grant.access_token not in redacted(f"the token {grant.access_token}")
    if sys.platform != "win32":
        assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no file modes")
def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{}")
    (tmp_path / FILE).chmod(0o644)
    with pytest.raises(CredentialsUnusable, match="other users"):
        Credentials(tmp_path).grant("https://a.org")
