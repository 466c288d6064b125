"""Named memories on one server: what a token reaches, what its right allows, and changes of their file.

Covers `memories`, `memories_file` and `ragmemory.types.rights`.
"""

from __future__ import annotations

import json
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ragcommon.contract.documents import DOCUMENT_URIS
from ragconfig.settings import load_settings
from ragmcp.http.asgi import Endpoint
from ragmcp.http.limits import HttpLimits
from ragmemory.http.memories import NamedMemories, NamedMemory
from ragmemory.http.memories_file import MEMORY_FORM
from ragmemory.mcp.toolsets import ALL
from tests.support.http_memory import MODERN, PLAIN_HTTP, Host, host
from tests.support.processes import LONGEST_SECONDS, memory_environment, run_memory
from tests.support.team_memory import (
    RIGHTS,
    SERVERS_TOKEN,
    Team,
    listening,
    team_memory,
    token_of,
    usual_memories,
    write_file,
)

EVERYTHING = ("--toolsets", ",".join(ALL))
REVISIONS = (MODERN, "2025-11-25")


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """One for all tests that do not change its file."""
    folder = tmp_path_factory.mktemp("team")
    with team_memory(folder, "-v", *EVERYTHING, RAGCHAT_HTTP_PLAIN_FORM="true") as team:
        yield team


def raw_status(team: Team, method: str, target: str, token: str) -> int:
    """The status of a request whose target no client has made regular."""
    with socket.create_connection(("127.0.0.1", team.server.told["port"]), LONGEST_SECONDS) as client:
        head = f"{method} {target} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n"
        client.sendall(f"{head}content-type: application/json\r\nconnection: close\r\n\r\n".encode())
        with client.makefile("rb") as response:
            return int(response.readline().split()[1])


def refused(speaker: Host, method: str, **params: Any) -> Any:
    answer = speaker.request(method, params)
    assert "error" in answer, answer
    return answer["error"]


# What a token reaches


