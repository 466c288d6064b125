"""Memory through a server that runs already, found or named. With real servers and real processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ragchat import __version__
from ragchat.errors import FilesElsewhere, MemoryRefused, MemoryUnavailable
from ragchat.ingest.loading import load_files
from ragchat.servers.memory import running
from ragchat.servers.memory.running import PROOF_SECONDS, is_proved
from ragchat.servers.memory.server import find_memory_server, open_memory
from ragcommon.server_note import OWNER_PATH, Note, find_note, make_note
from ragconfig.errors import SettingsError
from ragconfig.settings import Settings, fingerprint, load_settings
from tests.support.http_memory import HttpMemory, http_memory
from tests.support.ports import free_port
from tests.support.processes import LONGEST_SECONDS, memory_command
from tests.support.team_memory import team_memory, token_of

TOKEN = "correct-horse"


@pytest.fixture(autouse=True)
def _longer_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine answers late."""
    monkeypatch.setattr(running, "PROOF_SECONDS", LONGEST_SECONDS)


def settings_in(folder: Path, **flags: object) -> Settings:
    """Those of a client of the memory that `http_memory` serves in `folder`."""
    dotted = {name.replace("__", "."): value for name, value in flags.items()}
    path = {} if "memory_server.url" in dotted else {"memory.path": str(folder / "memory.db")}
    return load_settings(None, path | dotted, {"RAGCHAT_HOME": str(folder / "home")}, folder)


def note_for(settings: Settings) -> Note | None:
    """The note of a server that would answer as one of our own."""
    return find_note(settings.memory_path, fingerprint(settings, __version__), settings.home.state)


def stranger_to(server: HttpMemory, folder: Path, **flags: object) -> Settings:
    """Those of a client that names the server and is another user's: it cannot read the note."""
    return settings_in(folder / "stranger", memory_server__url=server.url, **flags)


def end(server: HttpMemory) -> None:
    server.process.kill()
    server.process.wait(LONGEST_SECONDS)


