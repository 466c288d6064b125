"""The files of `deploy/` fit the program, and each other. No container engine runs them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from ragcommon.hosts import TOKEN_VARIABLE
from ragconfig.settings import Settings, load_settings
from ragmemory import __version__
from tests.docs.pages import ROOT, read
from tests.support.http_memory import http_memory
from tests.support.processes import LONGEST_SECONDS

DEPLOY = ROOT / "deploy"
DOCKERFILE = read(DEPLOY / "Dockerfile")
CADDYFILE = read(DEPLOY / "Caddyfile")
COMPOSE: dict[str, Any] = msgspec.yaml.decode(read(DEPLOY / "compose.yaml"))
MANIFESTS: list[dict[str, Any]] = [
    msgspec.yaml.decode(text) for text in read(DEPLOY / "kubernetes.yaml").split("\n---\n")
]
[POD] = [one["spec"]["template"]["spec"] for one in MANIFESTS if one["kind"] == "Deployment"]
[CONTAINER] = POD["containers"]
SERVERS: dict[str, dict[str, Any]] = {
    name: service for name, service in COMPOSE["services"].items() if service["image"] == CONTAINER["image"]
}
# Variables of psycopg's libpq and of the program that are no settings.
OTHERS = {"PATH", "PGPASSFILE", "PGPASSWORD", TOKEN_VARIABLE}


def image_variables() -> dict[str, str]:
    [line] = re.findall(r"^ENV (.*)$", DOCKERFILE.replace("\\\n", ""), re.MULTILINE)
    return dict(word.partition("=")[::2] for word in line.split())


def settings_of(variables: dict[str, str]) -> Settings:
    """What a server with these variables starts with; they must all be known."""
    assert {name for name in variables if not name.startswith("RAGCHAT_")} <= OTHERS
    return load_settings(environ=variables, folder=DEPLOY)


COMPOSED = settings_of(image_variables() | COMPOSE["services"]["ragmemory-1"]["environment"])
IN_POD = settings_of(image_variables() | {one["name"]: one.get("value", "") for one in CONTAINER["env"]})


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


@pytest.mark.parametrize("settings", [COMPOSED, IN_POD], ids=["compose.yaml", "kubernetes.yaml"])
def test_the_servers_keep_their_memory_in_postgresql_and_can_be_reached(settings: Settings) -> None:
    assert settings.store_url == "postgresql://ragmemory@postgres/ragmemory"
    assert settings.tables["http"]["host"] == "0.0.0.0"


def test_every_image_has_its_major_version() -> None:
    images = [service["image"] for service in COMPOSE["services"].values()]
    images += [CONTAINER["image"], *re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)]
    assert [image for image in images if not re.fullmatch(r"[\w/]+:[a-z]*[0-9][\w.-]*", image)] == []
    own = f"ragmemory:{__version__.rpartition('.')[0]}"
    assert {image for image in images if image.startswith("ragmemory")} == {own}
    assert f"--tag {own} " in DOCKERFILE


def test_the_extras_that_the_image_installs_exist() -> None:
    extras = re.findall(r"'\.\[([\w,]+)\]'", DOCKERFILE)[0].split(",")
    known = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]["optional-dependencies"]
    assert set(extras) <= known.keys()


def test_what_the_image_copies_exists_and_is_not_ignored() -> None:
    copied = [
        word
        for line in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE)
        for word in line.split()
    ]
    assert len(copied) > 4
    assert [word for word in copied if not (ROOT / word).exists()] == []
    ignored = read(DEPLOY / "Dockerfile.dockerignore").splitlines()
    assert ignored[0] == "*"
    assert [word for word in copied if f"!{word}" not in ignored] == []


def test_everything_runs_as_the_same_user_who_is_not_root() -> None:
    user = re.findall(r"^USER (\d+):(\d+)$", DOCKERFILE, re.MULTILINE)[0]
    context = POD["securityContext"]
    assert {*user, str(context["runAsUser"]), str(context["runAsGroup"])} == {user[0]}
    assert f"-o {user[0]} -g {user[0]} " in DOCKERFILE
    assert f"chown {user[0]} " in read(DEPLOY / "README.md")


def test_no_server_may_write_outside_of_its_volumes() -> None:
    service = COMPOSE["services"]["ragmemory-1"]
    assert (service["read_only"], service["tmpfs"]) == (True, ["/tmp"])
    assert CONTAINER["securityContext"]["readOnlyRootFilesystem"]
    places = {volume.split(":")[1] for volume in service["volumes"]}
    assert places | {"/tmp"} == {mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
    assert places == {str(COMPOSED.home.root)}


def test_one_service_builds_the_image_of_all_servers() -> None:
    # Two builds that write one tag at the same time may fail.
    first, *others = SERVERS.values()
    assert "build" in first
    assert [("build" in other, other["pull_policy"]) for other in others] == [(False, "never")]


def test_every_secret_and_volume_that_a_service_uses_is_declared() -> None:
    services = COMPOSE["services"].values()
    assert {name for service in services for name in service.get("secrets", ())} == {*COMPOSE["secrets"]}
    volumes = {volume.split(":")[0] for service in services for volume in service.get("volumes", ())}
    assert volumes - {"./Caddyfile"} == {*COMPOSE["volumes"]}
    files = {secret["file"] for secret in COMPOSE["secrets"].values()}
    named = re.findall(r"> (secrets/\w+)$", read(DEPLOY / "README.md"), re.MULTILINE)
    assert files == set(named)


def test_the_proxy_names_every_server_and_its_port() -> None:
    port = COMPOSED.tables["http"]["port"]
    [upstreams] = re.findall(r"^\t+to (.*)$", CADDYFILE, re.MULTILINE)
    assert upstreams.split() == [f"{name}:{port}" for name in SERVERS]
    assert CONTAINER["ports"][0]["containerPort"] == port
    assert f"EXPOSE {port}\n" in DOCKERFILE


def test_each_client_stays_with_one_server_which_alone_knows_its_tasks() -> None:
    assert re.findall(r"lb_policy (.*)", CADDYFILE) == ["ip_hash"]


def test_the_times_of_the_proxy_and_of_the_servers_fit() -> None:
    http = COMPOSED.tables["http"]
    assert seconds(re.findall(r"keepalive (\w+)", CADDYFILE)[0]) < http["idle_seconds"]
    grace = COMPOSE["services"]["ragmemory-1"]["stop_grace_period"]
    assert seconds(grace) > http["leave_seconds"] + 2


def test_the_database_has_a_minute_for_its_first_start() -> None:
    # Without it, three failed checks end `docker compose up`.
    assert seconds(COMPOSE["services"]["postgres"]["healthcheck"]["start_period"]) >= 60


def test_the_dashboard_shows_metrics_that_a_server_exports(tmp_path: Path) -> None:
    with http_memory(tmp_path) as server:
        text = httpx2.get(f"{server.root}/metrics", timeout=LONGEST_SECONDS).text
    exported = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    shown = set(re.findall(r"\bragmemory_\w+", read(DEPLOY / "grafana.json")))
    assert {name.removesuffix("_bucket") for name in shown} - exported == set()
    assert len(shown) > 6
