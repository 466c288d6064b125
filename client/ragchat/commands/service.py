"""`ragchat watch --service`: let the system run the watch: systemd, launchd, or the scheduler of Windows."""

from __future__ import annotations

import os
import plistlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import NamedTuple
from xml.sax.saxutils import escape

from ragchat.commands.invocation import Invocation
from ragchat.errors import FileAlreadyExists, NoService, ServiceRefused
from ragchat.log import LOG_FILE
from ragchat.servers.memory.process import (
    HUGGINGFACE_PREFIX,
    OPENAI_PREFIX,
    POSTGRES_PREFIX,
    QDRANT_PREFIX,
    environment,
)
from ragcommon.files.uris import without_secrets
from ragcommon.files.writing import replace_file
from ragcommon.hosts import TOKEN_VARIABLE, program_command
from ragconfig.home import HOME_VARIABLE, Home, user_path
from ragconfig.settings import Settings

NAME = "ragchat-watch"
TITLE = "ragchat: keeps memory in step with folders"
# Only a file with this text is replaced or removed.
MARK = "Written by ragchat to run `ragchat watch`."
RESTART_SECONDS = 30
# Some of these variables are keys and passwords, which do not belong in the file of a service.
KEY_PREFIXES = (OPENAI_PREFIX, POSTGRES_PREFIX, QDRANT_PREFIX, HUGGINGFACE_PREFIX)
FOLDER_VARIABLES = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")

Command = tuple[str, ...]


class Service(NamedTuple):
    """A file for the system's manager of services, and the commands that start and stop the service."""

    file: Path
    text: str
    start: tuple[Command, ...]
    stop: tuple[Command, ...]
    state: str
    """The command that shows the state."""
    log: str
    """Where the output goes: a file, or the command that prints it."""
    encoding: str = "utf-8"
    removed: tuple[Command, ...] = ()
    """What to run once the file is removed."""


def run_service(run: Invocation, paths: Sequence[str]) -> None:
    """Print the file of a service that watches `paths` (none: the sources), install it, or remove it.

    Raises FileAlreadyExists, NoService, ServiceRefused, SettingsError.
    """
    settings, console = run.settings, run.console
    variables, withheld = _variables(settings)
    of_platform = {"darwin": launchd, "win32": scheduled_task}.get(sys.platform, systemd)
    service = of_platform(_arguments(run, paths), variables, settings.home)
    result = {"file": str(service.file), "text": service.text, "state": service.state, "log": service.log}
    if run.arguments.uninstall:
        _uninstall(service)
        console.result({**result, "status": "removed"}, f"Stopped the service and removed {service.file}.")
        return
    if withheld:
        console.note(
            f"Left out, as they may be secrets: {', '.join(withheld)}. What the service needs of them "
            "belongs in the settings file and in key files (embedder.key_file, memory_server.token_file …)."
        )
    if not run.arguments.install:
        console.result({**result, "status": "printed"}, service.text.rstrip("\n"))
        console.note(f"`ragchat watch --service --install` writes it to {service.file} and starts it.")
        return
    _install(service)
    lines = (
        f"Wrote {service.file} and started the service.",
        f"State: {service.state}",
        f"Log: {service.log}",
    )
    console.result({**result, "status": "installed"}, *lines)


def _install(service: Service) -> None:
    """Replace the service if it is there."""
    if service.file.exists():
        _check_ours(service)
        for command in service.stop:
            _refusal(command)  # It may have been stopped by hand.
    replace_file(service.file, service.text.encode(service.encoding))
    _call(service.start, f"{service.file} is written.")


def _uninstall(service: Service) -> None:
    if not service.file.exists():
        raise NoService(str(service.file))
    _check_ours(service)
    refusals = [refusal for command in service.stop if (refusal := _refusal(command))]
    service.file.unlink()
    done = f"{service.file} is removed, but the service may still run."
    if refusals:
        raise ServiceRefused(*refusals[0], done)
    _call(service.removed, done)


def _check_ours(service: Service) -> None:
    if MARK not in service.file.read_bytes().decode(service.encoding, errors="replace"):
        hint = "ragchat has not written it, and leaves it as it is: move it away first."
        raise FileAlreadyExists(str(service.file), hint)


def _call(commands: Sequence[Command], done: str) -> None:
    for command in commands:
        if refusal := _refusal(command):
            raise ServiceRefused(*refusal, done)


