"""How much of the print on a page is in the words that OCR found. Covers `ragmemory.files.ocr_coverage`."""

from __future__ import annotations

import numpy as np
import pytest

from ragmemory.files.formats.scans import Recognised, ScannedPages
from ragmemory.files.ocr_coverage import covered

WIDTH, HEIGHT = 640, 800
# Twelve lines of print, 32 pixels high; each has a box.
LINES = [(64, top, 512, 32) for top in range(32, HEIGHT, 64)]


def page(ink: int = 0, noise: int = 0, faint: int | None = None) -> bytes:
    """Strokes in dark `ink` on white paper with noise; the lower half may be printed `faint`ly."""
    chance = np.random.default_rng(1)
    pixels = 255 - chance.integers(noise + 1, size=(HEIGHT, WIDTH), dtype=np.uint8)
    for left, top, width, height in LINES:
        strokes = (np.arange(left, left + width, 12)[:, None] + np.arange(5)).ravel()
        pixels[top : top + height, strokes] = ink if faint is None or top < HEIGHT // 2 else faint
    return b"P5 %d %d 255\n" % (WIDTH, HEIGHT) + pixels.tobytes()


@pytest.mark.parametrize("image", [page(), page(ink=120), page(noise=60)], ids=["clean", "grey", "noisy"])
def test_a_page_whose_lines_all_have_words_is_covered(image: bytes) -> None:
    assert covered(image, LINES) > 0.95


@pytest.mark.parametrize("image", [page(), page(faint=200)], ids=["clean", "faint"])
def test_half_of_the_lines_cover_half_of_a_page(image: bytes) -> None:
    assert 0.4 < covered(image, LINES[:6]) < 0.6


@pytest.mark.parametrize(
    "image", [b"P5 640 800 255\n" + b"\xff" * 512_000, b"P5 3 3 255\n123456789", b"\x89PNG"]
)
def test_without_print_or_pixels_nothing_is_missing(image: bytes) -> None:
    assert covered(image, []) == 1.0


def test_the_pages_with_much_print_outside_the_words_are_named() -> None:
    pages = ScannedPages(b"")
    pages._read = {1: Recognised("Oak", 96), 2: Recognised("Ash", 96, covered=0.5)}
    assert pages.note() == (
        "was read by OCR on p. 1–2 with 96% confidence; OCR found words in only a part of the print on p. 2: "
        "the rest may be lost lines, handwriting or pictures"
    )
