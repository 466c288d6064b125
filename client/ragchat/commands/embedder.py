"""`ragchat embedder`: list what can embed, and change to another embedder after a comparison."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from msgspec.structs import replace

from ragchat.commands.changing import BACK, agree, before, change, require_own, with_secrets_hidden
from ragchat.commands.invocation import Invocation
from ragchat.console import Failure
from ragchat.conversation import Conversation
from ragchat.errors import MemoryUnavailable, NotOurEmbedder
from ragchat.evaluation.cases import Case
from ragchat.evaluation.judging import Outcome, judge_cases
from ragchat.evaluation.runs import compare, sentence
from ragchat.evaluation.store import EvaluationStore
from ragchat.formatting import seconds
from ragchat.llm.embedders import Choice, choices, named
from ragchat.llm.ollama import pull
from ragchat.memory.client import MemoryClient
from ragchat.servers.manager import ServerManager
from ragchat.servers.memory.process import EMBEDDER_KEYS, environment, program
from ragchat.servers.memory.server import open_memory
from ragchat.sessions.store import sessions_path
from ragchat.settings import ModelSettings
from ragcommon.contract.maintenance import Stats
from ragcommon.files.writing import private_folder
from ragcommon.text.rules import counted
from ragconfig.settings import Settings, packaged
from ragconfig.writing import Value

KEYS = tuple(f"embedder.{name}" for name in EMBEDDER_KEYS)
BACK_HINT = "`ragchat embedder use back` goes back."


async def ls(run: Invocation) -> None:
    """The built-in embedder, the models of fastembed, and those of Ollama and of the configured endpoints."""
    async with run.memory() as memory:
        found = await choices(run.settings, await memory.embedders())
    rows = [
        (
            f"{'*' if one.in_use else ' '} {one.name}",
            *(one.where, _size(one.bytes), one.languages, one.licence),
            _state(one),
        )
        for one in found
    ]
    public = [replace(one, changes=with_secrets_hidden(one.changes)) for one in found]
    needs = dict.fromkeys(one.needs for one in found if one.needs)
    notes = [
        *(f"\nFor those of fastembed, run: {one}" for one in needs),
        "\n`ragchat embedder use NAME` compares one with yours, and changes to it.",
    ]
    header = ("  embedder", "from", "size", "languages", "licence", "")
    run.console.listing({"embedders": public}, header, rows, notes=notes)


async def use(run: Invocation) -> int:
    """Embed the memory with another embedder, ask the user's cases with both, and change to it.

    Exit code 1, without any change, if it answers more of the cases worse than better.
    """
    require_own(run, KEYS)
    if url := run.settings.tables["memory_server"]["url"]:
        raise NotOurEmbedder(url)
    name = run.arguments.name
    async with run.memory() as memory:
        stats = await memory.stats()
        found = [] if name in BACK else await choices(run.settings, await memory.embedders())
    if name in BACK:
        return await _change(run, stats, before(run, "embedder"))
    chosen = named(name, found, run.settings)
    if chosen.in_use:
        done = {"embedder": chosen.name, "changed": False}
        return run.console.result(done, f"{chosen.name} is in use already.")
    _describe(run, chosen, stats)
    if chosen.needs:
        hint = f"Run: {chosen.needs}"
        return _refuse(run, "EXTRA_MISSING", f"{chosen.name} needs an extra of ragchat.", hint)
    await _download(run, chosen)
    return await _change(run, stats, chosen.changes)


async def _change(run: Invocation, stats: Stats, changes: dict[str, Value]) -> int:
    """Change the settings and the embeddings, after a comparison unless the user goes back."""
    settings = _with(run.settings, changes)
    async with open_memory(settings) as memory:
        with run.progress("Downloading") as on_progress:
            identity = (await memory.prepare_embedder(on_progress)).embedder
        if run.arguments.name not in BACK and identity != stats.embedder and stats.chunks:
            await _collect(run, memory)
            if not run.arguments.anyway and await _is_worse(run, settings):
                return _refuse(
                    run,
                    "EMBEDDER_WORSE",
                    f"{identity} answers more of your cases worse than better. Nothing has changed.",
                    f"`ragchat embedder use {run.arguments.name} --anyway` changes to it without embedding "
                    "again; `ragchat memory reembed --discard` deletes its embeddings.",
                )
        file = change(run, "embedder", changes)
        if identity != stats.embedder:
            with run.progress("Embedding") as on_progress:
                await memory.reembed(on_progress)
    run.console.result(
        {"embedder": identity, "previous": stats.embedder, "changed": True, "settings": str(file)},
        f"Memory is now embedded with {identity}; {file} says so. {BACK_HINT}",
    )
    run.console.note(
        "Programs that have this memory open must be started again. Another memory changes with `ragchat "
        "--memory PATH memory reembed`."
    )
    return 0


async def _download(run: Invocation, chosen: Choice) -> None:
    """Ask for consent; the models of fastembed are downloaded later. Raises NotAgreed, PullFailed."""
    if chosen.is_here:
        return
    size = _size(chosen.bytes) or "its size is not known yet"
    agree(run, f"{chosen.name} must be downloaded ({size}).")
    if chosen.changes["embedder.kind"] == "openai":
        await pull_with_bar(run, chosen.name)


async def pull_with_bar(run: Invocation, name: str) -> None:
    """Have Ollama download a model. Raises PullFailed."""
    with run.progress("Downloading") as on_progress:

        async def report(done: int, total: int) -> None:
            if on_progress:
                on_progress(done, total, None)

        await pull(name, run.settings.table("model", ModelSettings), report)


async def _collect(run: Invocation, memory: MemoryClient) -> None:
    """Embed all chunks; memory goes on with the old embeddings."""
    started = time.perf_counter()
    with run.progress("Embedding") as on_progress:
        done = await memory.reembed(on_progress, switch=False)
    took = time.perf_counter() - started
    run.console.note(f"Embedded {counted(done.computed, 'chunk')} in {seconds(took)}.")


async def _is_worse(run: Invocation, settings: Settings) -> bool:
    """Whether more of the user's cases become worse than better; False without any.

    They are asked in a copy of the memory, so that no one else gets answers of an embedder on trial.
    """
    async with EvaluationStore(sessions_path(run.settings)) as store:
        cases = await store.cases()
    if not cases:
        run.console.note("You have no cases of your own, so nothing was compared. /good and /bad save them.")
        return False
    run.console.note(f"Asking your {counted(len(cases), 'case')} with the embedder in use …")
    old = await _judged(run.settings, cases)
    with TemporaryDirectory(dir=private_folder(run.home.cache), ignore_cleanup_errors=True) as folder:
        copy = str(Path(folder) / "memory.db")
        # What it prints on stderr becomes the message of an error.
        words = [*program(replace(run.settings, verbose=False)), "copy"]
        done = await anyio.run_process(
            [*words, "--", run.settings.memory_place, copy],
            env=environment(run.settings, databases=True),
            check=False,
        )
        if done.returncode:
            raise MemoryUnavailable(done.stderr.decode(errors="replace").strip())
        run.console.note("Asking them with the new one …")
        copied = settings.with_memory(copy, "the copy for a comparison")
        new = await _judged(copied, cases, is_copy=True)
    changes = compare(old, new)
    for one in changes:
        run.console.note(f"  {sentence(one)}")
    right = [sum(outcome.right is True for outcome in outcomes) for outcomes in (old, new)]
    worse = sum(not one.better for one in changes)
    run.console.note(
        f"Right: {right[0]} before, {right[1]} now; {len(changes) - worse} better, {worse} worse."
    )
    return 2 * worse > len(changes)


async def _judged(settings: Settings, cases: Sequence[Case], *, is_copy: bool = False) -> list[Outcome]:
    """A copy changes to the new embedder first, whose embeddings it holds."""
    async with ServerManager(settings, only_memory=True) as servers:
        memory = await servers.open_memory(settings)
        if is_copy:
            await memory.reembed()
        async with Conversation(settings, memory, servers) as conversation:
            return await judge_cases(conversation, cases)


def _describe(run: Invocation, chosen: Choice, stats: Stats) -> None:
    licence = f"licence: {chosen.licence}" if chosen.licence else ""
    facts = ", ".join(filter(None, [chosen.where, _size(chosen.bytes), chosen.languages, licence]))
    run.console.note(f"{chosen.name}: {facts}.")
    run.console.note(f"Measured: {chosen.measured or 'nothing by this project'}.")
    if stats.chunks:
        run.console.note(f"Memory has {counted(stats.chunks, 'chunk')}, embedded with {stats.embedder}.")


def _refuse(run: Invocation, code: str, message: str, hint: str) -> int:
    failure = Failure(code, message, hint)
    if not run.console.json:
        run.console.failure(failure)
    return run.console.result({"changed": False}, failure=failure)


def _with(settings: Settings, changes: dict[str, Value]) -> Settings:
    """None is the packaged default."""
    defaults = packaged("memory.toml")["embedder"]
    named = {key.partition(".")[2]: value for key, value in changes.items()}
    values = {name: defaults[name] if value is None else value for name, value in named.items()}
    return settings.with_table("embedder", **values)


def _state(one: Choice) -> str:
    if one.in_use:
        return "in use"
    if one.needs:
        return "needs an extra"
    return "" if one.is_here else "to download"


def _size(bytes: int) -> str:
    return f"{bytes / 1e6:,.0f} MB" if bytes else ""
