"""How much of the print on a scanned page lies within the words that OCR found.

The confidence is about words that were found: a page that lost half of its lines has that of a clean one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

# The page is reduced by PIXEL, which removes most noise and keeps strokes. A block is BLOCK × BLOCK of that.
PIXEL, BLOCK = 4, 8
# A block has print if its standard deviation is CONTRAST times that of blank paper (a fifth of the page, or
# more) and LEAST of 255 shades. Less would be noise that does not hinder OCR.
CONTRAST, LEAST = 3, 8.0
PGM = re.compile(rb"P5 (\d+) (\d+) 255\n")


def covered(image: bytes, boxes: Sequence[tuple[int, int, int, int]]) -> float:
    """The share of blocks with print that lie in boxes: left, top, width, height in pixels.

    1.0 if the page has no print, or `image` is not PGM, whose pixels need no decoder.
    """
    if (head := PGM.match(image)) is None:
        return 1.0
    width, height = int(head[1]), int(head[2])
    rows, columns = height // PIXEL // BLOCK, width // PIXEL // BLOCK
    if not rows * columns:
        return 1.0
    pixels = np.frombuffer(image, np.uint8, width * height, head.end()).reshape(height, width)
    pixels = pixels[: rows * BLOCK * PIXEL, : columns * BLOCK * PIXEL]
    # Axis by axis: at once takes several times as long.
    small = pixels.reshape(rows * BLOCK, PIXEL, -1).sum(1, dtype=np.uint16)
    small = small.reshape(rows * BLOCK, -1, PIXEL).sum(2, dtype=np.uint16)
    contrast = (small / PIXEL**2).reshape(rows, BLOCK, columns, BLOCK).std((1, 3))
    found = np.zeros(small.shape, np.bool_)
    for left, top, across, down in boxes:
        # With the antialiased edges of the letters.
        found[_cells(top, down), _cells(left, across)] = True
    has_words = found.reshape(rows, BLOCK, columns, BLOCK).mean((1, 3)) > 0.1
    printed = contrast > max(CONTRAST * float(np.percentile(contrast, 20)), LEAST)
    return float(has_words[printed].mean()) if printed.any() else 1.0


def _cells(start: int, length: int) -> slice:
    return slice(max(0, start // PIXEL - 2), (start + length) // PIXEL + 3)
