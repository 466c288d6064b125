"""Load the web pages of one job: a page is fetched, read like a file of its kind, and injected."""

from __future__ import annotations

import codecs
import logging
import re
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import anyio
from anyio import to_thread
from msgspec.structs import replace

from ragcommon.contract.errors import FATAL
from ragcommon.contract.files import FileOutcome
from ragcommon.files.decoding import NotText, decode_as
from ragmemory.errors import RagMemoryError
from ragmemory.files.formats import html
from ragmemory.files.formats.detection import module_of, read
from ragmemory.files.formats.file_text import FileText
from ragmemory.files.loading import JobRun, metadata_of, outcome_of
from ragmemory.files.parsing import parse
from ragmemory.files.reading import READER_VERSION, read_file
from ragmemory.files.walking import SAVE_AS, UNSUPPORTED
from ragmemory.ingest.documents import MARKDOWN
from ragmemory.stores.chunks import text_digest
from ragmemory.web.fetching import NotFetched, Page, Web

if TYPE_CHECKING:
    from ragmemory.files.ocr import Ocr
    from ragmemory.ingest.writer import Writer
    from ragmemory.stores.store import Store

HOSTS_AT_ONCE = 4
# The file extensions of media types; for others the address has it.
SUFFIXES = {
    **{"text/html": ".html", "application/xhtml+xml": ".html", "text/markdown": ".md"},
    **{"image/png": ".png", "image/jpeg": ".jpg", "image/tiff": ".tif", "image/webp": ".webp"},
    **{"application/pdf": ".pdf", "application/epub+zip": ".epub", "application/rtf": ".rtf"},
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
    "application/vnd.ms-excel": ".xls",
    "application/vnd.oasis.opendocument.text": ".odt",
    "application/vnd.oasis.opendocument.spreadsheet": ".ods",
    "application/vnd.oasis.opendocument.presentation": ".odp",
}
NO_TEXT = re.compile(r"(?:image|audio|video|font)/")
UNSAFE_IN_NAMES = re.compile(r"[^\w.-]+")
NAME_CHARACTERS = 80

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class PageLoading:
    """Loads the pages at addresses: those of one host one after another."""

    _store: Store
    _writer: Writer
    _web: Web
    _addresses: Sequence[str]
    _run: JobRun
    _ocr: Ocr | None  # reads scanned pages

    def __post_init__(self) -> None:
        self._numbers = {one: self._run.job.files + number for number, one in enumerate(self._addresses, 1)}
        self._limiter = anyio.CapacityLimiter(HOSTS_AT_ONCE)

    async def run(self) -> None:
        """Raises the first error that affects all pages."""
        self._run.job.files += len(self._numbers)
        hosts = defaultdict(list)
        for address in self._numbers:
            hosts[address.partition("://")[2].partition("/")[0]].append(address)
        async with anyio.create_task_group() as tasks:
            for addresses in hosts.values():
                tasks.start_soon(self._load_all, addresses)

    async def _load_all(self, addresses: Sequence[str]) -> None:
        for address in addresses:
            async with self._limiter:
                self._run.job.begun += 1
                try:
                    outcome = await self._load(address)
                except RagMemoryError as error:
                    if error.code in FATAL:
                        raise
                    outcome = FileOutcome(address, "failed", error=str(error))
                except Exception as error:  # What a server sends must not end the pages of others.
                    logger.exception("The page %s could not be loaded", address)
                    outcome = await self._not_loaded(address, f"cannot be loaded ({type(error).__name__})")
                self._run.add(replace(outcome, number=self._numbers[address]))
                self._run.job.done += 1

    async def _load(self, address: str) -> FileOutcome:
        try:
            page = await self._web.fetch(address, self._stamp)
            if page.data is None:
                known = await self._store.documents.file(page.address)
                if known is None:  # It was removed meanwhile.
                    return await self._not_loaded(page.address, "answers that it has not changed")
                return FileOutcome(page.address, "unchanged", known.document_id, known.chunks)
            self._run.job.bytes += len(page.data)
            self._run.job.done_bytes += len(page.data)
            content = await _text(page, self._ocr)
        except NotFetched as error:
            return await self._not_loaded(address, str(error), error.gone)
        except (NotText, OSError) as error:
            return await self._not_loaded(address, str(error))
        return await self._inject(page, content)

    async def _stamp(self, address: str) -> str:
        """What the server said of the version that memory has."""
        known = await self._store.documents.file(address)
        version, _, stamp = known.stamp.partition(":") if known else ("", "", "")
        return stamp if version == str(READER_VERSION) and stamp.startswith("{") else ""

    async def _inject(self, page: Page, content: FileText) -> FileOutcome:
        # Also without a state, after which the page is read again: it says that this machine has loaded it.
        stamp = f"{READER_VERSION}:{'' if content.has_unread_scans else page.stamp}"
        metadata = metadata_of(page.address, content)
        stored = await self._writer.inject(content.text, metadata, self._run.origin, stamp, content.places)
        if stored.status == "unchanged":
            await self._store.documents.set_stamps({page.address: (stamp, text_digest(content.text))})
        return outcome_of(stored, content)

    async def _not_loaded(self, address: str, reason: str, gone: str = "") -> FileOutcome:
        """A page that is gone stays in memory, also in a sync: it may be the last copy of it."""
        known = await self._store.documents.files([address, *filter(None, [gone])])
        if gone in known:
            return FileOutcome(gone, "missing", known[gone].document_id, reason=reason)
        kept = "; memory keeps what it has of it" if known else ""
        return FileOutcome(address, "failed", reason=reason + kept)


async def _text(page: Page, ocr: Ocr | None) -> FileText:
    """The text of a page, read like a file of its kind. Raises NotText, OSError."""
    with tempfile.TemporaryDirectory(prefix="ragmemory-page-", ignore_cleanup_errors=True) as folder:
        path, data = Path(folder, _name(page)), await to_thread.run_sync(_marked, page)
        await to_thread.run_sync(path.write_bytes, data)
        path = await to_thread.run_sync(path.resolve)
        content = await to_thread.run_sync(read_file, path)
        if isinstance(content, str):
            is_html = module_of(path, data) == "html"
            content = await parse(partial(html.read, is_page=True) if is_html else read, path, ocr)
    is_markdown = path.suffix == SUFFIXES["text/markdown"]
    return replace(content, media_type=MARKDOWN) if is_markdown else content


def _name(page: Page) -> str:
    """A file name with the extension of the page's kind. Raises NotText if that is not read."""
    parts = urlsplit(page.address)
    name = UNSAFE_IN_NAMES.sub("_", unquote(parts.path.rstrip("/").rpartition("/")[2]))[-NAME_CHARACTERS:]
    name = name.strip(".") or UNSAFE_IN_NAMES.sub("_", parts.netloc)[-NAME_CHARACTERS:] + ".txt"
    stem, suffix = Path(name).stem, Path(name).suffix.lower()
    if known := SUFFIXES.get(page.media_type):
        return stem + known
    if NO_TEXT.match(page.media_type) or suffix in UNSUPPORTED or suffix in SAVE_AS:
        raise NotText(f"is in a format that is not read ({page.media_type or suffix})")
    return name


def _marked(page: Page) -> bytes:
    """The bytes of a page; of a text whose server names its encoding, in UTF-8 with a mark."""
    data = page.data or b""
    is_named = page.charset and page.media_type.startswith("text/")
    if is_named and (text := decode_as(data, page.charset)) is not None:
        return codecs.BOM_UTF8 + text.removeprefix("\ufeff").encode()
    return data
