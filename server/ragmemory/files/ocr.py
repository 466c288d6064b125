"""Read scanned pages with tesseract, a program that the user may have installed.

It gets an image on stdin and writes words with their confidence to stdout, so neither names nor text of the
user's files are among its arguments. It may hang or take all memory, as images come from anywhere: both are
limited, and it is killed when its job is cancelled.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from anyio.abc import ByteReceiveStream, Process
from msgspec import Struct

from ragcommon.errors import os_reason
from ragmemory.files.formats.image import NOT_READ
from ragmemory.files.formats.scans import NOT_INSTALLED, USABLE, Image, Recognised
from ragmemory.files.ocr_cache import OcrCache

# A page of clean print takes 3 seconds, one of pure noise minutes.
PAGE_SECONDS = 60.0
CHECK_SECONDS = 10.0
MAX_MEMORY = 2 << 30
MAX_OUTPUT = 16 << 20
WORD = 5  # the level of words in the output
# A page is read again without its ruled lines if this share of its print, or less, lies in words.
RULED = 0.9
NAMED_ONLY = "is an image, which is read only if you name it"
LANGUAGES = re.compile(r"[A-Za-z0-9][\w/.]*(?:\+[A-Za-z0-9][\w/.]*)*")


class OcrSettings(Struct, frozen=True):
    """The table [ocr]."""

    program: str
    languages: str
    folder_images: bool


class Ocr:
    """The program, if there is one."""

    def __init__(self, settings: OcrSettings, cache: OcrCache | None = None) -> None:
        self.settings = settings
        self._cache = cache
        self._checked = self._version = ""

    @property
    def path(self) -> str:
        """The program; "" if there is none."""
        found = shutil.which(Path(self.settings.program).expanduser()) if self.settings.program else None
        # Windows looks in the working folder too, which may be someone else's.
        return str(found) if found and Path(found).is_absolute() else ""

    @property
    def image_refusal(self) -> str:
        """Why the images in a folder are not read; "": they are."""
        if not self.path:
            return NOT_READ
        return "" if self.settings.folder_images else NAMED_ONLY

    async def problem(self) -> str:
        """Why no page can be read, as a clause; "": they can. Starts the program at first."""
        if not (path := self.path):
            return NOT_INSTALLED
        if path == self._checked:
            return ""
        languages = self.settings.languages
        if not LANGUAGES.fullmatch(languages):
            return f'ocr.languages is "{languages}", which is not like "eng" or "eng+deu"'
        try:
            with anyio.fail_after(CHECK_SECONDS):
                listed = await _output([path, "--list-langs"])
                self._version = (await _output([path, "--version"])).partition("\n")[0]
        except (OSError, TimeoutError, _Failed) as error:
            return f"{path} cannot be run: {_reason(error)}"
        # The first line is a title.
        known = [line.strip() for line in listed.splitlines()[1:]]
        if missing := [one for one in languages.split("+") if one not in known]:
            return (
                f"tesseract lacks the data of the language {missing[0]} in ocr.languages; "
                f"it has {', '.join(known) or 'none'}"
            )
        self._checked = path
        return ""

    async def cached(self, keys: Iterable[str]) -> dict[str, Recognised]:
        """The pages that were read before with this program and these languages, by key. Never raises."""
        if self._cache is None:
            return {}
        return await to_thread.run_sync(self._cache.find, self._reader, keys)

    async def read(self, key: str, image: Image) -> Recognised:
        """The text of a page; the cache keeps it under the key. Never raises."""
        page = await self._read(image)
        if self._cache is not None and not page.problem:
            await to_thread.run_sync(self._cache.add, self._reader, key, page)
        return page

    @property
    def _reader(self) -> str:
        # Pages that were read by older versions, with their ruled lines, are read again.
        return f"{self._version} {self.settings.languages} unruled"

    async def _read(self, image: Image) -> Recognised:
        command = [self.path, "stdin", "stdout", "-l", self.settings.languages]
        command += ["-c", f"tessedit_page_number={image.page}", "tsv"]
        try:
            with anyio.fail_after(PAGE_SECONDS):
                table = await _output(command, image.data)
                page = await to_thread.run_sync(_recognised, table, image.data)
            is_whole = page.text and page.covered > RULED
            return page if is_whole else await self._without_lines(command, image, page)
        except TimeoutError:
            return Recognised("", problem=f"it took longer than {PAGE_SECONDS:.0f} seconds")
        except ValueError:
            return Recognised("", problem="it wrote no table of words")
        except (OSError, _Failed) as error:
            return Recognised("", problem=_reason(error))

    async def _without_lines(self, command: Sequence[str], image: Image, page: Recognised) -> Recognised:
        """The page as it is read without ruled lines, if that finds more text; little confidence is noise."""
        from ragmemory.files.ocr_lines import without_lines

        with anyio.move_on_after(PAGE_SECONDS), suppress(ValueError, OSError, _Failed):
            if plain := await to_thread.run_sync(without_lines, image.data):
                other = await to_thread.run_sync(_recognised, await _output(command, plain), plain)
                page = max(page, other, key=lambda one: len(one.text) * one.confidence)
        return page


class _Failed(Exception):
    """The program ended with an error; its own message."""


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it does not respond"
    return os_reason(error)


async def _output(command: Sequence[str], data: bytes = b"") -> str:
    """What a program writes to stdout. Raises OSError, _Failed."""
    texts: dict[str, bytes] = {}

    async def collect(name: str, stream: ByteReceiveStream | None) -> None:
        text = bytearray()
        with suppress(anyio.EndOfStream):
            while stream is not None and len(text) <= MAX_OUTPUT:
                text += await stream.receive()
            _kill(process)
        texts[name] = bytes(text)

    async with _started(command) as process, anyio.create_task_group() as tasks:
        tasks.start_soon(collect, "stdout", process.stdout)
        tasks.start_soon(collect, "stderr", process.stderr)
        assert process.stdin is not None
        with suppress(anyio.BrokenResourceError, BrokenPipeError, ConnectionResetError):
            await process.stdin.send(data)
        await process.stdin.aclose()
        code = await process.wait()
    if len(texts["stdout"]) > MAX_OUTPUT:
        raise _Failed(f"it wrote more than {MAX_OUTPUT:,} bytes")
    if code:
        lines = texts["stderr"].decode(errors="replace").strip().splitlines()
        ended = f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"
        raise _Failed(f"{ended} ({lines[-1][:200]})" if lines else ended)
    return texts["stdout"].decode(errors="replace")


@asynccontextmanager
async def _started(command: Sequence[str]) -> AsyncIterator[Process]:
    """Run a program in a group of its own, which is killed in the end. Raises OSError."""
    apart: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        apart = {"creationflags": subprocess.CREATE_NO_WINDOW}
    # Several pages are read at once; with threads of its own, each takes longer on a busy machine.
    process = await anyio.open_process(command, env={**os.environ, "OMP_THREAD_LIMIT": "1"}, **apart)
    try:
        if sys.platform == "linux":
            import resource

            # It has no data yet. One that only lists something may have ended.
            with suppress(ProcessLookupError):
                resource.prlimit(process.pid, resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
        yield process
    finally:
        _kill(process)
        with anyio.CancelScope(shield=True):
            await process.aclose()


def _kill(process: Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform != "win32":
            os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            process.kill()


def _recognised(table: str, image: bytes) -> Recognised:
    """The text in tesseract's table of words: a line for each line, an empty line between paragraphs."""
    from ragmemory.files.ocr_coverage import covered

    words, boxes = [], []
    for row in table.splitlines()[1:]:
        level, _, block, paragraph, line, _, *box, confidence, word = row.split("\t", 11)
        if int(level) == WORD and word.strip():
            words.append(((block, paragraph), line, float(confidence), word.strip()))
            left, top, width, height = map(int, box)
            boxes.append((left, top, width, height))
    if not words:
        return Recognised("")
    mean = sum(confidence for _, _, confidence, _ in words) / len(words)
    if mean < USABLE:
        return Recognised("", mean)
    paragraphs = [
        "\n".join(" ".join(word for *_, word in line) for _, line in groupby(lines, key=lambda word: word[1]))
        for _, lines in groupby(words, key=lambda word: word[0])
    ]
    return Recognised("\n\n".join(paragraphs), mean, covered=covered(image, boxes))
