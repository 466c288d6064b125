"""The process of the memory server: its command, its environment, its log, its restarts."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial

from ragchat import CLIENT_NAME, __version__
from ragchat.log import ServerLog
from ragchat.servers.environment import inherited
from ragchat.servers.supervisor import Supervised
from ragconfig.settings import Settings

STDERR_FILE = "ragmemory.log"
TOOLSETS = "memory,search,documents,history,ingestion,code,maintenance"
# Prefixes of further variables that our own server inherits: those with which Python and its libraries find
# files and choose their number of threads.
OWN_PREFIXES: tuple[str, ...] = (
    *("RAGCHAT_HOME", "LD_", "DYLD_", "PYTHON", "COVERAGE_"),
    *("OMP_", "OPENBLAS_", "MKL_", "RAYON_", "TOKENIZERS_"),
    # The settings of memory, but not those of the chat: model.base_url may hold a password.
    *("RAGCHAT_MEMORY", "RAGCHAT_STORE_", "RAGCHAT_LIMITS_", "RAGCHAT_EMBEDDER_", "RAGCHAT_CHUNKING_"),
    *("RAGCHAT_RANKING_", "RAGCHAT_HTTP_", "RAGCHAT_RERANKER_", "RAGCHAT_INDEX_", "RAGCHAT_LOG_"),
    "RAGCHAT_OCR_",
)
OPENAI_PREFIX = "OPENAI_"
# libpq's variables: the password among them.
POSTGRES_PREFIX = "PG"
QDRANT_PREFIX = "QDRANT_"
# Address and credentials for downloading models.
HUGGINGFACE_PREFIX = "HF_"
OPENAI_KEY = "OPENAI_API_KEY"
# The settings that choose an embedder.
EMBEDDER_KEYS = ("kind", "model", "base_url")


def program(settings: Settings) -> list[str]:
    """`ragmemory` on this memory, with the settings of this run."""
    # -P: a file in the working folder must not shadow a module of the server.
    words = [sys.executable, "-P", "-X", "utf8", "-m", "ragmemory", "--memory", settings.memory_place]
    words += ["--config", str(settings.config_file)] if settings.config_file else []
    return [*words, "-v"] if settings.verbose else words


def command(settings: Settings, options: Sequence[str] = ()) -> list[str]:
    # The files are those that the user names.
    return [*program(settings), "--toolsets", TOOLSETS, "--root=*", *options]


def environment(
    settings: Settings, environ: Mapping[str, str] = os.environ, *, databases: bool = False
) -> dict[str, str]:
    """The server's environment: without the model's key, unless the embedder uses the same one.

    With `databases` it has libpq's variables even if the memory is a file.
    """
    embedder = settings.tables["embedder"]
    prefixes = OWN_PREFIXES
    if databases or settings.store_url:
        prefixes = (*prefixes, POSTGRES_PREFIX)
    if settings.tables["index"]["url"]:
        prefixes = (*prefixes, QDRANT_PREFIX)
    if embedder["kind"] == "openai":
        prefixes = (*prefixes, OPENAI_PREFIX)
    if "fastembed" in (embedder["kind"], settings.tables["reranker"]["kind"]):
        prefixes = (*prefixes, HUGGINGFACE_PREFIX)
    withheld = {OPENAI_KEY} if embedder["key_file"] else set()
    kept = {name: value for name, value in inherited(environ, prefixes).items() if name not in withheld}
    # Otherwise the server would read these again: from the user's file, which may have changed since, and for
    # a temporary memory those of the user's own.
    kept |= {f"RAGCHAT_EMBEDDER_{name.upper()}": embedder[name] for name in EMBEDDER_KEYS}
    if not settings.tables["index"]["url"]:
        kept["RAGCHAT_INDEX_URL"] = ""
    if not settings.tables["memory"]["read_only"]:
        kept["RAGCHAT_MEMORY_READ_ONLY"] = "false"
    return kept


def supervised(settings: Settings, *, lazy: bool = False, options: Sequence[str] = ()) -> Supervised:
    """A server of our own, started with these options: by `run`, or with `lazy` by the first call.

    It is restarted when it dies.
    """
    from ragmcp.stdio.connect import open_stdio

    start = partial(
        open_stdio,
        command(settings, options),
        stderr=ServerLog(settings.home.state / STDERR_FILE),
        env=environment(settings),
        message_bytes=settings.tables["limits"]["message_bytes"],
        era="modern",
        client_name=CLIENT_NAME,
        client_version=__version__,
    )
    return Supervised(start, lazy=lazy)
