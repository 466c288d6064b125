"""The ruled lines of tables on scanned pages. Covers `ragmemory.files.ocr_lines`."""

from __future__ import annotations

import numpy as np
import pytest

from ragmemory.files.ocr_lines import without_lines

WIDTH, HEIGHT = 640, 400
HEAD = b"P5 %d %d 255\n" % (WIDTH, HEIGHT)


def test_long_lines_are_painted_over_and_letters_and_dashes_are_not() -> None:
    pixels = np.full((HEIGHT, WIDTH), 250, np.uint8)
    pixels[100:160, 60:68] = pixels[130:134, 60:120] = 20  # as in an H
    letters = pixels.copy()
    pixels[200:203, 20:620] = pixels[20:380, 300:303] = 60
    # A page that lies a bit oblique on the scanner.
    for step in range(6):
        pixels[300 + step : 303 + step, 20 + 100 * step : 120 + 100 * step] = 60
    found = without_lines(HEAD + pixels.tobytes())
    shown = np.frombuffer(found, np.uint8, WIDTH * HEIGHT, len(HEAD)).reshape(HEIGHT, WIDTH)
    assert found.startswith(HEAD)
    assert (shown[90:170, :200] == letters[90:170, :200]).all()
    assert (shown < 100).sum() == (letters < 100).sum()


@pytest.mark.parametrize(
    "image", [HEAD + b"\xfa" * (WIDTH * HEIGHT), b"P5 3 3 255\n\0\0\0\0\0\0\0\0\0", b"\x89PNG"]
)
def test_a_page_without_lines_or_pixels_has_nothing_to_paint_over(image: bytes) -> None:
    assert without_lines(image) == b""
