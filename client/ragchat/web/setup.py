"""Set-up: blocks for other programs, the other servers and their permissions, the doctor, the settings."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from starlette.requests import Request

from ragchat.console import describe
from ragchat.sanitize import one_line, sanitize, visible
from ragchat.servers.connection import Connection
from ragchat.servers.managed import ServerState
from ragchat.servers.permissions import Permissions
from ragchat.setup.checks import examine
from ragchat.setup.host_block import own
from ragchat.setup.shown import effective, keys_set, places, shown
from ragchat.web.site import Site, body, route, streamed
from ragchat.web.streaming import Tell
from ragcommon.files.uris import without_secrets
from ragcommon.hosts import HOSTS, Host, write


class ServerChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`start` also records the consent to a project's server; `ask_again` drops the rule for `tool`."""

    server: str
    action: Literal["start", "enable", "disable", "forget", "ask_again"]
    tool: str = ""


async def show(site: Site, _: Request) -> dict[str, Any]:
    return {
        "programs": [_program(site, name, host) for name, host in HOSTS.items()],
        "settings": [
            {**row, "value": sanitize(shown(row["value"])), "origin": one_line(row["origin"])}
            for row in effective(site.settings)
        ],
        "keys": keys_set(),
        "files": {
            name: {"path": visible(str(path)), "exists": path.exists()}
            for name, path in places(site.settings).items()
        },
    }


async def servers(site: Site, _: Request) -> dict[str, Any]:
    """The other servers, as the files name them now: new ones are started, removed ones stopped."""
    site.servers.start()
    permissions = site.servers.permissions
    return {"servers": [server_document(one, permissions) for one in site.servers.connections.values()]}


async def change(site: Site, request: Request) -> dict[str, Any]:
    asked = await body(request, ServerChange)
    match asked.action:
        case "start":
            await site.servers.restart(asked.server)
        case "enable" | "disable":
            site.servers.disable(asked.server, disabled=asked.action == "disable")
        case "forget":
            site.servers.forget(asked.server)
        case "ask_again":
            config = site.servers.connection(asked.server).config
            site.servers.permissions.forget_tool(config.identity, asked.tool)
    server = site.servers.connection(asked.server)
    await server.wait_started()
    return server_document(server, site.servers.permissions)


async def doctor(site: Site, tell: Tell) -> None:
    """Each check, when it is done."""
    async for check in examine(site.settings):
        tell({name: sanitize(text) for name, text in msgspec.structs.asdict(check).items()})


ROUTES = (
    route("/api/setup", show),
    route("/api/servers", servers),
    route("/api/servers", change, "POST"),
    streamed("/api/doctor", doctor, "POST"),
)


def _program(site: Site, name: str, host: Host) -> dict[str, Any]:
    text = write(own(host, site.settings), host.format)
    place = site.settings.memory_place
    hidden = without_secrets(place)
    return {
        "name": name,
        "title": host.title,
        "where": host.where,
        "text": text.replace(place, hidden),
        "needs_password": hidden != place,
    }


def server_document(server: Connection, permissions: Permissions) -> dict[str, Any]:
    """A server; its names are followed by how they look, since they may hold what a screen does not show."""
    config, state = server.config, server.state
    failure = describe(server.failure) if server.failure is not None else None
    rules = permissions.rules(config.identity)
    return {
        "name": config.name,
        "label": visible(config.name),
        "scope": config.scope,
        "file": visible(config.file),
        "state": state,
        # What the user is asked to allow is shown whole, as it may be started then.
        "command": visible(config.whole if state is ServerState.UNASKED else config.shown),
        "error": sanitize(f"{failure.message} {failure.hint}".strip()) if failure else "",
        "log": "" if config.url or failure is None else sanitize(server.last_log_lines(10)),
        "tools": [
            {
                "name": tool.name,
                "label": visible(tool.name),
                "description": sanitize(tool.description or ""),
                "rule": rules.pop(tool.name, None),
                "has_changed": permissions.has_changed(config.identity, tool),
            }
            for tool in server.tools
        ],
        "other_rules": [{"name": name, "label": visible(name), "rule": rule} for name, rule in rules.items()],
    }
