"""Set-up on the page: other programs, servers and their permissions, the doctor, the settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import msgspec
import pytest

from ragchat.servers.permissions import Permissions, Rule
from ragmcp.protocol.schema.tools import ToolInfo
from tests.support.browser import Browser, axe, expect, scrolls_sideways, serving, visiting, web_process
from tests.support.processes import LONGEST_SECONDS
from tests.support.program import Program
from tests.support.servers import GOOD, write

pytestmark = pytest.mark.full

GONE = {"command": "no-such-program"}


@pytest.fixture
def client(program: Program) -> Iterator[httpx2.Client]:
    write(program.home, good=GOOD, gone=GONE)
    (program.folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": GOOD}}), encoding="utf-8")
    allowed = ToolInfo(name="Echo", input_schema={"type": "object"})
    permissions = Permissions(program.home / "config")
    permissions.remember("good", [allowed], Rule.ALWAYS)
    Permissions(program.home / "config").remember(
        "good", [msgspec.structs.replace(allowed, name="old")], Rule.NEVER
    )
    with web_process(program) as web, web.signed_in() as client:
        client.get("/api/servers").raise_for_status()  # starts them
        yield client


def changed(client: httpx2.Client, server: str, action: str, tool: str = "") -> dict[str, Any]:
    answer = client.post("/api/servers", json={"server": server, "action": action, "tool": tool})
    document: dict[str, Any] = answer.raise_for_status().json()
    return document


def test_servers_are_tested_disabled_and_enabled(client: httpx2.Client, program: Program) -> None:
    good = changed(client, "good", "start")
    assert good["state"] == "ready"
    assert "Echo" in [tool["name"] for tool in good["tools"]]
    assert changed(client, "good", "disable")["state"] == "disabled"
    listed = {one["name"]: one for one in program("mcp", "ls", "--json").json["servers"]}
    assert listed["good"]["disabled"]
    assert changed(client, "good", "enable")["state"] == "ready"
    gone = changed(client, "gone", "start")
    assert gone["state"] == "failed"
    assert "there is no such program" in gone["error"]
    answer = client.post("/api/servers", json={"server": "none", "action": "start"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "SERVER_UNKNOWN")


def test_a_projects_server_is_started_only_after_its_whole_command_was_allowed(client: httpx2.Client) -> None:
    servers = {one["name"]: one for one in client.get("/api/servers").json()["servers"]}
    theirs = servers["theirs"]
    assert theirs["state"] == "waits for your consent"
    assert "PYTHONPATH=" in theirs["command"]
    assert changed(client, "theirs", "start")["state"] == "ready"
    assert changed(client, "theirs", "forget")["state"] == "waits for your consent"


def test_rules_of_tools_are_shown_and_dropped(client: httpx2.Client) -> None:
    def rules(server: dict[str, Any]) -> dict[str, str]:
        return {one["name"]: one["rule"] for one in [*server["tools"], *server["other_rules"]] if one["rule"]}

    good = changed(client, "good", "start")
    assert rules(good) == {"Echo": "always", "old": "never"}
    assert [tool["has_changed"] for tool in good["tools"] if tool["name"] == "Echo"] == [True]
    assert rules(changed(client, "good", "ask_again", "Echo")) == {"old": "never"}
    assert rules(changed(client, "good", "forget")) == {}


def test_settings_come_with_their_origins_and_without_secrets(program: Program) -> None:
    program.environ["RAGCHAT_MODEL_BASE_URL"] = "http://me:pass-word@127.0.0.1:9/v1"
    program.environ["OPENAI_API_KEY"] = "se-cret"
    with web_process(program) as web, web.signed_in() as client:
        text = client.get("/api/setup").raise_for_status().text
        setup = json.loads(text)
    rows = {row["key"]: row for row in setup["settings"]}
    assert rows["model.base_url"]["value"] == "http://***@127.0.0.1:9/v1"
    assert "RAGCHAT_MODEL_BASE_URL" in rows["model.base_url"]["origin"]
    assert rows["retrieval.top_k"]["origin"] == "default"
    assert setup["keys"] == {"OPENAI_API_KEY": True}
    assert "pass-word" not in text
    assert "se-cret" not in text


def test_the_blocks_for_other_programs_are_those_of_the_terminal(
    client: httpx2.Client, program: Program
) -> None:
    for one in client.get("/api/setup").json()["programs"]:
        assert program("mcp", "config", one["name"]).out.strip() == one["text"]


NARROW = {"width": 360, "height": 800}


async def test_the_doctor_runs_on_the_page(browser: Browser, program: Program) -> None:
    write(program.home, gone=GONE)
    async with (
        serving(program) as web,
        visiting(browser, web, viewport=NARROW) as page,
    ):
        await page.goto(f"{web.origin}/setup")
        await page.get_by_text("did not start: there is no such program").wait_for()
        await page.get_by_role("button", name="Run the doctor").click()
        await page.get_by_text("All checks are done.").wait_for(timeout=LONGEST_SECONDS * 1_000)
        checks = page.locator(".checks")
        await expect(checks).to_contain_text("server gone: fault")
        await expect(checks).to_contain_text("memory server: ok")
        assert not await scrolls_sideways(page)
        await axe(page)


async def test_signing_out_ends_the_visit(browser: Browser, program: Program) -> None:
    async with serving(program) as web, visiting(browser, web, expected=("401",)) as page:
        await page.goto(f"{web.origin}/setup")
        await page.get_by_role("button", name="Sign out").click()
        await page.wait_for_url("**/sign-in")
        await page.goto(web.origin)
        await page.wait_for_url("**/sign-in")
