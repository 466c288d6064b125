"""`ragchat watch`: keep memory in step with folders while their files change.

The operating system reports changes; where it does not, all files are synced from time to time. A burst of
changes becomes one sync of the changed files. A sync that fails is tried again. A folder that disappears
keeps its documents, and is synced when it is back. Web pages are asked for from time to time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing, suppress
from datetime import datetime
from functools import partial
from os.path import commonpath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import anyio

from ragchat.commands.invocation import Invocation
from ragchat.console import describe
from ragchat.errors import PathNotFound, RagChatError
from ragchat.formatting import utc_now
from ragchat.ingest.loading import sync_files
from ragchat.ingest.report import InjectReport
from ragchat.uris import short_uri
from ragcommon.errors import leaf, os_reason
from ragcommon.files.uris import is_address, path_of
from ragcommon.sqlite.wal import Identity, identity
from ragcommon.text.rules import counted
from ragconfig.home import user_path
from ragmcp.backoff import Backoff
from ragmcp.concurrency import background_task

if TYPE_CHECKING:
    from ragchat.memory.client import MemoryClient

# A burst of changes ends when nothing has changed for `DEBOUNCE_MS`, or after `MAX_DELAY_MS`.
DEBOUNCE_MS, MAX_DELAY_MS = 200, 2_000
# How often the paths are checked: a remounted disk reports no change.
POLL_MS = 500
# Of which files the operating system reports changes: of none if a limit of it is reached; not of all if a
# folder cannot be read. Then all are synced every LOOK_SECONDS: 20,000 unchanged files take half a second.
ALL, SOME, NOTHING = range(3)
LOOK_SECONDS = 15.0
# Seconds until a sync that has failed is tried again, unless something changes before: at first, and at most.
FIRST_PAUSE, MAX_PAUSE = 5.0, 300.0
# Seconds until a file that has just been synced is synced again: at first, and at most if it keeps changing.
FIRST_REST, MAX_REST = 2.0, 60.0
# More changes than these are synced as a whole.
MAX_CHANGES = 1_000
SHOWN = ("added", "updated", "removed", "missing", "failed")
# If one sync changes more documents than these in the same way, one line counts them.
MAX_LINES = 20
# Seconds between two requests for a web page: few change more often, and most servers belong to others.
PAGES_SECONDS = 3600.0


async def watch(run: Invocation) -> None:
    """Runs until a signal ends it, which is its success. With `--service` the system runs it."""
    if run.arguments.service:
        from ragchat.commands.service import run_service

        if run.arguments.install:
            async with run.memory() as memory:  # It would fail again and again without a source.
                await _roots(run, memory)
        paths, pages = _named(run)
        run_service(run, [*map(str, paths), *pages])
        return
    run.console.lines = True
    with suppress(anyio.get_cancelled_exc_class()):
        async with run.memory(pages=True) as memory:
            roots, pages = await _roots(run, memory)
            watching = Watch(run, memory, roots)
            async with background_task(partial(watching.poll, pages)):
                await (watching.run() if roots else anyio.sleep_forever())


async def _roots(run: Invocation, memory: MemoryClient) -> tuple[list[Path], list[str]]:
    """The resolved paths and the addresses that the user names, or else the sources. Raises PathNotFound."""
    if not run.arguments.paths:
        sources = [source for source in await memory.sources() if not source.machine]
        if not sources:
            await sync_files(memory)  # raises the error that says what to do
        uris = [source.uri for source in sources]
        return [path_of(uri) for uri in uris if not is_address(uri)], [*filter(is_address, uris)]
    return _named(run)


def _named(run: Invocation) -> tuple[list[Path], list[str]]:
    """The resolved paths and the addresses on the command line. Raises PathNotFound."""
    roots = []
    words = run.arguments.paths
    for word in (word for word in words if not is_address(word)):
        try:
            roots.append(user_path(word).resolve(strict=True))
        except (OSError, RuntimeError):
            raise PathNotFound(word) from None
    return roots, [*filter(is_address, words)]


class Pacing:
    """When a changed file may be synced: one that keeps changing, such as a log, ever more seldom.

    Each sync of it stores a version, and the journal keeps the last ones of the whole memory.
    """

    def __init__(self) -> None:
        self._rests: dict[Path, tuple[float, float]] = {}  # when it ends, and how long it takes

    def ready(self, changed: Iterable[Path], now: float) -> list[Path]:
        """Those that may be synced now, in seconds of any clock."""
        return [path for path in changed if now >= self._rests.get(path, (0.0, 0.0))[0]]

    def synced(self, paths: Iterable[Path], now: float) -> None:
        """Begin a rest for each file, twice as long as its last one if it changed again soon after that."""
        rests = {path: (end, rest) for path, (end, rest) in self._rests.items() if now < end + rest}
        lengths = {path: min(max(FIRST_REST, 2 * rests.get(path, (0, 0))[1]), MAX_REST) for path in paths}
        self._rests = rests | {path: (now + rest, rest) for path, rest in lengths.items()}


class Watch:
    """Watches files and folders, which are resolved, and prints a line for each change of memory."""

    def __init__(self, run: Invocation, memory: MemoryClient, roots: Sequence[Path]) -> None:
        self._run = run
        self._memory = memory
        self._roots = roots
        self._coverage, self._reason = ALL, ""
        self._shown: dict[str, tuple[str, str | None]] = {}  # what failed or was skipped, and why
        own = run.settings.memory_path if memory.mirror is None else memory.mirror.path
        self._memory_file = own.resolve()

    async def run(self) -> NoReturn:
        """Runs until cancelled. Raises NotWatched, and RagChatError if the first sync fails."""
        before: dict[Path, Identity | None] = {}
        while True:
            now = self._identities()
            present = [root for root in self._roots if now[root] is not None]
            for root in self._roots:
                if now[root] is None and before.get(root, ()) is not None:
                    self._show("missing", root.as_uri())
                    before[root] = None
            try:
                if await self._follow(present, now, before):
                    before = now
            except FileNotFoundError:  # It disappeared after the check.
                await anyio.sleep(POLL_MS / 1000)

    async def _follow(
        self, roots: Sequence[Path], now: dict[Path, Identity | None], before: dict[Path, Identity | None]
    ) -> bool:
        """Sync `roots` and then every change, until they must be watched again, and synced as a whole.

        Another file or folder may have taken one of their paths. Returns whether the watch had begun.
        """
        # Kept until a sync has succeeded. The first one is of everything.
        changed: dict[Path, None] = {}
        is_whole, due, is_watched = True, 0.0, False
        pauses, pacing = Backoff(FIRST_PAUSE, MAX_PAUSE), Pacing()
        async with aclosing(self._rounds(roots)) as rounds:
            # The first round comes after POLL_MS at the latest. The watch has begun then: no change is lost.
            async for changes in rounds:
                if is_watched and self._identities() != now:
                    break
                new = self._relevant(Path(path) for _, path in changes)
                changed |= dict.fromkeys(new)
                is_whole |= len(changed) > MAX_CHANGES or any(one.name == ".gitignore" for one in new)
                ready = [] if is_whole else pacing.ready(changed, anyio.current_time())
                if not (is_whole or ready) or (not new and anyio.current_time() < due):
                    continue
                if await self._sync(roots, ready, may_fail=is_watched or bool(before)):
                    changed = {} if is_whole else dict.fromkeys(changed.keys() - set(ready))
                    is_whole, due = False, 0.0
                    pauses.reset()
                    pacing.synced(ready, anyio.current_time())
                else:
                    due = anyio.current_time() + max(FIRST_PAUSE, pauses.next())
                for root in roots if not is_watched else ():
                    if before.get(root) != now[root]:
                        self._show("watching", root.as_uri(), error=self._reason or None)
                is_watched = True
        return is_watched

    async def _rounds(self, roots: Sequence[Path]) -> AsyncGenerator[set[tuple[Any, str]], None]:
        """The changes, empty sets while there are none, until the watch has to begin again.

        Raises FileNotFoundError.
        """
        from watchfiles import Change, awatch

        reports = (
            _silence()
            if self._coverage == NOTHING
            else awatch(
                *roots,
                watch_filter=None,
                debounce=MAX_DELAY_MS,
                step=DEBOUNCE_MS,
                rust_timeout=POLL_MS,
                yield_on_timeout=True,
                # It hides every error, and what comes after one is not watched.
                ignore_permission_denied=self._coverage == SOME,
            )
        )
        has_begun, looked_at = False, anyio.current_time()
        try:
            async with aclosing(reports):
                async for changes in reports:
                    has_begun = True
                    if self._coverage != ALL and anyio.current_time() - looked_at >= LOOK_SECONDS:
                        looked_at = anyio.current_time()
                        changes |= {(Change.modified, str(root)) for root in roots}
                    yield changes
        except FileNotFoundError:
            raise
        except (OSError, RuntimeError, ExceptionGroup) as error:
            if not has_begun:  # Else it was a changed file whose name is not UTF-8.
                self._coverage += 1
                self._reason = f"is compared every {LOOK_SECONDS:g} s: {os_reason(leaf(error))}"

    async def poll(self, pages: Sequence[str]) -> None:
        """Sync web pages every PAGES_SECONDS, until cancelled."""
        for page in pages:
            self._show("watching", page)
        while pages:
            await self._sync(pages, (), may_fail=True)
            await anyio.sleep(PAGES_SECONDS)

    async def _sync(self, roots: Sequence[Path | str], within: Sequence[Path], *, may_fail: bool) -> bool:
        """Sync the roots, or what is `within` them, and print what has changed; False if it failed."""
        if not roots:
            return True
        report, failure = InjectReport(), None
        try:
            await sync_files(self._memory, roots, report=report, within=within)
        except RagChatError as error:
            if not may_fail:
                raise
            self._run.log(error)
            failure = describe(error).message
        # Files are missing only if their whole folder is empty: that is named below instead.
        outcomes = [
            one
            for one in report.outcomes
            if one.status in SHOWN and (one.status != "missing" or is_address(one.uri))
        ]
        errors = {document.uri: document.error for document in report.documents}
        for status in dict.fromkeys(one.status for one in outcomes):
            same = [one for one in outcomes if one.status == status]
            is_listed = self._run.console.json or status == "failed" or is_address(same[0].uri)
            if len(same) > MAX_LINES and not is_listed:
                folder = Path(commonpath([path_of(one.uri) for one in same]))
                self._print(status, f"{short_uri(folder.as_uri())} ({counted(len(same), 'document')})")
                continue
            for one in same:
                reason = errors.get(one.uri) or one.reason or None
                if not self._is_repeated(status, one.uri, reason, within):
                    self._show(status, one.uri, one.document_id, one.chunks, reason)
        for skipped in report.skipped:
            if (path := Path(skipped.path)) in roots:  # such as one without files
                uri = path.as_uri()
                if not self._is_repeated("skipped", uri, skipped.reason, within):
                    self._show("skipped", uri, error=skipped.reason)
        if failure:
            self._show("failed", "", error=failure)
        return failure is None

    def _is_repeated(self, status: str, uri: str, reason: str | None, within: Sequence[Path]) -> bool:
        """Whether a file fails as it did in the sync before, and has not changed since."""
        before = self._shown.pop(uri, None)
        if status in ("failed", "skipped"):
            self._shown[uri] = status, reason
        return before == (status, reason) and uri not in {path.as_uri() for path in within}

    def _relevant(self, paths: Iterable[Path]) -> list[Path]:
        """The changed paths without those that no walk reaches. The memory server knows the other rules."""
        return [path for path in dict.fromkeys(paths) if not self._is_left_out(path)]

    def _is_left_out(self, path: Path) -> bool:
        memory = self._memory_file
        if path.is_relative_to(memory.parent):
            name = path.relative_to(memory.parent).parts[:1]
            if name and name[0].startswith(memory.name):
                return True
        for root in self._roots:
            if path.is_relative_to(root):
                names = path.relative_to(root).parts
                if not any(name.startswith(".") and name != ".gitignore" for name in names):
                    return False
        return True

    def _identities(self) -> dict[Path, Identity | None]:
        """The identity of the file or folder at each root; None if there is none."""
        return {root: identity(root) for root in self._roots}

    def _show(
        self, status: str, uri: str, document_id: str | None = None, chunks: int = 0, error: str | None = None
    ) -> None:
        if self._run.console.json:
            line: dict[str, Any] = {"at": utc_now(), "status": status, "uri": uri}
            line |= {"document_id": document_id, "chunks": chunks, "error": error}
            self._run.console.document(line)
            return
        text = error if error and status == "failed" else short_uri(uri)
        if error and status != "failed":
            text += f" {error}"
        if chunks:
            text += f" ({counted(chunks, 'chunk')})"
        self._print(status, text)

    def _print(self, status: str, text: str) -> None:
        self._run.console.print(f"{datetime.now():%H:%M:%S}  {status:<8}  {text}")


async def _silence() -> AsyncGenerator[set[tuple[Any, str]], None]:
    """The rounds of a watch without a change."""
    while True:
        yield set()
        await anyio.sleep(POLL_MS / 1000)
