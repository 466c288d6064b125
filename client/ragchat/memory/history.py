"""Groups of writes that are undone together, and sentences about versions and undo."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ragchat.uris import short_uri
from ragcommon.contract.search import format_uri
from ragcommon.files.uris import path_of
from ragcommon.text.rules import counted

if TYPE_CHECKING:
    from ragchat.memory.client import MemoryClient
    from ragcommon.contract.documents import Forgotten
    from ragcommon.contract.history import Entry, Origin, Restored, Undone, Version
    from ragconfig.settings import Settings

_NAMED = 3


def new_group() -> str:
    """An id for the writes of one command."""
    return os.urandom(4).hex()


def can_restore(settings: Settings) -> bool:
    """Whether memory keeps the text of what is removed."""
    return bool(settings.tables["memory"]["undo_depth"] > 0)


def writer(origin: Origin) -> str:
    """The program that wrote, with its machine if that is another one."""
    return f"{origin.client} ({origin.host})" if origin.host else origin.client


def what(entry: Entry) -> str:
    """What an entry of the journal did. An undo is recorded as "restored", also that of an addition."""
    return "undone" if entry.action == "restored" else entry.action


def size(version: Version) -> str:
    """The characters of a version's text."""
    if version.action == "removed":
        return ""
    return "no longer kept" if version.characters is None else f"{version.characters:,}"


def removed(done: Forgotten) -> str:
    """The outcome of removing a document."""
    return f"Removed {short_uri(done.uri)} ({counted(done.chunks, 'chunk')})."


def restored(done: Restored) -> str:
    """The outcome of restoring a version."""
    if done.status == "unchanged":
        return f"{short_uri(done.uri)} is the same as its version {done.version}."
    chunks = counted(done.chunks, "chunk")
    return f"Restored version {done.version} of {short_uri(done.uri)} ({chunks})."


async def next_sync(memory: MemoryClient, done: Restored) -> str:
    """What the next sync does to a restored document, and how to prevent it; "" for nothing."""
    if not done.next_sync:
        return ""
    effect = "removes it again, because its file is gone or holds no text"
    if done.next_sync == "updated":
        effect = "loads the text of its file again"
    file = str(path_of(done.uri))
    # The text of another format would destroy its file.
    is_file = format_uri(done.uri, (await memory.show(done.document_id)).metadata)
    target = file if is_file else f"{file}.md"
    command = f"ragchat memory show {shlex.quote(file)} > {shlex.quote(target)}"
    return f"The next sync {effect}. To keep it: {command}"


def sentences(undone: Undone) -> Iterator[str]:
    """What was undone, and what was not."""
    done = undone.by_document or undone.writes  # of an older server
    (first, count), *others = done.items()
    if count == 1 and not others:
        back = " It is back in memory." if first == "removed" else ""
        yield f"Undone: {short_uri(undone.entry.uri)} was {first}.{back}"
    else:
        parts = [f"{counted(count, 'document')} {'was' if count == 1 else 'were'} {first}"]
        back = " What was removed is back in memory." if "removed" in done else ""
        yield f"Undone: {', '.join(parts + [f'{count:,} {action}' for action, count in others])}.{back}"
    if undone.kept:
        names = [short_uri(uri) for uri in undone.kept[:_NAMED]]
        if more := len(undone.kept) + undone.more_kept - len(names):
            names.append(f"{more:,} more")
        yield f"Not undone, because changed again since: {', '.join(names)}."