def _refusal(command: Command) -> tuple[str, str] | None:
    """Run it. None if it succeeds, else the command and why it failed."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
    except FileNotFoundError:
        return " ".join(command), f"there is no program {command[0]} here"
    said = " ".join(done.stdout.decode(errors="replace").split()).rstrip(".")
    return (" ".join(command), said or f"exit code {done.returncode}") if done.returncode else None


def _arguments(run: Invocation, paths: Sequence[str]) -> list[str]:
    """The arguments with which `ragchat` has the memory and settings of this run. Raises SettingsError."""
    settings = run.settings
    url = str(settings.tables["memory_server"]["url"])
    if without_secrets(url) != url:
        reason = "it has a password or key, which the service's file would show; use memory_server.token_file"
        raise settings.invalid("memory_server.url", reason)
    words = ["--server", url] if url else ["--memory", settings.memory_place]
    words += ["--config", str(settings.config_file)] if settings.config_file else []
    words += ["--verbose"] if settings.verbose else []
    private = ["--allow-private"] if run.arguments.allow_private else []
    return ["watch", *private, *words, *(["--", *paths] if paths else [])]


def _variables(settings: Settings) -> tuple[dict[str, str], list[str]]:
    """The variables that the service gets, and the names of those that it would use but may be secrets."""
    used = {name: value for name, value in sorted(environment(settings).items()) if name in os.environ}
    server = settings.tables["memory_server"]
    withheld = [TOKEN_VARIABLE] if server["url"] and TOKEN_VARIABLE in os.environ else []
    kept = {}
    for name, value in used.items():
        if name.startswith(KEY_PREFIXES) or without_secrets(value) != value:
            withheld.append(name)
        elif name.startswith("RAGCHAT_") or name in FOLDER_VARIABLES:
            kept[name] = str(user_path(value)) if name == HOME_VARIABLE else value
    # The arguments name the memory.
    for name in ("RAGCHAT_MEMORY", "RAGCHAT_MEMORY_PATH", "RAGCHAT_MEMORY_SERVER_URL", "RAGCHAT_STORE_URL"):
        kept.pop(name, None)
    return kept, withheld


def systemd(arguments: list[str], variables: Mapping[str, str], _home: Home) -> Service:
    """A unit of the user."""
    unit = f"{NAME}.service"
    folder = user_path(os.environ.get("XDG_CONFIG_HOME") or "~/.config") / "systemd" / "user"
    # The colon: a dollar sign begins no variable.
    first, *rest = [*program_command("ragchat"), *arguments]
    lines = [
        f"# {MARK}",
        "[Unit]",
        f"Description={TITLE}",
        "",
        "[Service]",
        f"ExecStart={' '.join(map(_quoted, (':' + first, *rest)))}",
        *(f"Environment={_quoted(f'{name}={value}')}" for name, value in variables.items()),
        "Restart=on-failure",
        f"RestartSec={RESTART_SECONDS}",
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    call = ("systemctl", "--user")
    return Service(
        folder / unit,
        "\n".join(lines) + "\n",
        start=((*call, "daemon-reload"), (*call, "enable", "--now", unit)),
        stop=((*call, "disable", "--now", unit),),
        removed=((*call, "daemon-reload"),),
        state=f"systemctl --user status {unit}",
        log=f"journalctl --user --unit {unit}",
    )


def _quoted(word: str) -> str:
    """As one word of a unit, where a percent sign begins a specifier."""
    for sign, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("%", "%%")):
        word = word.replace(sign, escaped)
    return f'"{word}"'


def launchd(arguments: list[str], variables: Mapping[str, str], home: Home) -> Service:
    """A launch agent of the user."""
    log = home.state / f"{NAME}.log"
    agent = {
        "Label": NAME,
        "ProgramArguments": [*program_command("ragchat"), *arguments],
        "EnvironmentVariables": dict(variables),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": RESTART_SECONDS,
        "StandardOutPath": str(log),
        "StandardErrorPath": str(log),
    }
    text = plistlib.dumps(agent, sort_keys=False).decode()
    file = user_path(f"~/Library/LaunchAgents/{NAME}.plist")
    domain = f"gui/{os.getuid() if sys.platform != 'win32' else 0}"
    return Service(
        file,
        text.replace("<plist", f"<!-- {MARK} -->\n<plist", 1),
        start=(("launchctl", "bootstrap", domain, str(file)),),
        stop=(("launchctl", "bootout", f"{domain}/{NAME}"),),
        state=f"launchctl print {domain}/{NAME}",
        log=str(log),
    )


def scheduled_task(arguments: list[str], variables: Mapping[str, str], home: Home) -> Service:
    """A task that starts when the user logs on."""
    # A task has no variables of its own, and a console program would open a window.
    program = Path(sys.executable).with_name("pythonw.exe")
    code = f"import os; os.environ.update({dict(variables)!r}); from ragchat.cli import main; exit(main())"
    words = subprocess.list2cmdline(["-P", "-X", "utf8", "-c", code, *arguments])
    user = escape("\\".join(os.environ.get(name, "") for name in ("USERDOMAIN", "USERNAME")))
    text = Template(Path(__file__).with_name("scheduled_task.xml").read_text("utf-8")).substitute(
        description=f"{TITLE}. {MARK}", user=user, program=escape(str(program)), arguments=escape(words)
    )
    # Not in RAGCHAT_HOME, which may be another one when the task is removed.
    file = Home.find({}).config / f"{NAME}.xml"
    return Service(
        file,
        text,
        # Without /f: a task that is not ours is not replaced.
        start=(
            ("schtasks", "/create", "/tn", NAME, "/xml", str(file)),
            ("schtasks", "/run", "/tn", NAME),
        ),
        stop=(("schtasks", "/end", "/tn", NAME), ("schtasks", "/delete", "/f", "/tn", NAME)),
        state=f"schtasks /query /v /fo list /tn {NAME}",
        log=str(home.state / LOG_FILE),
        encoding="utf-16",
    )