@pytest.mark.parametrize(
    "path",
    [
        *("plans", "plans/sse", "plans/messages", "plans/metrics", "plans/", "plans/nothing", "nowhere"),
        *("", "/plans", "Plans", "NOTES", "notes%00", "..%2fmcp%2fplans", "%2e%2e", "plans%2f..%2fnotes"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_token_opens_no_other_memory_by_whatever_path(team: Team, method: str, path: str) -> None:
    for right in RIGHTS:
        assert raw_status(team, method, f"/mcp/{path}", token_of("notes", right)) == 401


@pytest.mark.parametrize("path", ["notes/..%2fplans", "notes%2f..%2fplans", "notes/../plans", "notes//plans"])
def test_a_path_through_its_own_memory_leads_to_no_other(team: Team, path: str) -> None:
    assert raw_status(team, "POST", f"/mcp/{path}", token_of("notes", "admin")) == 404


@pytest.mark.parametrize(
    "path", ["/mcp", "/metrics", "/sse", "/messages", "/openapi.json", "/owner", "/nothing"]
)
def test_a_token_of_a_memory_opens_nothing_of_the_server(team: Team, path: str) -> None:
    assert raw_status(team, "GET", path, token_of("notes", "admin")) == 401


def test_the_token_of_the_server_opens_no_memory(team: Team) -> None:
    assert raw_status(team, "POST", "/mcp", SERVERS_TOKEN) == 400
    assert raw_status(team, "POST", "/mcp/notes", SERVERS_TOKEN) == 401


def test_an_unknown_memory_looks_like_a_wrong_token(team: Team) -> None:
    answers = [
        (response.status_code, response.json(), response.headers["www-authenticate"])
        for response in (
            team.get(team.url("notes"), "wrong"),
            team.get(team.url("nowhere"), "wrong"),
            team.get(team.url("nowhere"), token_of("notes", "read")),
        )
    ]
    assert answers[0] == answers[1] == answers[2]
    assert httpx2.get(team.url("notes"), **PLAIN_HTTP).status_code == 401


def test_another_scheme_or_two_tokens_are_refused(team: Team) -> None:
    token = token_of("notes", "read")
    for headers in (
        [("authorization", f"Basic {token}")],
        [("authorization", token)],
        [("authorization", f"Bearer {token} {token}")],
    ):
        assert httpx2.get(team.url("notes"), headers=headers, **PLAIN_HTTP).status_code == 401
    twice = [("authorization", f"Bearer {token}"), ("authorization", "Bearer x")]
    assert httpx2.get(team.url("notes"), headers=twice, **PLAIN_HTTP).status_code == 400


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_journal_names_the_owner_of_a_token_not_the_address_that_a_proxy_shares(
    tmp_path: Path, revision: str
) -> None:
    with team_memory(tmp_path, *EVERYTHING) as team:
        for uri, right in (("a", "write"), ("b", "also")):
            with team.host("notes", right, revision) as speaker:
                speaker.call("Inject", text=f"Text of {uri}.", metadata={"uri": uri})
                entries = speaker.call("list_journal")["structuredContent"]["entries"]
        origins = {entry["uri"]: entry["origin"] for entry in entries}
        assert (origins["a"]["host"], origins["b"]["host"]) == ("owner-1", "owner-3")
        assert origins["a"]["session"] != origins["b"]["session"]


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_one_memory_holds_is_in_no_other(tmp_path: Path, revision: str) -> None:
    text = "The wombat digs at midnight."
    with team_memory(tmp_path, "-v", *EVERYTHING) as team:
        (tmp_path / "files" / "quokka.md").write_text("The quokka smiles.", encoding="utf-8")
        with team.host("notes", "admin", revision) as ours, team.host("plans", "admin", revision) as theirs:
            done = ours.call("Inject", text=text, metadata={"uri": "wombat.md"})["structuredContent"]
            resource = f"memory://document/{done['document_id']}"
            [listed] = ours.result("resources/list")["resources"]
            resource = listed["uri"]
            assert ours.result("resources/read", {"uri": resource})["contents"][0]["text"] == text
            job = ours.call("start_ingestion", path=str(tmp_path / "files"))["structuredContent"]["job_id"]
            ours.call("get_ingestion_status", job_id=job, wait_seconds=60)

            assert theirs.result("resources/list")["resources"] == []
            refused(theirs, "resources/read", uri=resource)
            assert theirs.call("get_document", document=done["document_id"])["isError"]
            assert theirs.call("get_ingestion_status", job_id=job)["isError"]
            assert theirs.call("list_ingestions")["structuredContent"]["ingestions"] == []
            assert theirs.call("list_journal")["structuredContent"]["entries"] == []
            assert theirs.call("list_sources")["structuredContent"]["sources"] == []
            assert theirs.call("Query", query="wombat")["structuredContent"]["empty"]
            assert theirs.call("undo_writes")["isError"]
            reference = {"type": "ref/resource", "uri": "memory://document/{id}"}
            templates = theirs.result("resources/templates/list")["resourceTemplates"]
            reference["uri"] = templates[0]["uriTemplate"]
            argument = {"name": "id", "value": ""}
            completed = theirs.result("completion/complete", {"ref": reference, "argument": argument})
            assert completed["completion"]["values"] == []
            assert ours.call("Query", query="wombat")["structuredContent"]["hits"][0]["text"] == text
        ours_metrics = team.get(f"{team.url('notes')}/metrics", token_of("notes", "read")).text
        metrics = team.get(f"{team.url('plans')}/metrics", token_of("plans", "read")).text
        servers = team.get(f"{team.server.root}/metrics", SERVERS_TOKEN).text
        assert "ragmemory_documents 2.0" in ours_metrics
        assert 'tool="Inject"' in ours_metrics
        for other in (metrics, servers):
            assert "ragmemory_documents 0.0" in other
            assert 'tool="Inject"' not in other
            assert "notes" not in other
    # They are closed with the server.
    assert not [*tmp_path.glob("*-wal")]
    for word in (b"wombat", b"quokka"):
        holders = {path.name for path in tmp_path.glob("*.db") if word in path.read_bytes()}
        assert holders == {"notes.db"}
    assert not re.search("wombat|midnight|quokka|secret-for", team.log)


def test_the_changes_of_one_memory_are_told_to_its_own_clients_only(team: Team) -> None:
    def put(speaker: Host, text: str) -> str:
        metadata = {"uri": f"changes-of-{speaker.url.rpartition('/')[2]}.md"}
        done = speaker.call("Inject", text=text, metadata=metadata)["structuredContent"]
        return f"{DOCUMENT_URIS}{done['document_id']}"

    with team.host("notes") as ours, team.host("plans") as theirs, team.host("plans", "read") as reader:
        uris = [put(ours, "First."), put(theirs, "First.")]
        with listening(reader, resourceSubscriptions=uris) as lines:
            put(ours, "Second.")
            put(theirs, "Second.")
            # The first change that they see is their own.
            seen = next(json.loads(line[5:]) for line in lines if line.startswith("data:"))
    assert seen["params"]["uri"] == uris[1]


def test_a_session_of_one_memory_right_or_token_is_unknown_to_all_others(team: Team) -> None:
    ping = {"jsonrpc": "2.0", "id": 5, "method": "ping"}
    with team.host("notes", "write", "2025-11-25") as ours:
        assert ours.post(ping).status_code == 200
        for memory, owner in (("plans", "write"), ("notes", "read"), ("notes", "admin"), ("notes", "also")):
            with host(team.url(memory), "2025-11-25", token_of(memory, owner)) as thief:
                thief.heads = ours.heads
                assert thief.post(ping).status_code == 404
                assert thief.client.delete(thief.url, headers=thief.heads).status_code == 404
                listen = {**thief.heads, "accept": "text/event-stream"}
                assert thief.client.get(thief.url, headers=listen).status_code == 404
        assert ours.post(ping).status_code == 200


def test_messages_for_the_older_transport_reach_their_own_session_only(team: Team) -> None:
    with host(f"{team.url('notes')}/sse", token=token_of("notes", "write")) as ours:
        headers = {"accept": "text/event-stream"}
        with ours.client.stream("GET", ours.url, headers=headers) as stream:
            lines = stream.iter_lines()
            target = next(line for line in lines if line.startswith("data:")).removeprefix("data:").strip()
            assert target.startswith("/mcp/notes/messages?session_id=")
            ping = {"jsonrpc": "2.0", "id": 5, "method": "ping"}
            for memory, owner, status in (
                *(("plans", "write", 404), ("notes", "read", 404), ("notes", "also", 404)),
                ("", "", 401),
            ):
                path = target.replace("notes", memory) if memory else target.replace("/mcp/notes", "")
                token = token_of(memory or "notes", owner or "write")
                with host(f"{team.server.root}{path}", token=token) as thief:
                    assert thief.client.post(thief.url, json=ping).status_code == status
            assert ours.client.post(f"{team.server.root}{target}", json=ping).status_code == 202
            assert any('"id":5' in line for line in lines)


def test_a_task_of_one_memory_is_unknown_to_all_others(team: Team) -> None:
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    }
    backup = {"path": str(team.file.parent / "files" / "copy.db"), "force": True}
    params = {"name": "backup_memory", "arguments": backup, "_meta": meta}
    with team.host("notes", "admin") as ours:
        task = ours.result("tools/call", params)["taskId"]
        assert ours.result("tasks/get", {"taskId": task, "_meta": meta})["taskId"] == task
        for memory, right in (("plans", "admin"), ("notes", "write")):
            with team.host(memory, right) as thief:
                for method in ("tasks/get", "tasks/cancel"):
                    error = refused(thief, method, taskId=task, _meta=meta)
                    assert "there is no task" in error["message"]


def test_the_plain_form_has_the_same_tokens_and_rights(team: Team) -> None:
    def sent(memory: str, token: str, method: str, **params: Any) -> httpx2.Response:
        with host(team.url(memory), token=token) as speaker:
            return speaker.client.post(speaker.url, json={"method": method, "params": params})

    assert sent("notes", token_of("notes", "read"), "Query", query="x").status_code == 200
    assert sent("plans", token_of("notes", "read"), "Query", query="x").status_code == 401
    inject = sent("notes", token_of("notes", "read"), "Inject", text="x")
    assert (inject.status_code, inject.json()["error"]["data"]["errorCode"]) == (403, "INSUFFICIENT_SCOPE")


def test_ragchat_uses_a_named_memory_by_its_address(team: Team, tmp_path: Path) -> None:
    def ragchat(*words: str, token: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ragchat", "--server", team.url("notes"), *words],
            capture_output=True,
            text=True,
            input="The numbat eats termites.",
            env=memory_environment(tmp_path, RAGMEMORY_TOKEN=token),
            timeout=LONGEST_SECONDS,
            check=False,
        )

    inject = ("inject", "-", "--uri", "numbat.md")
    assert ragchat(*inject, token=token_of("notes", "write")).returncode == 0
    asked = ragchat("query", "numbat", "--json", token=token_of("notes", "read"))
    assert json.loads(asked.stdout)["hits"][0]["uri"] == "numbat.md"
    for token in (token_of("plans", "admin"), token_of("notes", "read")):
        refused = ragchat(*inject, token=token)
        assert refused.returncode == 1
        assert "Traceback" not in refused.stderr


def test_two_schemas_of_one_database_are_two_memories(tmp_path: Path, database: str) -> None:
    import psycopg

    memories = usual_memories(tmp_path)
    schemas = {name: f"{name}_{secrets.token_hex(6)}" for name in memories}
    for name, memory in memories.items():
        del memory["path"]
        memory["url"] = f"{database}&schema={schemas[name]}"
    with (
        team_memory(tmp_path, memories=memories) as team,
        team.host("notes") as ours,
        team.host("plans") as theirs,
    ):
        ours.call("Inject", text="The wombat digs.")
        assert theirs.call("Query", query="wombat")["structuredContent"]["empty"]
        assert ours.call("Query", query="wombat")["structuredContent"]["hits"]
    with psycopg.connect(database) as connection:
        counted = [
            connection.execute(f'SELECT count(*) FROM "{schemas[name]}".documents').fetchone()
            for name in ("notes", "plans")
        ]
    assert counted == [(1,), (0,)]


# What a right allows

WRITES = {
    *("Inject", "ingest_document", "delete_document", "create_document", "insert_block", "update_block"),
    *("delete_block", "restore_version", "undo_writes", "import_documents"),
}
ADMINISTERS = {
    *("start_ingestion", "cancel_ingestion", "add_sources", "remove_source", "sync_sources", "build_index"),
    *("repair_memory", "prepare_embedder", "reembed_memory", "discard_embeddings", "backup_memory"),
}


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_tool_beyond_the_right_of_a_token_is_not_listed_and_refused(team: Team, revision: str) -> None:
    listed = {}
    for right in RIGHTS:
        with team.host("notes", right, revision) as speaker:
            listed[right] = {tool["name"] for tool in speaker.result("tools/list")["tools"]}
    assert listed["admin"] - listed["write"] == ADMINISTERS
    assert listed["write"] - listed["read"] == WRITES
    for right, tool, needed in (
        ("read", "Inject", "write"),
        ("read", "backup_memory", "admin"),
        ("write", "start_ingestion", "admin"),
    ):
        with team.host("notes", right, revision) as speaker:
            params = {"name": tool, "arguments": {"text": "x"}}
            response = speaker.post({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params})
            assert response.status_code == 403
            challenge = f'Bearer error="insufficient_scope", scope="{needed}"'
            assert response.headers["www-authenticate"] == challenge
            assert response.json()["id"] == 9
            assert response.json()["error"]["data"]["errorCode"] == "INSUFFICIENT_SCOPE"
            unknown = refused(speaker, "tools/call", name="Nothing", arguments={})
            assert unknown["data"]["errorCode"] == "TOOL_NOT_FOUND"


def test_only_an_administrator_changes_files_of_the_server(team: Team) -> None:
    file = team.file.parent / "files" / "plan.md"
    file.write_text("# Plan\n\nFirst step.\n", encoding="utf-8")
    with team.host("plans", "admin") as admin, team.host("plans", "write") as writer:
        job = admin.call("start_ingestion", path=str(file))["structuredContent"]["job_id"]
        admin.call("get_ingestion_status", job_id=job, wait_seconds=60)
        found = admin.call("search_blocks", document=file.as_uri())["structuredContent"]
        block = next(one for one in found["blocks"] if "First" in one["text"])
        edit = {
            "document": file.as_uri(),
            "block": block["block_id"],
            "content": "Second step.",
            "version": block["version"],
            "write_back": True,
        }
        error = refused(writer, "tools/call", name="update_block", arguments=edit)
        assert error["data"]["details"] == {"what": "write_back", "scope": "admin", "metadata": ""}
        assert "First step." in file.read_text(encoding="utf-8")
        admin.call("update_block", **edit)
        assert "Second step." in file.read_text(encoding="utf-8")


def test_without_roots_of_its_own_a_memory_reads_no_file_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("A secret.", encoding="utf-8")
    memories = usual_memories(tmp_path)
    del memories["notes"]["roots"]
    with (
        team_memory(tmp_path, *EVERYTHING, "--root", str(tmp_path), memories=memories) as team,
        team.host("notes", "admin") as admin,
    ):
        result = admin.call("start_ingestion", path=str(tmp_path / "secret.md"))
        assert result["isError"]
        assert result["structuredContent"]["errorCode"] == "PATH_NOT_ALLOWED"


# Changes of the file


def test_a_token_that_is_taken_away_ends_at_once_also_where_a_stream_is_open(tmp_path: Path) -> None:
    with team_memory(tmp_path) as team:
        with (
            team.host("notes", "read") as reader,
            team.host("notes", "write") as writer,
            listening(reader, resourcesListChanged=True) as ended,
            listening(writer, resourcesListChanged=True) as kept,
        ):
            del team.memories["notes"]["tokens"][token_of("notes", "read")]
            team.write_file()
            # The stream ends, as it should.
            assert [line for line in ended if line.startswith("data")] == []
            assert team.until_status("notes", token_of("notes", "read"), 401)
            writer.call("Inject", text="Still here.")
            assert any("list_changed" in line for line in kept)
        assert team.log == ""


def test_a_request_whose_token_is_taken_away_meanwhile_is_refused(tmp_path: Path) -> None:
    with team_memory(tmp_path) as team:
        token = token_of("notes", "write")
        head = f"POST /mcp/notes HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n"
        address = ("127.0.0.1", team.server.told["port"])
        with socket.create_connection(address, LONGEST_SECONDS) as client:
            # The rest of the body never comes.
            client.sendall(f"{head}content-type: application/json\r\ncontent-length: 9\r\n".encode())
            client.sendall(b"expect: 100-continue\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 100")
            del team.memories["notes"]["tokens"][token]
            team.write_file()
            with client.makefile("rb") as response:
                assert b" 401 " in b"".join(iter(response.readline, b"\r\n"))
        assert team.log == ""


@pytest.mark.parametrize("path", ["", "/sse"])
def test_a_changed_right_counts_also_where_an_older_stream_is_open(tmp_path: Path, path: str) -> None:
    with team_memory(tmp_path) as team, team.host("notes", "write", "2025-11-25") as writer:
        headers = {**writer.heads, "accept": "text/event-stream"} if not path else {}
        with writer.client.stream("GET", f"{writer.url}{path}", headers=headers) as stream:
            assert stream.status_code == 200
            lines = stream.iter_lines()
            next(lines)
            team.memories["notes"]["tokens"][token_of("notes", "write")] = "read"
            team.write_file()
            assert "data: {" not in [*lines]
        assert team.until_status("notes", token_of("notes", "write"), 200)
        with team.host("notes", "write") as reader:
            assert [tool["name"] for tool in reader.result("tools/list")["tools"]] == ["Query"]
        assert team.log == ""


def test_a_memory_that_is_removed_closes_and_one_that_is_added_opens(tmp_path: Path) -> None:
    with team_memory(tmp_path) as team:
        with team.host("notes") as speaker, listening(speaker, resourcesListChanged=True) as lines:
            speaker.call("Inject", text="Foxes jump.")
            team.memories["recipes"] = team.memories.pop("notes")
            team.write_file()
            assert any('"result"' in line or not line for line in lines)
        token = token_of("notes", "write")
        assert team.until_status("notes", token, 401)
        team.until_status("recipes", token, 200)
        with host(team.url("recipes"), token=token) as speaker:  # It has the same file.
            assert speaker.call("Query", query="foxes")["structuredContent"]["hits"]
        assert team.log == ""


async def test_a_memory_that_is_removed_while_the_server_stops_closes_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(None, {}, {"RAGCHAT_HOME": str(tmp_path)}, tmp_path)
    write_file(file := tmp_path / "memories.toml", usual_memories(tmp_path))
    closed = []
    run = NamedMemory.run

    async def runs(memory: NamedMemory) -> None:
        await run(memory)  # Raises if it is cancelled.
        closed.append(memory)

    monkeypatch.setattr(NamedMemory, "run", runs)
    limits = settings.table("http", HttpLimits)
    memories = NamedMemories(settings, file, limits, Endpoint, "http://127.0.0.1", None)
    async with memories.serving():
        memory = memories._find("notes")
        await memory.ready.wait()
        memories._apply({})
    assert closed == [memory]


def test_a_broken_file_changes_nothing_and_is_named_in_the_log_once(tmp_path: Path) -> None:
    with team_memory(tmp_path) as team:
        for broken in ("[notes", '[notes]\npath = "a.db"\nsecret = "x"\n'):
            before = team.log.count("\n")
            team.file.write_text(broken, encoding="utf-8")
            while team.log.count("\n") == before:
                team.until_status("notes", token_of("notes", "read"), 200)
        assert f"The file of memories {team.file} cannot be read: it is not valid:" in team.log
        team.file.unlink()
        while team.log.count("\n") == 2:
            team.until_status("notes", token_of("notes", "read"), 200)
        assert team.log.count("stay as they were") == 3
        team.memories["notes"]["tokens"] = {}
        team.write_file()
        team.until_status("notes", token_of("notes", "read"), 401)


def test_a_file_that_was_emptied_refuses_all_tokens_and_is_named_in_the_log(tmp_path: Path) -> None:
    with team_memory(tmp_path) as team:
        team.file.write_text("", encoding="utf-8")
        team.until_status("notes", token_of("notes", "read"), 401)
        assert f"The file of memories {team.file} names none: all tokens are refused." in team.log
        team.write_file()
        team.until_status("notes", token_of("notes", "read"), 200)


NOTES = '[notes]\npath = "notes.db"\n'
TOKENS = f'[notes.tokens]\nanne = {{ right = "read", sha256 = "{"0" * 64}" }}\n'


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[notes]\n", "notes is not usable: it needs either a path or a url"),
        (NOTES + 'url = "postgresql:///x"\n', "it needs either a path or a url"),
        ('[notes]\nurl = "mysql://db/x"\n', "store.url is not usable: it must begin with postgresql://"),
        ('[notes]\nurl = "postgresql://me:secret@db/x"\n', "it has a password, which belongs in PGPASSWORD"),
        ('[notes]\npath = "~nobody-here/x.db"\n', "no such home folder"),
        (
            NOTES.replace("notes]", "Notes]"),
            "'Notes' is not the name of a memory: it has up to 64 of a-z, 0-9, - and _, the first",
        ),
        (
            NOTES + TOKENS.replace("anne", '"an ne"'),
            "it is not valid: 'an ne' in [notes.tokens] is not the name of an owner: it has up to 64 letters",
        ),
        (
            NOTES + TOKENS.replace("read", "all"),
            "it is not valid: anne in [notes.tokens] has the unknown right 'all'; "
            "it needs right (read, write, admin) and sha256 (64 digits, 0-9 and a-f).",
        ),
        (
            NOTES + TOKENS.replace("00", "0"),
            "it is not valid: anne in [notes.tokens] has a malformed sha256; it needs",
        ),
        (NOTES + TOKENS.partition(",")[0] + "}", "anne in [notes.tokens] has no sha256; it needs"),
        (NOTES + "roots = 3", "[notes] has a value of the wrong type in roots; it may have"),
        ("notes = 3", "[notes] is not usable: it must be a table, not a whole number; it may have"),
        (
            NOTES + TOKENS + (NOTES + TOKENS).replace("notes", "plans"),
            "notes and plans have a token in common",
        ),
        (NOTES + 'tocens = ""\n', "[notes] has an unknown key tocens; it may have path, url, roots, tokens."),
        (None, "no such file or directory"),
    ],
    ids=str,
)
def test_a_file_that_cannot_be_used_at_the_start_is_a_sentence(
    tmp_path: Path, content: str | None, sentence: str
) -> None:
    file = tmp_path / "memories.toml"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    done = run_memory(tmp_path, "http", "--port", "0", RAGCHAT_HTTP_MEMORIES=str(file))
    assert (done.returncode, done.stdout) == (1, "")
    assert sentence in done.stderr.splitlines()[-1]
    assert "secret" not in done.stderr
    assert "Traceback" not in done.stderr


