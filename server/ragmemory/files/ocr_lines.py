"""Remove the ruled lines of tables and forms from a scanned page: tesseract leaves out cells in them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ragmemory.files.ocr_coverage import PGM

# The page is looked at in half its size. A run of dark pixels of this length, 8 mm at 300 dots per inch, is
# longer than the strokes of letters; a line may be a bit oblique.
HALF, RUN = 2, 48
DARK, PAPER = 160, 255

Mask = NDArray[np.bool_]


def without_lines(image: bytes) -> bytes:
    """The page with its lines painted over; b"" if it has none, or is not PGM, which needs no decoder."""
    if (head := PGM.match(image)) is None:
        return b""
    width, height = int(head[1]), int(head[2])
    pixels = np.frombuffer(image, np.uint8, width * height, head.end()).reshape(height, width)
    inner = pixels[: height // HALF * HALF, : width // HALF * HALF]
    dark = (inner < DARK).reshape(height // HALF, HALF, width // HALF, HALF).max((1, 3))
    lines = _runs(dark) | _runs(dark.T).T
    if not lines.any():
        return b""
    # With their blurred edges.
    wide = np.pad(lines, 1)
    wide = wide[:-2, 1:-1] | wide[1:-1, 1:-1] | wide[2:, 1:-1] | wide[1:-1, :-2] | wide[1:-1, 2:]
    found = np.array(pixels)
    found[: inner.shape[0], : inner.shape[1]][wide.repeat(HALF, 0).repeat(HALF, 1)] = PAPER
    return head[0] + found.tobytes()


def _runs(dark: Mask) -> Mask:
    """The pixels in long runs along the rows."""
    found = np.zeros_like(dark)
    if dark.shape[1] < RUN:
        return found
    counts = np.pad(dark.cumsum(1, dtype=np.int32), ((0, 0), (1, 0)))
    starts = counts[:, RUN:] - counts[:, :-RUN] == RUN
    for row in np.flatnonzero(starts.any(1)):
        edges = np.zeros(dark.shape[1] + 1, np.int32)
        np.add.at(edges, np.flatnonzero(starts[row]), 1)
        np.add.at(edges, np.flatnonzero(starts[row]) + RUN, -1)
        found[row] = edges.cumsum()[:-1] > 0
    return found
