"""`ragchat model setup`: find the servers of models on this machine, try them, and write the choice."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec.structs import replace

from ragchat.commands.changing import BACK, agree, before, change, require_own, shown, with_secrets_hidden
from ragchat.commands.embedder import pull_with_bar
from ragchat.commands.invocation import Invocation
from ragchat.commands.stdin import read_line
from ragchat.console import Failure
from ragchat.errors import ModelFailed, ModelNotFound
from ragchat.formatting import seconds
from ragchat.llm.discovery import AUTO, choose, same_tag, with_tag
from ragchat.llm.servers import ModelServer, Trial, find_servers, try_model
from ragchat.llm.types import OFFLINE
from ragchat.settings import ModelSettings
from ragcommon.concurrency import gathered
from ragcommon.files.uris import without_secrets
from ragconfig.keys import OPENAI_URL
from ragconfig.writing import Value

KEYS = ("model.name", "model.base_url")
OLLAMA = "Ollama"
NOTHING_FOUND = (
    "Nothing was found. Start Ollama (https://ollama.com), LM Studio, llama.cpp's server or vLLM, or set "
    "OPENAI_API_KEY, and run this command again. Without a model, answers are quotations."
)


async def setup(run: Invocation) -> int:
    """Write the model that the user names or chooses. In a pipe nothing is asked: without --use and --yes,
    what was found is printed.
    """
    require_own(run, KEYS)
    wanted, settings = run.arguments.use, run.settings.table("model", ModelSettings)
    if wanted in BACK:
        return _write(run, before(run, "model"))
    if wanted in (AUTO, OFFLINE):
        return _write(run, {"model.name": wanted, "model.base_url": ""})
    servers = await find_servers(settings, os.environ)
    if not wanted:
        return await _offer(run, servers, settings)
    server, name = await _named(run, wanted, servers)
    trial = await try_model(server, name, settings, os.environ)
    if trial.problem:
        raise ModelFailed(trial.problem)
    return _write(run, _changes(run, server, name), trial)


async def _offer(run: Invocation, servers: Sequence[ModelServer], settings: ModelSettings) -> int:
    """Show what was found, and write what the user chooses. Exit code 1 if nothing answers."""
    trials = await _try_all(servers, settings)
    answering = [(server, trial) for server, trial in zip(servers, trials, strict=True) if not trial.problem]
    public = [replace(server, base_url=without_secrets(server.base_url)) for server in servers]
    if not run.console.json:
        _show(run, public, trials)
    if answering and (run.arguments.yes or run.can_ask):
        place = 1 if run.arguments.yes else await _asked(len(answering))
        if place:
            server, trial = answering[place - 1]
            return _write(run, _changes(run, server, trial.model), trial)
    failure = None if answering else Failure("NO_MODEL", NOTHING_FOUND.partition(". ")[0] + ".")
    if run.console.json:
        rows = [{"server": server, "trial": trial} for server, trial in zip(public, trials, strict=True)]
        run.console.document({"found": rows, "written": None}, failure)
    elif answering:
        run.console.note("Nothing has changed. `--use NAME` takes a model, --yes the first that answers.")
    return 0 if answering else 1


async def _try_all(servers: Sequence[ModelServer], settings: ModelSettings) -> list[Trial]:
    """Ask one model of each server, at the same time."""

    async def ask(server: ModelServer) -> Trial:
        if server.problem:
            return Trial("", problem=server.problem)
        wanted = settings.openai_model if server.base_url == OPENAI_URL else settings.name
        name = choose(server.models, wanted)
        assert name is not None  # `problem` says that there is none
        return await try_model(server, name, settings, os.environ)

    return await gathered(ask, servers)


async def _named(run: Invocation, wanted: str, servers: Sequence[ModelServer]) -> tuple[ModelServer, str]:
    """The server that has the model, which Ollama may have to pull. Raises ModelNotFound, NotAgreed."""
    for server in servers:
        if name := same_tag(wanted, server.models):
            return server, name
    here = next((server for server in servers if server.name == OLLAMA), None)
    if here is None:
        raise ModelNotFound(wanted)
    agree(run, f"Ollama must download {wanted}.")
    await pull_with_bar(run, wanted)
    return here, with_tag(wanted)


def _show(run: Invocation, servers: Sequence[ModelServer], trials: Sequence[Trial]) -> None:
    rows, number = [], 0
    for server, trial in zip(servers, trials, strict=True):
        number += not trial.problem
        answer = trial.problem or f"answered in {seconds(trial.seconds)}"
        others = f" (of {len(server.models)})" if len(server.models) > 1 else ""
        name = f"{trial.model}{others}" if trial.model else ""
        rows.append((number if not trial.problem else "", server.name, server.base_url, name, answer))
    run.console.listing(None, ("", "server", "address", "model", ""), rows, NOTHING_FOUND)
    if any(server.name == OLLAMA and not server.models for server in servers):
        run.console.note("`ragchat model setup --use NAME` has Ollama download a model, such as qwen3:8b.")


async def _asked(most: int) -> int:
    """The number that the user types; 0 for none."""
    line = await read_line(f"Which one? 1 to {most}, or Enter for none: ")
    return int(line) if line and line.isdecimal() and 1 <= int(line) <= most else 0


def _changes(run: Invocation, server: ModelServer, name: str) -> dict[str, Value]:
    """Without an address, a named model is looked for at Ollama, and else at OpenAI."""
    is_usual = server.base_url in (run.settings.tables["model"]["ollama_url"], OPENAI_URL)
    is_found = is_usual and not os.environ.get("OPENAI_BASE_URL")
    changes: dict[str, Value] = {"model.name": name, "model.base_url": "" if is_found else server.base_url}
    if run.settings.tables["model"]["key_file"] and not server.takes_key:
        changes["model.key_file"] = ""  # The key of another server.
    return changes


def _write(run: Invocation, changes: dict[str, Value], trial: Trial | None = None) -> int:
    file, changes = change(run, "model", changes), with_secrets_hidden(changes)
    lines = [f"{trial.model} answered in {seconds(trial.seconds)}."] if trial else []
    lines += [f"Wrote into {file}: {shown(changes)}.", "`ragchat model setup --use back` takes that back."]
    if changes.get("model.base_url") and os.environ.get("OPENAI_API_KEY"):
        lines.append(f"OPENAI_API_KEY is set: it is sent to {changes['model.base_url']}, too.")
    return run.console.result({"written": changes, "settings": str(file), "trial": trial}, *lines)