def test_with_memories_for_others_the_server_has_a_token_of_its_own(tmp_path: Path) -> None:
    with team_memory(tmp_path, RAGMEMORY_TOKEN="") as team:
        assert team.server.told["authorization"] == "bearer"
        assert httpx2.get(f"{team.server.root}/metrics", **PLAIN_HTTP).status_code == 401


# The command that makes tokens


def test_a_token_is_made_shown_once_and_honoured_by_a_running_server(tmp_path: Path) -> None:
    with team_memory(tmp_path) as team:
        kept = "# Who may read the notes.\n" + team.file.read_text(encoding="utf-8")
        team.file.write_text(kept, encoding="utf-8")
        named = {"RAGCHAT_HTTP_MEMORIES": str(team.file)}
        made = run_memory(tmp_path, "token", "notes", "anne", "--right", "admin", **named)
        assert (made.returncode, made.stderr) == (0, "")
        token = made.stdout.strip()
        assert len(token) >= 43
        assert token not in team.file.read_text(encoding="utf-8")
        team.until_status("notes", token, 200)
        team.until_status("notes", token_of("notes", "read"), 200)
        # The next one takes its place.
        other = json.loads(run_memory(tmp_path, "token", "notes", "anne", "--json", **named).stdout)
        assert (other["memory"], other["owner"], other["right"]) == ("notes", "anne", "read")
        team.until_status("notes", token, 401)
        team.until_status("notes", other["token"], 200)
        text = team.file.read_text(encoding="utf-8")
        assert text.startswith("# Who may read the notes.\n")
        assert text.count("anne") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="a folder is locked")
