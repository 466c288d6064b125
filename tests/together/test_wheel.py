"""What users install: the wheel in an environment of its own, and a host's whole path through its server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from zipfile import ZipFile

import httpx2
import pytest

from ragmcp.protocol.eras import LEGACY_REVISIONS
from tests.support.http_memory import MODERN, HttpMemory, host, http_memory
from tests.support.processes import LONGEST_SECONDS

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module", autouse=True)
def _nothing_before_what_is_installed() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONPATH", raising=False)
        yield


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT))
    [wheel] = folder.glob("ragchat-*.whl")
    return wheel


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """The folder of the installed programs. Their dependencies are those of this environment."""
    folder = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", "--without-pip", str(folder / "venv"))
    python = folder / "venv" / SCRIPTS / Path(sys.executable).name
    run(*PIP, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel))
    packages = run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    # A path, and no site folder: what lies there as an editable install is not seen.
    Path(packages, "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    where = run(str(python), "-P", "-c", "import ragmemory; print(ragmemory.__file__)")
    assert where.startswith(packages)
    return folder / "venv" / SCRIPTS


@pytest.fixture(scope="module")
def server(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpMemory]:
    folder = tmp_path_factory.mktemp("memory")
    command = [str(programs / "ragmemory"), "--memory", str(folder / "memory.db"), "http"]
    with http_memory(folder, "--toolsets", "memory,documents,history,maintenance", command=command) as server:
        yield server


def test_the_wheel_holds_every_file_of_the_packages_and_no_other(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if not re.match(r"[^/]+\.(dist-info|data)/", name)}
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    folders = [ROOT / folder for folder in packages["targets"]["wheel"]["packages"]]
    files = {
        file.relative_to(folder.parent) for folder in folders for file in folder.rglob("*") if file.is_file()
    }
    assert held == {file.as_posix() for file in files if "__pycache__" not in file.parts}


@cache
def pythons() -> dict[int, str]:
    """The interpreters of this machine from 3.11 on, by their minor versions: on PATH, or those of pyenv.

    wordllama has no wheels for those from 3.14 on.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    folders = [Path(sys.executable).parent, *map(Path, os.environ["PATH"].split(os.pathsep))]
    folders += sorted(pyenv.glob("versions/*/bin"))
    found: dict[int, str] = {}
    for minor in range(11, 14):
        for folder in folders:
            python = str(folder / f"python3.{minor}")
            # What pyenv puts on PATH fails for a version that is not chosen.
            if minor not in found and Path(python).is_file() and does(python, "-c", "import ensurepip"):
                found[minor] = python
    return found


