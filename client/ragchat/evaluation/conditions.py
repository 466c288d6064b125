"""What an answer depends on besides the question, and what differs between two times."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from ragchat import __version__
from ragchat.uris import absolute_scope, short_uri
from ragcommon.files.uris import without_secrets
from ragcommon.text.rules import counted
from ragconfig.settings import SERVER_TABLES

if TYPE_CHECKING:
    from ragchat.conversation import Conversation
    from ragchat.memory.client import MemoryClient

# Without paths of keys and what may hold keys, and without what only bounds time and size.
TABLES = ("model", "retrieval", *(name for name in SERVER_TABLES if name != "limits"))
LEFT_OUT = frozenset(
    {
        *("model.name", "model.prices", "model.extra_body"),
        *("model.key_file", "index.key_file", "embedder.key_file"),
    }
)
# The writes to memory that are looked at, and the documents that are named.
MAX_WRITES, MAX_NAMED = 1_000, 3


class Conditions(Struct, frozen=True):
    version: str
    model: str
    memory: str  # its path or URL
    embedder: str
    documents: int
    scope: str  # of the documents that were asked
    system_prompt: str  # the beginning of the hash of all instructions
    settings: dict[str, Any]  # by their keys
    notebook: str = ""
    role: str = ""


async def conditions(conversation: Conversation, model: str) -> Conditions:
    """Those of the answers of a model. Raises what memory raises."""
    stats, scope = await conversation.memory.stats(), conversation.scope.name
    return Conditions(
        version=__version__,
        model=model,
        memory=stats.path,
        embedder=stats.embedder,
        documents=stats.documents,
        scope=scope and absolute_scope(scope),
        system_prompt=prompt_hash(conversation),
        settings={
            key: without_secrets(value)
            for table in TABLES
            for name, value in conversation.settings.tables[table].items()
            if (key := f"{table}.{name}") not in LEFT_OUT
        },
        notebook=conversation.notebook_name,
        role=conversation.role,
    )


def prompt_hash(conversation: Conversation) -> str:
    return hashlib.sha256(conversation.instructions.encode()).hexdigest()[:8]


async def changed_documents(memory: MemoryClient, since: str) -> list[str]:
    """The URIs of the documents that were written since a time (ISO 8601), the last one first."""
    written = [entry for entry in await memory.journal(MAX_WRITES) if entry.at > since]
    return list(dict.fromkeys(entry.uri for entry in written))


def differences(before: Conditions, now: Conditions, changed: Sequence[str]) -> Iterator[str]:
    """A line for each setting that differs, and one for the `changed` documents."""
    one, other = ({**structs.asdict(given), **given.settings} for given in (before, now))
    for name in one | other:
        if name not in ("documents", "settings") and one.get(name) != other.get(name):
            yield f"{name}: {_shown(one.get(name))} → {_shown(other.get(name))}"
    if changed and before.memory == now.memory:
        named = ", ".join(map(short_uri, changed[:MAX_NAMED]))
        yield f"{counted(len(changed), 'document')} changed: {named}{', …' * (len(changed) > MAX_NAMED)}"
    elif before.documents != now.documents:
        yield f"documents: {before.documents:,} → {now.documents:,}"


def _shown(value: object) -> str:
    return str(value) if value not in (None, "") else "none"