def test_tokens_that_are_made_at_once_are_all_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "memories.toml"
    file.write_text(NOTES, encoding="utf-8")

    def make(owner: str) -> int:
        return run_memory(tmp_path, "token", "notes", owner, RAGCHAT_HTTP_MEMORIES=str(file)).returncode

    owners = [f"owner-{number}" for number in range(8)]
    with ThreadPoolExecutor() as threads:
        assert not any(threads.map(make, owners))
    text = file.read_text(encoding="utf-8")
    assert all(f"{owner} = " in text for owner in owners)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX file modes")
def test_a_new_token_leaves_the_mode_of_the_file_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "memories.toml"
    file.write_text(NOTES, encoding="utf-8")
    file.chmod(0o640)
    assert run_memory(tmp_path, "token", "notes", "anne", RAGCHAT_HTTP_MEMORIES=str(file)).returncode == 0
    assert file.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("content", "arguments", "sentence"),
    [
        (NOTES, ["plans", "anne"], "There is no memory 'plans' in "),
        (
            NOTES,
            ["a b", "anne"],
            f"There is no memory 'a b' in {{file}}. It cannot be the name of one: {MEMORY_FORM}.",
        ),
        (NOTES, ["notes", "an ne"], "The token of 'an ne' cannot be put into "),
        (NOTES + "tokens = {}\n", ["notes", "anne"], "The token of 'anne' cannot be put into "),
        (
            NOTES + TOKENS.replace("tokens]", "tokens] # people"),
            ["notes", "anne"],
            "The token of 'anne' cannot be put into ",
        ),
        ("", ["notes", "anne"], "There is no memory 'notes' in "),
        (None, ["notes", "anne"], "http.memories is not usable: it names no file of memories"),
    ],
    ids=str,
)
def test_a_token_that_cannot_be_made_is_a_sentence(
    tmp_path: Path, content: str | None, arguments: list[str], sentence: str
) -> None:
    file = tmp_path / "memories.toml"
    file.write_text(content or "", encoding="utf-8")
    named = {} if content is None else {"RAGCHAT_HTTP_MEMORIES": str(file)}
    done = run_memory(tmp_path, "token", *arguments, **named, RAGCHAT_LOG_FORM="json")
    assert (done.returncode, done.stdout) == (1, "")
    # A person reads it: it is no line of a log.
    assert done.stderr.startswith(sentence.replace("{file}", str(file)))
    assert "sha256" not in done.stderr  # The token of that digest is not shown.
    assert file.read_text(encoding="utf-8") == (content or "")
