"""The process of the memory server: its command, its environment, its log, its restarts."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ragchat import __version__
from ragchat.log import server_log
from ragconfig.settings import Settings

if TYPE_CHECKING:
    from ragchat.memory.supervisor import Supervised

CLIENT_NAME = "ragchat"
STDERR_FILE = "ragmemory.log"
TOOLSETS = "memory,search,documents,history,ingestion,code,maintenance"
# Calls that are sent again when the server dies: reading changes nothing, and Inject is an upsert.
REPEATABLE = frozenset(
    {
        *(
            "Query",
            "Inject",
            "list_documents",
            "get_document",
            "list_journal",
            "get_memory_stats",
            "verify_memory",
        ),
        *("list_versions", "diff_versions", "export_documents", "import_documents"),
        *("start_ingestion", "get_ingestion_status", "cancel_ingestion"),
        *("add_sources", "list_sources", "sync_sources", "trace_symbol"),
    }
)

# The part of our environment that the server inherits. Not all of it: keys and tokens of other programs are
# often there. These are the lists of MCP's SDKs, and the variables by which Python and its libraries find
# files, reach the network, and choose their number of threads.
INHERITED = frozenset(
    name
    for names in (
        "HOME LOGNAME PATH SHELL TERM USER TZ LANG LANGUAGE TMPDIR TMP TEMP NO_COLOR VIRTUAL_ENV",
        "APPDATA COMSPEC HOMEDRIVE HOMEPATH LOCALAPPDATA NUMBER_OF_PROCESSORS PATHEXT PROGRAMDATA",
        "PROCESSOR_ARCHITECTURE PROGRAMFILES SYSTEMDRIVE SYSTEMROOT USERNAME USERPROFILE WINDIR",
        "RAGCHAT_HOME HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY REQUESTS_CA_BUNDLE CURL_CA_BUNDLE",
    )
    for name in names.split()
)
INHERITED_PREFIXES: tuple[str, ...] = (
    *("LC_", "XDG_", "LD_", "DYLD_", "PYTHON", "COVERAGE_"),
    *("SSL_", "OMP_", "OPENBLAS_", "MKL_", "RAYON_", "TOKENIZERS_"),
    # The settings of memory, but not those of the chat: model.base_url may hold a password.
    *("RAGCHAT_MEMORY", "RAGCHAT_LIMITS_", "RAGCHAT_EMBEDDER_", "RAGCHAT_CHUNKING_", "RAGCHAT_RANKING_"),
    *("RAGCHAT_HTTP_", "RAGCHAT_RERANKER_"),
)
OPENAI_PREFIX = "OPENAI_"
# Where models are downloaded from, and as whom.
HUGGINGFACE_PREFIX = "HF_"
OPENAI_KEY = "OPENAI_API_KEY"


def program(settings: Settings, config_file: Path | None, verbose: bool) -> list[str]:
    """`ragmemory` on this memory, with the settings of this run."""
    # -P: a file in the working folder must not shadow a module of the server.
    words = [sys.executable, "-P", "-X", "utf8", "-m", "ragmemory", "--memory", str(settings.memory_path)]
    words += ["--config", str(config_file)] if config_file else []
    return [*words, "-v"] if verbose else words


def command(settings: Settings, config_file: Path | None, verbose: bool) -> list[str]:
    # The files are those that the user names.
    return [*program(settings, config_file, verbose), "--toolsets", TOOLSETS, "--root=*"]


def environment(settings: Settings, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The server's environment: without the model's key, unless the embedder uses the same one."""
    embedder = settings.tables["embedder"]
    prefixes = INHERITED_PREFIXES
    if embedder["kind"] == "openai":
        prefixes = (*prefixes, OPENAI_PREFIX)
    if "fastembed" in (embedder["kind"], settings.tables["reranker"]["kind"]):
        prefixes = (*prefixes, HUGGINGFACE_PREFIX)
    withheld = {OPENAI_KEY} if embedder["key_file"] else set()
    return {
        name: value
        for name, value in environ.items()
        # Proxies are usually set in lower case.
        if (name.upper() in INHERITED or name.upper().startswith(prefixes)) and name not in withheld
    }


def supervised(
    settings: Settings, config_file: Path | None, *, verbose: bool, lazy: bool = False
) -> Supervised:
    """A server of our own. Entering starts it in the background, or with `lazy` the first call does.

    It is restarted when it dies.
    """
    from ragchat.memory.supervisor import Supervised
    from ragmcp.stdio.stdio import open_stdio

    start = partial(
        open_stdio,
        command(settings, config_file, verbose),
        stderr=server_log(settings.home.state / STDERR_FILE),
        env=environment(settings),
        message_bytes=settings.tables["limits"]["message_bytes"],
        era="modern",
        client_name=CLIENT_NAME,
        client_version=__version__,
    )
    return Supervised(start, REPEATABLE, lazy=lazy)