@contextmanager
def impostor(answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """The address of a program that answers all requests alike (b"": not at all), and what it received."""
    received: list[bytes] = []
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    received.append(connection.recv(1 << 16))
                    if answer:
                        with suppress(
                            ConnectionError
                        ):  # Who asks does not read too long an answer to its end.
                            connection.sendall(answer)
                    else:
                        ended.wait(LONGEST_SECONDS)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", received
        finally:
            ended.set()
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


# Found


async def test_a_server_of_this_memory_is_found_and_used_for_everything(tmp_path: Path) -> None:
    with http_memory(tmp_path) as server:
        async with open_memory(settings_in(tmp_path)) as memory:
            assert memory.url == server.root
            await memory.inject("Green tea is brewed at 75 degrees.", {"uri": "note:tea"})
            assert [hit.uri for hit in (await memory.query("tea")).hits] == ["note:tea"]
            assert (await memory.stats()).documents == (await memory.documents()).total == 1
            [entry] = await memory.journal()
            assert entry.origin.client == "ragchat"
            assert await memory.prompts()
    async with open_memory(settings_in(tmp_path)) as memory:
        assert memory.url == ""
        assert (await memory.stats()).documents == 1


@pytest.mark.full
async def test_files_that_the_user_names_are_loaded_beside_a_server_that_may_read_none(
    tmp_path: Path,
) -> None:
    (tmp_path / "tea.md").write_text("Green tea is brewed at 75 degrees.\n", "utf-8")
    with http_memory(tmp_path):
        async with open_memory(settings_in(tmp_path)) as memory:
            report = await load_files(memory, [tmp_path / "tea.md"])
            assert report.count("added") == 1
            assert len((await memory.query("tea")).hits) == 1
            copied = await memory.backup(str(tmp_path / "copy.db"))
            assert copied.documents == 1


async def test_a_source_beside_a_server_that_may_read_no_files_is_readable(tmp_path: Path) -> None:
    (notes := tmp_path / "notes").mkdir()
    async with open_memory(settings_in(tmp_path)) as memory:
        await memory.add_sources([str(notes)])
        with http_memory(tmp_path) as server:
            async with open_memory(settings_in(tmp_path)) as beside:
                assert beside.url == server.root
                assert [source.problem for source in await beside.sources()] == [""]


@pytest.mark.full
async def test_a_restored_file_is_told_of_the_next_sync_beside_a_server_that_may_read_none(
    tmp_path: Path,
) -> None:
    (file := tmp_path / "notes" / "tea.md").parent.mkdir()
    with http_memory(tmp_path):
        async with open_memory(settings_in(tmp_path)) as memory:
            await memory.add_sources([str(file.parent)])
            for degrees in (75, 80):
                file.write_text(f"Green tea is brewed at {degrees} degrees.\n", "utf-8")
                await load_files(memory, [file])
            assert (await memory.restore(file.as_uri(), None)).next_sync == "updated"


async def test_a_server_that_needs_a_token_is_found_without_one(tmp_path: Path) -> None:
    with http_memory(tmp_path, RAGMEMORY_TOKEN=TOKEN) as server:
        assert server.told["authorization"] == "bearer"
        async with open_memory(settings_in(tmp_path)) as memory:
            assert memory.url == server.root
            assert (await memory.stats()).documents == 0


@pytest.mark.full
async def test_a_server_that_others_can_reach_is_found_at_this_machine(tmp_path: Path) -> None:
    with http_memory(tmp_path, "--host", "0.0.0.0") as server:
        async with open_memory(settings_in(tmp_path)) as memory:
            assert memory.url == f"http://127.0.0.1:{server.told['port']}"
            assert (await memory.stats()).documents == 0


@pytest.mark.full
async def test_a_server_that_only_reads_or_serves_another_memory_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    home = {"RAGCHAT_HOME": str(tmp_path / "home")}
    with http_memory(tmp_path, "--read-only"), http_memory(tmp_path / "other", **home):
        assert note_for(settings_in(tmp_path)) is None
        async with open_memory(settings_in(tmp_path)) as memory:
            assert memory.url == ""


@pytest.mark.full
async def test_a_server_that_was_killed_is_passed_over(tmp_path: Path) -> None:
    with http_memory(tmp_path) as server:
        end(server)
    assert [*(tmp_path / "home" / "state" / "servers").iterdir()]
    async with open_memory(settings_in(tmp_path)) as memory:
        assert memory.url == ""
        assert (await memory.stats()).documents == 0


@pytest.mark.parametrize(
    "body",
    [
        b'{"status": "ok", "proof": "0000"}',
        b'{"status": "ok"}',
        b'{"status": "\xff"}',
        b"[]",
        b"",
        b"\xff" * 100_000,
    ],
)
def test_another_program_at_its_address_gets_a_challenge_and_nothing_else(body: bytes) -> None:
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    with impostor(answer) as (url, received):
        assert not is_proved(Note(url, "/m.db", "", "the-key"), LONGEST_SECONDS)
    [request] = received
    assert request.startswith(b"GET /health?challenge=")
    assert b"the-key" not in request
    assert b"uthorization" not in request


def test_another_instance_at_its_address_does_not_prove_to_be_it(tmp_path: Path) -> None:
    with http_memory(tmp_path) as server:
        assert not is_proved(make_note(server.root, settings_in(tmp_path).memory_path, ""), LONGEST_SECONDS)
        note = note_for(settings_in(tmp_path))
        assert note is not None
        assert is_proved(note, LONGEST_SECONDS)
        assert not is_proved(Note(note.url, "/another.db", note.settings, note.key), LONGEST_SECONDS)


def test_a_server_that_does_not_answer_costs_a_bounded_time() -> None:
    with impostor(b"") as (url, received):
        started = time.monotonic()
        assert not is_proved(Note(url, "/m.db", "", "key"), PROOF_SECONDS)
        assert PROOF_SECONDS / 2 < time.monotonic() - started < LONGEST_SECONDS
    assert len(received) == 1


@pytest.mark.full
async def test_when_a_found_server_dies_one_of_our_own_goes_on(tmp_path: Path) -> None:
    with http_memory(tmp_path) as server:
        async with open_memory(settings_in(tmp_path)) as memory:
            await memory.inject("Green tea is brewed at 75 degrees.", {"uri": "note:tea"})
            end(server)
            assert [hit.uri for hit in (await memory.query("tea")).hits] == ["note:tea"]
            await memory.forget("note:tea")
            assert (await memory.stats()).documents == 0


@pytest.mark.full
async def test_the_owners_address_is_closed_to_all_who_lack_the_key(tmp_path: Path) -> None:
    import httpx2

    with http_memory(tmp_path, RAGMEMORY_TOKEN=TOKEN) as server:
        for token in ("", TOKEN, "wrong"):
            headers = {"authorization": f"Bearer {token}"} if token else {}
            refused = httpx2.post(server.root + OWNER_PATH, headers=headers, timeout=LONGEST_SECONDS)
            assert refused.status_code == 401


# Named


@pytest.mark.full
async def test_a_named_server_offers_what_its_settings_say(tmp_path: Path) -> None:
    with http_memory(tmp_path) as server:
        async with open_memory(stranger_to(server, tmp_path)) as memory:
            assert memory.url == server.root
            await memory.inject("Green tea is brewed at 75 degrees.")
            assert len((await memory.query("tea")).hits) == 1
            with pytest.raises(MemoryRefused, match="get_memory_stats") as caught:
                await memory.stats()
            assert caught.value.hint == 'The setting memory.toolsets of that server must have "maintenance".'
    with http_memory(tmp_path, "--toolsets", "memory,maintenance") as server:
        async with open_memory(stranger_to(server, tmp_path)) as memory:
            assert (await memory.stats()).documents == 1


@pytest.mark.full
async def test_a_token_without_the_right_for_a_tool_does_not_make_memory_unavailable(tmp_path: Path) -> None:
    (token := tmp_path / "token").touch(0o600)
    token.write_text(token_of("notes", "write"), "utf-8")
    with team_memory(tmp_path, "--toolsets", "memory,ingestion") as team:
        flags = {"memory_server__url": team.url("notes"), "memory_server__token_file": str(token)}
        async with open_memory(settings_in(tmp_path, **flags)) as memory:
            with pytest.raises(MemoryRefused, match="start_ingestion, which needs the right") as caught:
                await memory.start_ingestion([str(tmp_path)])
    assert caught.value.hint.startswith("Use one with that right")


@pytest.mark.parametrize("address", ["{}", "{}/", "{}/mcp"])
@pytest.mark.full
async def test_a_named_server_of_ones_own_offers_everything(tmp_path: Path, address: str) -> None:
    with http_memory(tmp_path, RAGMEMORY_TOKEN=TOKEN) as server:
        url = address.format(server.root.replace("127.0.0.1", "localhost"))
        async with open_memory(settings_in(tmp_path, memory_server__url=url)) as memory:
            assert (await memory.stats()).path == str(tmp_path / "memory.db")


async def test_a_named_server_reads_files_of_its_roots_only(tmp_path: Path) -> None:
    for folder in ("open", "closed"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "tea.md").write_text("Green tea is brewed at 75 degrees.\n", "utf-8")
    with http_memory(tmp_path, "--root", str(tmp_path / "open")) as server:
        async with open_memory(settings_in(tmp_path, memory_server__url=server.url)) as memory:
            assert (await load_files(memory, [tmp_path / "open"])).count("added") == 1
            with pytest.raises(MemoryRefused, match="may not be read") as caught:
                await load_files(memory, [tmp_path / "closed"])
            assert "memory.roots" in caught.value.hint


@pytest.mark.full
async def test_the_token_comes_from_a_file_or_the_environment_and_a_wrong_one_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with http_memory(tmp_path, RAGMEMORY_TOKEN=TOKEN) as server:
        for token in ("", "wrong"):
            monkeypatch.setenv("RAGMEMORY_TOKEN", token)
            async with open_memory(stranger_to(server, tmp_path)) as memory:
                with pytest.raises(MemoryUnavailable, match="status 401") as caught:
                    await memory.query("tea")
                assert "memory_server.token_file" in caught.value.hint
        monkeypatch.setenv("RAGMEMORY_TOKEN", TOKEN)
        async with open_memory(stranger_to(server, tmp_path)) as memory:
            assert (await memory.query("tea")).empty
        file = tmp_path / "token"
        file.write_text(f"{TOKEN}\n", "utf-8")
        file.chmod(0o600)
        monkeypatch.setenv("RAGMEMORY_TOKEN", "wrong")
        async with open_memory(stranger_to(server, tmp_path, memory_server__token_file=str(file))) as memory:
            assert (await memory.query("tea")).empty


@pytest.mark.full
async def test_a_named_server_that_dies_is_reported_and_used_again_when_it_is_back(tmp_path: Path) -> None:
    port = str(free_port())
    with http_memory(tmp_path, "--port", port) as server:
        settings = settings_in(tmp_path, memory_server__url=server.url)
        async with open_memory(settings) as memory:
            assert (await memory.stats()).documents == 0
            end(server)
            with pytest.raises(MemoryUnavailable, match=f"{server.root}.* cannot be reached"):
                await memory.stats()
            with http_memory(tmp_path, "--port", port):
                assert (await memory.stats()).documents == 0


# The end of a tunnel is at 127.0.0.1, too.
@pytest.mark.parametrize("url", ["http://memory.example:8765", "http://127.0.0.1:8765"])
async def test_files_of_this_machine_are_not_asked_of_another(tmp_path: Path, url: str) -> None:
    settings = settings_in(tmp_path, memory_server__url=f"{url}/mcp")
    memory = (await find_memory_server(settings)).client()
    # A model's call would load the files into the mirror only.
    for ask in (memory.call("start_ingestion", {"paths": ["a"]}), memory.backup("copy.db")):
        with pytest.raises(FilesElsewhere, match=f"{url} is not your own on this machine"):
            await ask


@pytest.mark.parametrize("url", ["8765", "ftp://host", "http://", "http://host:99999", "http://u:p@host/"])
async def test_what_is_no_address_of_a_server_is_a_bad_setting(tmp_path: Path, url: str) -> None:
    with pytest.raises(SettingsError, match=r"^memory_server\.url is not usable: it must be the address"):
        await find_memory_server(settings_in(tmp_path, memory_server__url=url))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot stop a process so")
@pytest.mark.full
async def test_a_server_that_is_stopped_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "PROOF_SECONDS", PROOF_SECONDS)
    with http_memory(tmp_path, command=memory_command(tmp_path, "http")) as server:
        os.kill(server.process.pid, signal.SIGSTOP)
        try:
            async with open_memory(settings_in(tmp_path)) as memory:
                assert memory.url == ""
        finally:
            os.kill(server.process.pid, signal.SIGCONT)


@pytest.mark.full
def test_the_note_goes_when_the_server_ends(tmp_path: Path) -> None:
    with http_memory(tmp_path):
        [note] = (tmp_path / "home" / "state" / "servers").iterdir()
        assert json.loads(note.read_text("utf-8"))["memory"] == os.path.realpath(tmp_path / "memory.db")
    assert not note.exists()
