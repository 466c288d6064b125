"""`ragchat watch --service` on each system; covers `ragchat.commands.service`."""

from __future__ import annotations

import json
import os
import plistlib
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ragchat.cli import main
from ragchat.commands import service
from ragconfig.home import Home
from tests.support.processes import LONGEST_SECONDS, Held

ARGUMENTS = ["watch", "--memory", "/my memory/50%.db", "--", "/no$tes", '/say "hi"', "/back\\slash"]
VARIABLES = {"RAGCHAT_HOME": "/home/50% & <more>", "RAGCHAT_LIMITS_FILE_BYTES": "9"}
TASK = "{http://schemas.microsoft.com/windows/2004/02/mit/task}"
UNIT = "ragchat-watch.service"
RECORDER = '#!/bin/sh\necho "$@" >> "$RECORD"\n'


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, a folder to watch, and a `systemctl` that only records its arguments."""
    for name in [name for name in os.environ if name.startswith(("RAGCHAT_", "OPENAI_", "XDG_"))]:
        monkeypatch.delenv(name)
    for name in ("notes", "programs", "home"):
        (tmp_path / name).mkdir()
    (tmp_path / "notes" / "tea.md").write_text("# Tea\n\nHow tea is made.\n", encoding="utf-8")
    (tmp_path / "programs" / "systemctl").write_text(RECORDER, encoding="utf-8")
    (tmp_path / "programs" / "systemctl").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path / 'programs'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("RECORD", str(tmp_path / "record"))
    monkeypatch.setenv("RAGCHAT_HOME", "home")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def recorded(place: Path) -> list[str]:
    lines = (place / "record").read_text(encoding="utf-8").splitlines()
    (place / "record").unlink()
    return lines


def test_a_unit_is_valid_for_systemd_and_keeps_every_sign(place: Path) -> None:
    unit = service.systemd(ARGUMENTS, VARIABLES, Home.find())
    assert unit.file == place / "config" / "systemd" / "user" / UNIT
    assert '"/my memory/50%%.db" "--" "/no$tes" "/say \\"hi\\"" "/back\\\\slash"' in unit.text
    assert 'Environment="RAGCHAT_HOME=/home/50%% & <more>"' in unit.text
    if not (analyze := shutil.which("systemd-analyze")):
        pytest.skip("no systemd-analyze here")
    path = place / UNIT
    path.write_text(unit.text, encoding="utf-8")
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(place)}
    done = subprocess.run(
        [analyze, "--user", "verify", str(path)], env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, UNIT in done.stderr) == (0, False), done.stderr


def test_a_launch_agent_is_a_property_list(place: Path) -> None:
    agent = service.launchd(ARGUMENTS, VARIABLES, Home.find())
    told = plistlib.loads(agent.text.encode())
    assert told["ProgramArguments"][-len(ARGUMENTS) :] == ARGUMENTS
    assert (told["EnvironmentVariables"], told["KeepAlive"]) == (VARIABLES, {"SuccessfulExit": False})
    assert told["StandardErrorPath"] == agent.log == str(place / "home" / "state" / "ragchat-watch.log")
    assert service.MARK in agent.text


def test_a_scheduled_task_is_xml_without_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USERDOMAIN", "R&D")
    monkeypatch.setenv("USERNAME", "ada")
    task = service.scheduled_task(ARGUMENTS, VARIABLES, Home.find())
    root = ElementTree.fromstring(task.text.encode(task.encoding))
    assert root.findtext(f".//{TASK}LogonTrigger/{TASK}UserId") == "R&D\\ada"
    assert root.findtext(f".//{TASK}ExecutionTimeLimit") == "PT0S"
    words = root.findtext(f".//{TASK}Arguments") or ""
    assert words.endswith('"/my memory/50%.db" -- /no$tes "/say \\"hi\\"" /back\\slash')
    assert service.MARK in (root.findtext(f".//{TASK}Description") or "")


def test_what_is_printed_has_the_memory_and_the_settings_but_no_secret(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAGCHAT_EMBEDDER_KIND", "openai")
    monkeypatch.setenv("RAGCHAT_EMBEDDER_BASE_URL", "https://ada:geheim@models.example/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-geheim")
    monkeypatch.setenv("RAGCHAT_MEMORY", "my.db")
    assert main(["watch", "notes", "--service"]) == 0
    printed = capsys.readouterr()
    assert f'"--memory" "{place / "my.db"}" "--" "{place / "notes"}"' in printed.out
    assert f'Environment="RAGCHAT_HOME={place / "home"}"' in printed.out
    assert 'Environment="RAGCHAT_EMBEDDER_KIND=openai"' in printed.out
    assert "geheim" not in printed.out
    assert "secrets: OPENAI_API_KEY, RAGCHAT_EMBEDDER_BASE_URL." in printed.err
    assert "--install` writes it to" in printed.err


def test_a_password_in_the_address_of_the_server_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "notes", "--service", "--server", "http://ada:geheim@nas:8765"]) == 1
    assert "memory_server.url" in (error := capsys.readouterr().err)
    assert "geheim" not in error


def test_it_is_installed_again_and_removed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = place / "config" / "systemd" / "user" / UNIT
    start = ["--user daemon-reload", f"--user enable --now {UNIT}"]
    assert main(["watch", "notes", "--service", "--install"]) == 0
    assert capsys.readouterr().out == (
        f"Wrote {file} and started the service.\nState: systemctl --user status {UNIT}\n"
        f"Log: journalctl --user --unit {UNIT}\n"
    )
    assert recorded(place) == start
    first = file.read_bytes()
    assert main(["watch", "notes", "--service", "--install"]) == 0
    assert recorded(place) == [f"--user disable --now {UNIT}", *start]
    assert file.read_bytes() == first
    capsys.readouterr()
    assert main(["watch", "--service", "--uninstall", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "removed"
    assert recorded(place) == [f"--user disable --now {UNIT}", "--user daemon-reload"]
    assert not file.exists()
    assert main(["watch", "--service", "--uninstall"]) == 1
    assert f"No service is installed: there is no {file}." in capsys.readouterr().err


def test_a_unit_of_another_is_neither_replaced_nor_removed(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = place / "config" / "systemd" / "user" / UNIT
    file.parent.mkdir(parents=True)
    file.write_text("[Unit]\n", encoding="utf-8")
    for word in ("--install", "--uninstall"):
        assert main(["watch", "notes", "--service", word]) == 1
        assert f"{file} already exists.\n  ragchat has not written it" in capsys.readouterr().err
    assert (file.read_text(encoding="utf-8"), (place / "record").exists()) == ("[Unit]\n", False)


def test_a_system_without_systemd_says_what_was_done(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(place))
    assert main(["watch", "notes", "--service", "--install"]) == 1
    assert (
        "ragchat: `systemctl --user daemon-reload` failed: there is no program systemctl here. "
        f"{place / 'config' / 'systemd' / 'user' / UNIT} is written.\n"
    ) in capsys.readouterr().err


@pytest.mark.full
def test_without_a_source_nothing_is_installed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "--service", "--install"]) == 1
    assert "There are no sources yet." in capsys.readouterr().err
    assert not (place / "config").exists()


@pytest.mark.full
def test_the_command_of_a_task_watches_without_the_environment_of_a_shell(place: Path) -> None:
    arguments = ["watch", "--memory", str(place / "my.db"), "--", str(place / "notes")]
    variables = {"RAGCHAT_HOME": str(place / "home")}
    text = service.scheduled_task(arguments, variables, Home.find()).text
    task = ElementTree.fromstring(text.encode("utf-16"))
    words = shlex.split(task.findtext(f".//{TASK}Arguments") or "")
    with Held([sys.executable, *words], stdout=subprocess.PIPE, cwd="/", env={}) as watch:
        assert b"added" in watch.line()
        assert b"watching" in watch.line()
        watch.terminate()
        assert watch.wait(LONGEST_SECONDS) == 0
    assert (place / "my.db").exists()
    assert (place / "home" / "state" / "ragchat.log").exists()