def does(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.full
@pytest.mark.skipif(os.name == "nt", reason="names of interpreters on POSIX")
@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_pipx_installs_what_answers_from_a_file(
    which: str, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = pythons()
    if which == "newest" and len(found) == 1:
        pytest.skip(f"There is only Python 3.{min(found)} here")
    minor = min(found) if which == "oldest" else max(found)
    for variable in ("HOME", "BIN_DIR", "MAN_DIR"):
        monkeypatch.setenv(f"PIPX_{variable}", str(tmp_path / variable))
    pipx = (sys.executable, "-m", "pipx", "install", "--backend", "uv", "--python", found[minor])
    # A wheel that would have to be compiled is an error.
    only = f"--only-binary=:all: --constraint {ROOT / 'constraints.txt'}"
    assert f"Python 3.{minor}" in run(*pipx, f"--pip-args={only}", str(wheel))
    monkeypatch.setenv("RAGCHAT_HOME", str(tmp_path / "home"))
    ragchat = str(tmp_path / "BIN_DIR" / "ragchat")
    (tmp_path / "tea.md").write_text("# Tea\n\nGreen tea is brewed at 75 degrees.\n", encoding="utf-8")
    assert run(ragchat, "--version").startswith("ragchat ")
    assert json.loads(run(ragchat, "inject", str(tmp_path / "tea.md"), "--json"))["added"] == 1
    answer = json.loads(run(ragchat, "ask", "--offline", "--json", "How hot is green tea brewed?"))
    assert "75 degrees" in answer["answer"]
    assert answer["grounded"]


def test_the_programs_say_their_versions(programs: Path) -> None:
    assert run(str(programs / "ragmemory"), "--version").startswith("ragmemory ")
    assert run(str(programs / "ragchat"), "--version").startswith("ragchat ")


def test_the_recipes_for_servers_are_installed(programs: Path) -> None:
    assert "web-search" in run(str(programs / "ragchat"), "mcp", "add", "--recipe")


def test_a_host_discovers_the_server(server: HttpMemory) -> None:
    described = httpx2.get(f"{server.root}/.well-known/mcp", trust_env=False, timeout=LONGEST_SECONDS).json()
    assert described["endpoints"]["mcp"] == server.url
    assert described["revisions"] == [MODERN, *LEGACY_REVISIONS]


# In this order: the first one finds the memory empty.
@pytest.mark.parametrize("revision", [MODERN, *LEGACY_REVISIONS])
def test_a_host_walks_the_whole_path(server: HttpMemory, revision: str) -> None:
    with host(server.url, revision) as speaker:
        begun = speaker.begin()
        if revision == MODERN:
            assert MODERN in begun["supportedVersions"]
            assert speaker.request("ping")["error"]["data"]["errorCode"] == "METHOD_NOT_FOUND"
            text = speaker.call("Query", query="foxes")["content"][0]["text"]
            assert text == "Memory is empty: nothing was injected yet."
        else:
            assert begun["protocolVersion"] == revision
            assert speaker.result("ping") == {}
        assert {"Inject", "Query"} < {tool["name"] for tool in speaker.result("tools/list")["tools"]}

        text = f"# Foxes\n\nFoxes of {revision} jump over dogs."
        injected = speaker.call("Inject", text=text, metadata={"uri": f"fox:{revision}"})
        assert injected["content"][0]["text"] == f"Added: fox:{revision} (1 chunk)"
        found = speaker.call("Query", query=f"Which foxes jump in {revision}?", top_k=1)
        assert f"fox:{revision}" in found["content"][0]["text"]
        listed = speaker.result("resources/list")["resources"]
        [mine] = [resource["uri"] for resource in listed if resource["name"] == f"fox:{revision}"]
        assert speaker.result("resources/read", {"uri": mine})["contents"][0]["text"] == text


@pytest.mark.parametrize("revision", [MODERN, *LEGACY_REVISIONS])
def test_every_form_of_error_says_what_it_is(server: HttpMemory, revision: str) -> None:
    missing = -32602 if revision == MODERN else -32002
    with host(server.url, revision) as speaker:
        speaker.begin()
        for method, params, code, word in (
            ("no/such", {}, -32601, "METHOD_NOT_FOUND"),
            ("tools/call", {"name": "Nothing", "arguments": {}}, -32602, "TOOL_NOT_FOUND"),
            ("tools/call", {"name": "Query", "arguments": []}, -32602, "INVALID_PARAMS"),
            ("resources/read", {"uri": "ragchat://document/0"}, missing, "RESOURCE_NOT_FOUND"),
        ):
            error = speaker.request(method, params)["error"]
            assert (error["code"], error["data"]["errorCode"]) == (code, word)
            assert error["data"]["requestId"] == speaker.last_id
        failed = speaker.call("get_document", document="nothing")
        assert failed["isError"]
        assert failed["content"][0]["text"].startswith("There is no document nothing in memory.")


def test_what_is_no_message_is_refused(server: HttpMemory) -> None:
    heads = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    with httpx2.Client(trust_env=False, timeout=LONGEST_SECONDS) as client:
        for body, more, status in (
            (b"{", {"mcp-protocol-version": MODERN}, 400),
            (b"{}", {"mcp-protocol-version": "1999-01-01"}, 400),
            (b"{}", {"content-type": "text/plain"}, 415),
            (b"{}", {"accept": "text/plain"}, 406),
            (b"{}", {"mcp-session-id": "unknown", "mcp-protocol-version": "2025-11-25"}, 404),
        ):
            answer = client.post(server.url, content=body, headers=heads | more)
            assert answer.status_code == status, answer.text
            assert answer.json()["error"]["data"]["errorCode"]
        assert client.put(server.url).status_code == 405


def test_the_old_way_begins_with_where_to_send(server: HttpMemory) -> None:
    with (
        httpx2.Client(trust_env=False, timeout=LONGEST_SECONDS) as client,
        client.stream("GET", f"{server.root}/sse", headers={"accept": "text/event-stream"}) as stream,
    ):
        lines = stream.iter_lines()
        assert next(lines) == "event: endpoint"
        target = next(lines).removeprefix("data: ")
        begin = {
            "protocolVersion": "2024-11-05",
            "clientInfo": {"name": "host", "version": "1"},
            "capabilities": {},
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begin}
        assert client.post(server.root + target, json=message).status_code == 202
        answer = next(line for line in lines if line.startswith("data: "))
        assert '"protocolVersion":"2024-11-05"' in answer


def test_the_bridge_is_installed_too(server: HttpMemory, programs: Path) -> None:
    done = subprocess.run(
        [str(programs / "ragmemory"), "bridge", server.url],
        input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
        capture_output=True,
        timeout=LONGEST_SECONDS,
        check=True,
    )
    assert b'"id":1' in done.stdout
