"""PDF: the text of each page. Scanned pages, which hold only an image, have none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from ragconfig.files.decoding import NotText
from ragmemory.files.formats.read import Damaged, MissingExtra, Read, TextBuilder

MOST_PAGES = 10_000
# A word that is divided at the end of a line: PDFium writes U+FFFE or U+0002 for the hyphen.
DIVIDED = re.compile("[\ufffe\x02](?:\r?\n)?")
# Pages without text that are named one by one.
MOST_NAMED = 10
MARK = b"%PDF-"
MARK_WITHIN = 1024


def read(path: Path, data: bytes) -> Read:
    """The text of a PDF; its places are the pages. Raises NotText."""
    if MARK not in data[:MARK_WITHIN]:
        raise Damaged("PDF")
    try:
        import pypdfium2
        from pypdfium2.raw import FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY
    except ImportError:
        raise MissingExtra("pdf") from None

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY):
            raise NotText("is encrypted with a password") from None
        raise Damaged("PDF") from None
    builder, blank = TextBuilder(), list[int]()
    pages = len(document)
    for number in range(1, min(pages, MOST_PAGES) + 1):
        text = _text_of(document, number)
        if text.strip():
            builder.add(text, f"p. {number}")
        else:
            blank.append(number)
    notes = [_without_text(blank, pages)] if blank else []
    if pages > MOST_PAGES:
        notes.append(f"only the first {MOST_PAGES:,} of its {pages:,} pages were read")
    title = document.get_metadata_dict().get("Title", "")
    return builder.read(title.strip() or path.name, "; ".join(notes))


def _text_of(document: object, number: int) -> str:
    """The text of a page; "" for one that is damaged."""
    import pypdfium2

    assert isinstance(document, pypdfium2.PdfDocument)
    try:
        page = document[number - 1]
        try:
            text = page.get_textpage().get_text_bounded()
        finally:
            page.close()
    except pypdfium2.PdfiumError:
        return ""
    return DIVIDED.sub("", text)


def _without_text(numbers: Sequence[int], pages: int) -> str:
    """ "has no text on p. 3–5, 9, which may be scanned"."""
    if len(numbers) == pages:
        return "has no text on any page: it may be scanned"
    ranges = []
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        run_numbers = [number for _, number in run]
        first, last = run_numbers[0], run_numbers[-1]
        ranges.append(f"{first}" if first == last else f"{first}–{last}")
    rest = f" and {len(ranges) - MOST_NAMED} more ranges" if len(ranges) > MOST_NAMED else ""
    return f"has no text on p. {', '.join(ranges[:MOST_NAMED])}{rest}, which may be scanned"
