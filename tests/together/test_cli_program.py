"""The program as a whole: settings, doctor, other hosts, pipes, signals (`commands.stopping`) and its log.

Covers `ragchat.commands.config`, `ragchat.commands.mcp_config`, `ragchat.commands.stopping`,
`ragchat.setup.shown` and `ragchat.setup.host_block`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragchat.commands.stopping import SIGNALS
from ragcommon.hosts import HOSTS
from tests.support.embeddings_server import embeddings_server
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.processes import LONGEST_SECONDS
from tests.support.program import Program, program_in

UNKNOWN_HOME = "~nobody-has-this-name/x"

NO_MODEL = b"No language model is in use: answers are the best parts of your documents.\n"

MORE_THAN_A_PIPE_HOLDS = b"The beginning of something. " * 50_000

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and pipes")


@pytest.fixture
def ragchat(tmp_path: Path) -> Program:
    return program_in(tmp_path)


def test_a_settings_file_to_start_from_changes_nothing_and_is_never_overwritten(ragchat: Program) -> None:
    written = ragchat("config", "init", "--json").json["path"]
    text = Path(written).read_text(encoding="utf-8")
    assert all(table == {} for table in tomllib.loads(text).values())
    assert "\n#top_k = 30  # 1 to 100\n" in text
    assert not any(
        "RAGCHAT" not in row["origin"] and row["origin"] != "default" for row in _settings(ragchat)
    )
    again = ragchat("config", "init")
    assert (again.code, again.out) == (1, "")
    assert "already exists" in again.err
    assert "edit it, or move it away" in again.err
    assert Path(written).read_text(encoding="utf-8") == text


def _settings(ragchat: Program) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = ragchat("config", "show", "--json").json["settings"]
    return rows


def test_config_show_says_where_each_value_comes_from_and_shows_no_secret(tmp_path: Path) -> None:
    ragchat = program_in(
        tmp_path,
        OPENAI_API_KEY="sk-secret",
        RAGCHAT_MODEL_BASE_URL="http://me:pass@host/v1?key=k1",
        RAGCHAT_STORE_URL="postgresql://db/notes?schema=team&password=word&connect_timeout=3",
    )
    shown = {row["key"]: row for row in _settings(ragchat)}
    assert shown["model.name"]["origin"] == "the environment variable RAGCHAT_MODEL_NAME"
    assert shown["retrieval.top_k"]["origin"] == "default"
    assert shown["model.base_url"]["value"] == "http://***@host/v1?key=***"
    assert shown["store.url"]["value"] == "postgresql://***"
    printed = ragchat("config", "show")
    assert "OPENAI_API_KEY is set." in printed.out
    assert not {"sk-secret", "pass", "k1"} & set(re.split(r"[\s:@=]", printed.out))


@pytest.mark.smoke
def test_a_mistake_in_the_settings_is_one_line_with_a_hint(ragchat: Program) -> None:
    wrong = ragchat.folder / "ragchat.toml"
    wrong.write_text("[retrieval]\ntop_kk = 3\n", encoding="utf-8")
    for words in (["query", "x"], ["config", "show"], ["doctor"]):
        done = ragchat(*words)
        assert (done.code, done.out) == (1, "")
        assert done.err == (
            f"ragchat: Unknown setting retrieval.top_kk in {wrong}, line 2.\n"
            "  Did you mean retrieval.top_k?\n"
        )
    assert ragchat("config", "init").code == 0


@pytest.mark.parametrize(
    ("words", "variable"),
    [
        (["--memory", UNKNOWN_HOME], {}),
        (["--config", UNKNOWN_HOME], {}),
        ([], {"RAGCHAT_MEMORY": UNKNOWN_HOME}),
        ([], {"RAGCHAT_SESSIONS_PATH": UNKNOWN_HOME}),
        ([], {"RAGCHAT_HOME": UNKNOWN_HOME}),
    ],
)
def test_the_home_folder_of_an_unknown_user_is_named(
    tmp_path: Path, words: list[str], variable: dict[str, str]
) -> None:
    done = program_in(tmp_path, **variable)("ask", "What is tea?", *words)
    assert (done.code, done.out) == (1, "")
    assert "no such home folder" in done.err.lower()
    assert UNKNOWN_HOME in done.err
    assert "inside ragchat" not in done.err


@pytest.mark.parametrize(
    ("command", "key", "value"),
    [
        ("ask", "model.context_tokens", "-5"),
        ("ask", "model.timeout_seconds", "0"),
        ("ask", "tools.timeout_seconds", "-1"),
        ("query", "retrieval.top_k", "0"),
    ],
)
def test_a_number_that_cannot_be_is_a_mistake_in_the_settings(
    tmp_path: Path, command: str, key: str, value: str
) -> None:
    variable = f"RAGCHAT_{key.replace('.', '_').upper()}"
    done = program_in(tmp_path, **{variable: value})(command, "x", "--json")
    error = done.json["error"]
    assert (done.code, error["code"]) == (1, "SETTINGS_INVALID")
    assert error["message"].startswith(f"{key} is not usable: ")
    assert variable in error["message"]


def test_config_path_names_every_place(ragchat: Program) -> None:
    places = ragchat("config", "path", "--json").json
    assert places["memory"] == {"path": str(ragchat.home / "data" / "memory.db"), "exists": False}
    assert all(Path(place["path"]).is_absolute() for place in places.values())


PARSERS: dict[str, Callable[[str], Any]] = {
    "json": json.loads,
    "yaml": msgspec.yaml.decode,
    "toml": tomllib.loads,
}


@pytest.mark.parametrize("host", ["goose", "codex"])
def test_the_block_in_another_format_is_json_too_where_json_is_asked_for(ragchat: Program, host: str) -> None:
    parse = PARSERS[HOSTS[host].format]
    assert ragchat("mcp", "config", host, "--json").json == parse(ragchat("mcp", "config", host).out)


@pytest.mark.parametrize("host", HOSTS)
def test_the_block_for_another_host_starts_the_memory(ragchat: Program, host: str) -> None:
    done = ragchat("mcp", "config", host)
    form = HOSTS[host]
    servers = PARSERS[form.format](done.out)[form.key]
    [server] = servers if form.around else [servers["ragmemory"]]
    command = server[form.names.get("command", "command")]
    assert Path(command).is_absolute()
    assert server["args"][:2] == ["--memory", str(ragchat.home / "data" / "memory.db")]
    assert server[form.names.get("env", "env")] == {"RAGCHAT_HOME": str(ragchat.home)}
    started = subprocess.run(
        [command, *server["args"], "--version"], capture_output=True, text=True, check=True
    )
    assert started.stdout.startswith("ragmemory ")


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("http://nas:8765", "http://nas:8765/mcp"),
        ("http://nas:8765/mcp/notes", "http://nas:8765/mcp/notes"),
        ("https://nas/memory/", "https://nas/memory/mcp"),
    ],
)
def test_the_block_is_for_the_server_whose_memory_is_used(tmp_path: Path, url: str, endpoint: str) -> None:
    file = tmp_path / "token"
    ragchat = program_in(tmp_path, RAGCHAT_MEMORY_SERVER_TOKEN_FILE=str(file))
    server = ragchat("--server", url, "mcp", "config", "claude-desktop").json["mcpServers"]["ragmemory"]
    assert server["args"] == ["bridge", endpoint, "--token-file", str(file)]
    ragchat = program_in(tmp_path, RAGCHAT_MEMORY_SERVER_URL=url)
    server = ragchat("mcp", "config", "claude-code").json["mcpServers"]["ragmemory"]
    assert server == {"type": "http", "url": endpoint}
    ragchat = program_in(tmp_path, RAGCHAT_MEMORY_SERVER_URL=url, RAGMEMORY_TOKEN="secret-of-notes")
    done = ragchat("mcp", "config", "claude-code")
    server = done.json["mcpServers"]["ragmemory"]
    assert server["headers"] == {"Authorization": "Bearer ${RAGMEMORY_TOKEN}"}
    assert "secret-of-notes" not in done.out


def test_no_block_is_printed_for_an_address_with_a_password(ragchat: Program) -> None:
    done = ragchat("--server", "http://me:secret@nas:8765", "mcp", "config", "claude-code")
    assert (done.code, done.out) == (1, "")
    assert "memory_server.url" in done.err
    assert "secret" not in done.err


@pytest.mark.smoke
def test_the_doctor_finds_everything_well(ragchat: Program) -> None:
    done = ragchat("doctor", "--json")
    checks = {check["name"]: check for check in done.json["checks"]}
    assert [check for check in checks.values() if check["status"] == "fault"] == []
    assert done.code == 0
    assert set(checks) >= {
        "packages",
        "sqlite",
        "memory file",
        "memory server",
        "embedder",
        "prompts",
        "model",
    }


def test_the_doctor_finds_a_damaged_memory_and_an_unreachable_model(tmp_path: Path) -> None:
    # Port 9 is that of the discard service, which no machine runs any more.
    ragchat = program_in(
        tmp_path,
        RAGCHAT_MODEL_BASE_URL="http://127.0.0.1:9/v1",
        RAGCHAT_MODEL_NAME="some-model",
        RAGCHAT_MODEL_RETRIES="0",
    )
    (ragchat.home / "data").mkdir(parents=True)
    (ragchat.home / "data" / "memory.db").write_bytes(b"this is no database " * 400)
    done = ragchat("doctor")
    faults = [line[9:22].strip() for line in done.out.splitlines() if line.startswith("fault")]
    assert done.code == 1
    assert faults == ["memory file", "memory server", "model"]
    assert "Traceback" not in done.out + done.err


def test_passwords_in_addresses_are_shown_nowhere(tmp_path: Path) -> None:
    ragchat = program_in(
        tmp_path,
        RAGCHAT_MODEL_BASE_URL="http://ann:parole@127.0.0.1:9/v1?key=sesame",
        RAGCHAT_MODEL_NAME="some-model",
        RAGCHAT_MODEL_RETRIES="0",
        RAGCHAT_EMBEDDER_KIND="openai",
        RAGCHAT_EMBEDDER_BASE_URL="http://ann:parole@127.0.0.1:9/v1?key=sesame",
        RAGCHAT_EMBEDDER_RETRIES="0",
    )
    assert ragchat("mcp", "add", "tickets", "http://ann:parole@127.0.0.1:9/mcp?key=sesame").code == 0
    (ragchat.folder / "tea.md").write_text("Tea is hot.\n", encoding="utf-8")
    for words in (
        ("inject", "."),
        ("doctor",),
        ("doctor", "--json"),
        ("ask", "What is tea?"),
        ("ask", "--json", "What is tea?"),
        ("mcp", "ls"),
        ("mcp", "test", "--json"),
    ):
        done = ragchat(*words)
        assert not re.search("parole|sesame", done.out + done.err), words
    assert "parole" not in ragchat("config", "show").out
    logs = [*(ragchat.home / "state").rglob("*.log"), ragchat.home / "data" / "memory.db"]
    assert not [path for path in logs if re.search(b"parole|sesame", path.read_bytes())]


def test_a_read_only_memory_says_so_to_every_write_and_in_the_doctor(ragchat: Program) -> None:
    (ragchat.folder / "tea.md").write_text("Tea is hot.\n", encoding="utf-8")
    assert ragchat("inject", ".").code == 0
    reader = program_in(ragchat.folder.parent, RAGCHAT_MEMORY_READ_ONLY="true")
    for words in (
        ("inject", "."),
        ("inject", "-"),
        ("source", "add", "."),
        ("memory", "rm", "tea.md"),
        ("memory", "undo"),
        ("memory", "verify", "--repair"),
    ):
        refused = reader(*words, stdin="Tea.")
        assert refused.code == 1
        assert "Memory is read-only.\n  Its setting memory.read_only" in refused.err
    doctor = reader("doctor")
    assert doctor.code == 0
    assert "read-only by memory.read_only (from the environment variable" in doctor.out


def test_the_doctor_finds_an_embedder_that_is_away_also_while_memory_is_empty(tmp_path: Path) -> None:
    ragchat = program_in(
        tmp_path,
        RAGCHAT_EMBEDDER_KIND="openai",
        RAGCHAT_EMBEDDER_BASE_URL="http://127.0.0.1:9/v1",
        RAGCHAT_EMBEDDER_RETRIES="0",
    )
    done = ragchat("doctor", "--json")
    checks = {check["name"]: check for check in done.json["checks"]}
    assert (done.code, checks["memory server"]["status"], checks["embedder"]["status"]) == (1, "ok", "fault")
    assert "http://127.0.0.1:9/v1 cannot be reached" in checks["embedder"]["detail"]
    assert checks["embedder"]["hint"]
    assert ragchat("memory", "stats", "--json").json["documents"] == 0


def test_what_a_search_lacks_is_named_by_the_doctor_as_that(tmp_path: Path) -> None:
    with embeddings_server() as embedder:
        options = {"RAGCHAT_EMBEDDER_KIND": "openai", "RAGCHAT_EMBEDDER_RETRIES": "0"}
        ragchat = program_in(tmp_path, RAGCHAT_EMBEDDER_BASE_URL=embedder.url, **options)
        (ragchat.folder / "tea.md").write_text("Tea is hot.\n", encoding="utf-8")
        assert ragchat("inject", ".").code == 0
    done = ragchat("doctor", "--json")
    [fault] = [check for check in done.json["checks"] if check["status"] == "fault"]
    assert (done.code, fault["name"]) == (1, "search")
    assert fault["detail"].startswith("Searched by words alone. The embedder openai:")


def test_an_error_of_our_own_is_in_the_log_and_not_on_the_screen(ragchat: Program) -> None:
    blocked = ragchat.home / "data"
    ragchat.home.mkdir()
    blocked.write_text("a file where a folder should be", encoding="utf-8")
    done = ragchat("memory", "stats")
    assert done.code == 1
    assert "Traceback" not in done.out + done.err
    assert "Traceback" in (ragchat.home / "state" / "ragchat.log").read_text(encoding="utf-8")


@pytest.mark.parametrize("status", [400, 401])
def test_a_key_that_a_server_repeats_is_neither_on_the_screen_nor_in_a_log(
    tmp_path: Path, status: int
) -> None:
    reply = Reply(status=status, message="Incorrect API key provided: sk-mistyped")
    with OpenAIServer([reply]) as server:
        ragchat = program_in(
            tmp_path,
            RAGCHAT_MODEL_BASE_URL=server.base_url,
            RAGCHAT_MODEL_NAME="test-model",
            RAGCHAT_MODEL_RETRIES="0",
            OPENAI_API_KEY="sk-mistyped",
        )
        done = ragchat("ask", "x")
    logs = list((ragchat.home / "state").glob("*.log"))
    assert done.code == 1
    assert "Incorrect API key provided: ***" in (ragchat.home / "state" / "ragchat.log").read_text("utf-8")
    assert "sk-mistyped" not in done.out + done.err + "".join(log.read_text("utf-8") for log in logs)
    if os.name == "posix":
        assert [oct(log.stat().st_mode & 0o777) for log in logs] == ["0o600"] * 2


def test_with_json_an_answer_that_broke_off_has_its_part_beside_the_error(tmp_path: Path) -> None:
    with OpenAIServer([Reply("The pressure must stay low.", break_after=2)]) as server:
        ragchat = program_in(
            tmp_path, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="k", RAGCHAT_MODEL_NAME="test-model"
        )
        done = ragchat("ask", "--json", "How high is the pressure?")
    assert (done.code, done.json["error"]["code"]) == (1, "MODEL_STREAM_BROKEN")
    assert "The pressure must stay low.".startswith(done.json["answer"])
    assert done.json["answer"]


def test_any_text_prints_on_any_terminal(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path, PYTHONIOENCODING="ascii", LC_ALL="C")
    text = "Žluťoučký kůň — 日本語 \U0001f600 \x1b[31mred"
    assert ragchat("inject", "-", "--uri", "note:ů", stdin=text).code == 0
    shown = ragchat("memory", "show", "note:ů")
    assert shown.out.startswith("Žluťoučký kůň — 日本語 \U0001f600")
    assert "\x1b" not in shown.out
    assert ragchat("query", "kůň", "--json").json["query"] == "kůň"


@posix
def test_a_name_that_is_no_unicode_is_loaded_and_printed(ragchat: Program) -> None:
    try:
        (ragchat.folder / os.fsdecode(b"caf\xe9.md")).write_text(
            "# Menu\n\nSoup of the day.", encoding="utf-8"
        )
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    loaded = ragchat("inject", ".", "--json")
    assert (loaded.code, loaded.json["added"]) == (0, 1)
    assert ragchat("query", "soup").out.startswith("[1] ")


@posix
def test_a_reader_that_leaves_early_is_no_error(ragchat: Program) -> None:
    text = "A long line of text about nothing in particular.\n" * 20_000
    ragchat("inject", "-", "--uri", "note:long", stdin=text)
    with ragchat.started("memory", "show", "note:long") as shown:
        assert shown.line()
        assert shown.stdout is not None
        shown.stdout.close()
        assert shown.wait(LONGEST_SECONDS) == 1
        assert shown.error_line() == b""


def test_a_loading_that_ends_because_memory_cannot_go_on_reports_what_was_under_way(tmp_path: Path) -> None:
    ragchat = program_in(
        tmp_path,
        RAGCHAT_EMBEDDER_KIND="openai",
        RAGCHAT_EMBEDDER_BASE_URL="http://127.0.0.1:9/v1",
        RAGCHAT_EMBEDDER_RETRIES="0",
    )
    for number in range(3):
        (ragchat.folder / f"{number}.md").write_text(f"Note {number}", encoding="utf-8")
    told = ragchat("inject", ".", "-", "--json", stdin="from stdin")
    assert (told.code, told.json["failed"], told.json["error"]["code"]) == (1, 1, "EMBEDDER_UNAVAILABLE")
    told = ragchat("inject", ".", "--json")
    assert (told.code, told.json["failed"], told.json["added"]) == (1, 3, 0)
    assert {one["error"] for one in told.json["documents"]} == {told.json["error"]["message"]}
    said = ragchat("inject", ".")
    assert (said.code, said.out) == (1, "3 failed.\n")
    assert said.err.count("127.0.0.1:9/v1 cannot be reached") == 1
    assert said.err.endswith("\n  Is the service running?\n  Run the same command again to continue.\n")
    assert told.json["error"]["hint"] == "Is the service running?"


def test_a_loading_that_never_began_is_not_said_to_continue(tmp_path: Path) -> None:
    said = program_in(tmp_path)("--server", "http://127.0.0.1:9", "inject", ".")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("Not finished: Memory is not available")
    assert "again" not in said.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_stderr_that_takes_nothing_does_not_take_the_result(ragchat: Program) -> None:
    (ragchat.folder / "tea.md").write_text("Green tea is brewed at 75 degrees.", encoding="utf-8")
    for words, code, result in (
        ("inject tea.md none.md", 1, b"1 added, 1 failed (1 chunk).\n"),
        ("ask tea", 0, b"[1] tea.md:1\n"),
        ("ask tea --json", 0, b"{\n"),
        ("nonsense", 2, b""),
    ):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [sys.executable, "-m", "ragchat", *words.split()],
                stdout=subprocess.PIPE,
                stderr=full,
                stdin=subprocess.DEVNULL,
                cwd=ragchat.folder,
                env=ragchat.variables,
                timeout=LONGEST_SECONDS,
                check=False,
            )
        assert (done.returncode, done.stdout.startswith(result)) == (code, True), words


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_stdout_that_takes_nothing_is_one_sentence_on_stderr(ragchat: Program) -> None:
    (ragchat.folder / "tea.md").write_text("Green tea is brewed at 75 degrees.", encoding="utf-8")
    for words in ("inject tea.md", "query tea --json", "ask tea", "ask tea --json", "config show"):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [sys.executable, "-m", "ragchat", *words.split()],
                stdout=full,
                stderr=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
                cwd=ragchat.folder,
                env=ragchat.variables,
                timeout=LONGEST_SECONDS,
                check=False,
            )
        assert done.returncode == 1, words
        said = b"ragchat: No space left on device.\n  Free some space on the disk that is written to.\n"
        assert done.stderr.removeprefix(NO_MODEL) == said, words


@posix
def test_an_interrupted_loading_keeps_what_is_done_and_says_so(tmp_path: Path) -> None:
    with embeddings_server() as embedder:
        # More than are on their way at once: some have been answered. So many are left that the load has not
        # ended when the signal comes, also where that takes a second.
        files, embedder.hold_after = 5_000, 500
        ragchat = program_in(tmp_path, RAGCHAT_EMBEDDER_KIND="openai", RAGCHAT_EMBEDDER_BASE_URL=embedder.url)
        for number in range(files):
            (ragchat.folder / f"{number}.md").write_text(f"Note {number}", encoding="utf-8")
        with ragchat.started("inject", ".", "--json") as loading:
            assert embedder.reached.wait(LONGEST_SECONDS)
            loading.send_signal(signal.SIGINT)
            embedder.go.set()
            out, err = loading.communicate(timeout=LONGEST_SECONDS)
        assert loading.returncode == 1
        assert err == b"Stopped.\n"
        told = json.loads(out)["added"]
        hint = json.loads(out)["error"]["hint"]
        assert re.fullmatch(r"Interrupted: .* not loaded\. Run the same command again to continue\.", hint)
        kept = ragchat("memory", "stats", "--json").json["documents"]
    assert 0 < told <= kept < files


@posix
def test_an_interrupted_import_says_how_far_it_came_and_is_continued_by_the_same_command(
    tmp_path: Path,
) -> None:
    with embeddings_server() as embedder:
        embedder.hold_after = 250  # in the second part of the file
        ragchat = program_in(tmp_path, RAGCHAT_EMBEDDER_KIND="openai", RAGCHAT_EMBEDDER_BASE_URL=embedder.url)
        documents = [{"text": f"Note {number}", "metadata": {"uri": f"{number}.md"}} for number in range(300)]
        lines = [{"format": "ragchat-memory", "version": 1}, *documents]
        (ragchat.folder / "notes.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        with ragchat.started("memory", "import", "notes.jsonl") as importing:
            assert embedder.reached.wait(LONGEST_SECONDS)
            importing.send_signal(signal.SIGINT)
            _, err = importing.communicate(timeout=LONGEST_SECONDS)
        embedder.go.set()
        assert err == (
            b"Interrupted: 200 documents imported, 100 more may be stored."
            b" Run the same command again to continue.\nStopped.\n"
        )
        assert ragchat("memory", "import", "notes.jsonl").out.startswith("Imported 300 documents: ")


@posix
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("command", ["inject", "ask"])
@pytest.mark.smoke
def test_one_signal_ends_the_wait_for_stdin(ragchat: Program, command: str, number: signal.Signals) -> None:
    with ragchat.started(command, "-") as waiting:
        waiting.write(MORE_THAN_A_PIPE_HOLDS)
        waiting.send_signal(number)
        assert waiting.wait(LONGEST_SECONDS) == 1
        assert waiting.communicate(timeout=LONGEST_SECONDS) == (b"", b"Stopped.\n")


@posix
def test_an_interrupted_import_does_not_wait_for_the_end_of_stdin(ragchat: Program) -> None:
    begun = b'{"format":"ragchat-memory","version":1}\n{"text":"' + MORE_THAN_A_PIPE_HOLDS
    with ragchat.started("memory", "import", "-") as importing:
        importing.write(begun)
        importing.send_signal(signal.SIGINT)
        assert importing.wait(LONGEST_SECONDS) == 1
        _, err = importing.communicate(timeout=LONGEST_SECONDS)
    assert err.startswith(b"Interrupted: ")
    assert err.endswith(b"\nStopped.\n")


@posix
def test_an_interrupted_script_keeps_the_steps_that_were_done(tmp_path: Path) -> None:
    held = Reply("At 75 degrees.", hold_after=0)
    with OpenAIServer([held]) as model:
        ragchat = program_in(
            tmp_path, OPENAI_BASE_URL=model.base_url, OPENAI_API_KEY="k", RAGCHAT_MODEL_NAME="test-model"
        )
        (ragchat.folder / "tea.toml").write_text(
            "[[step]]\ninject = { text = 'Green tea is hot.', uri = 'note:tea' }\n"
            "[[step]]\nask = 'How hot is green tea?'\n"
        )
        with ragchat.started("run", "tea.toml", "--json") as running:
            assert held.reached.wait(LONGEST_SECONDS)
            running.send_signal(signal.SIGINT)
            out, err = running.communicate(timeout=LONGEST_SECONDS)
    assert (running.returncode, err) == (1, b"Stopped.\n")
    told = json.loads(out)
    assert [step["title"] for step in told["steps"]] == ["note:tea"]
    assert (told["passed"], told["failed"], told["error"]["code"]) == (1, 0, "STOPPED")


@posix
@pytest.mark.parametrize("command", ["ask", "query"])
def test_an_interrupt_with_json_is_a_document(ragchat: Program, command: str) -> None:
    with ragchat.started(command, "-", "--json") as waiting:
        waiting.write(MORE_THAN_A_PIPE_HOLDS)
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(LONGEST_SECONDS) == 1
        out, err = waiting.communicate(timeout=LONGEST_SECONDS)
    assert json.loads(out) == {"error": {"code": "STOPPED", "message": "Stopped.", "hint": ""}}
    assert err == b"Stopped.\n"


@posix
def test_closed_standard_streams_are_empty_ones(ragchat: Program) -> None:
    ragchat("inject", "-", "--uri", "note:tea", stdin="Green tea is brewed at 75 degrees.")
    ask = "ask 'How hot is green tea?'"
    for words, closed in (
        (ask, "<&-"),
        (ask, ">&-"),
        ("query tea", "2>&-"),
        (ask, "<&- >&- 2>&-"),
        ("", "<&-"),
        ("", "<&- >&- 2>&-"),
    ):
        done = subprocess.run(
            ["sh", "-c", f"{sys.executable} -m ragchat {words} {closed}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=ragchat.folder,
            env=ragchat.variables,
            timeout=LONGEST_SECONDS,
            check=False,
        )
        assert done.returncode == 0
        assert done.stderr in (b"", NO_MODEL)
        answered = words and ">&-" not in closed.replace("2>&-", "")
        assert (b"75 degrees" in done.stdout) == bool(answered)


@posix
def test_no_command_leaves_a_server_behind(ragchat: Program) -> None:
    ps = shutil.which("ps")
    if ps is None:
        pytest.skip("there is no ps")
    ragchat("memory", "stats")
    running = subprocess.run([ps, "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(ragchat.home / "data" / "memory.db") not in running


@posix
def test_the_version_is_there_before_one_notices(ragchat: Program) -> None:
    before = os.times()
    assert ragchat("--version").code == 0
    after = os.times()
    # Of the processor's time, for a busy machine has others to serve. A tenth of a second; the bound only
    # catches a heavy import.
    used = after.children_user + after.children_system - before.children_user - before.children_system
    assert used < 1


def test_stdin_that_is_no_terminal_is_a_chat_of_one_question_a_line(ragchat: Program) -> None:
    ragchat("inject", "-", "--uri", "note:1", stdin="The lighthouse was built in 1871 by Anna Berg.")
    done = ragchat(stdin="Who built the lighthouse?\nWhen was the lighthouse built?\n")
    assert done.code == 0
    assert done.out.count("Anna Berg") == 2
    assert "\x1b" not in done.out
