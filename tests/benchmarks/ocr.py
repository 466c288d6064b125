"""Scanned pages: how fast a PDF of them is read, and a second time, when its pages are in the cache."""

from __future__ import annotations

import itertools
import tempfile
import textwrap
import time
from pathlib import Path

import anyio

from ragmemory.files.formats import pdf
from ragmemory.files.ocr import Ocr, OcrSettings
from ragmemory.files.ocr_cache import OcrCache
from ragmemory.files.parsing import parse
from tests.benchmarks.corpus import paragraphs
from tests.support import documents

PAGES = 10
PARAGRAPHS = 4  # on a page: about 440 words
COLUMNS = 80


def run() -> None:
    anyio.run(_run)


async def _run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        ocr = Ocr(OcrSettings("tesseract", "eng", folder_images=False), OcrCache(Path(folder) / "ocr.db"))
        if problem := await ocr.problem():
            print(f"OCR: skipped: {problem}")
            return
        path = Path(folder) / "scan.pdf"
        source = paragraphs()
        pages = [_page("\n".join(itertools.islice(source, PARAGRAPHS))) for _ in range(PAGES)]
        path.write_bytes(documents.pdf(pages))
        times = []
        for _ in range(2):
            began = time.perf_counter()
            found = await parse(pdf.read, path, ocr)
            times.append(time.perf_counter() - began)
            assert len(found.places) == PAGES, found.note
    first, second = times
    print(f"OCR: {PAGES / first:.2f} pages a second of a PDF of {PAGES} scanned pages, {first:.1f} s")
    print(
        f"OCR: {second:.2f} s a second time, with the pages in the cache, {first / second:.0f} times faster"
    )


def _page(text: str) -> bytes:
    lines = [line for part in text.split("\n") for line in textwrap.wrap(part, COLUMNS)]
    return documents.scan("\n".join(lines).encode("ascii", "ignore").decode())
