"""A page of a PDF, or an image, as it is shown: read in a process with limits, as its reader may crash."""

from __future__ import annotations

import zlib
from pathlib import Path
from struct import pack

import anyio
from anyio import BrokenWorkerProcess, to_process, to_thread

from ragchat.servers.media import image_kind
from ragchat.web.errors import WebError
from ragcommon.errors import os_reason
from ragcommon.files.decoding import MAX_FILE_BYTES
from ragcommon.files.safe_open import read_regular
from ragcommon.memory_limit import limited_memory

MAX_IMAGE_BYTES = 32 << 20
# The size of a page image in pixels, sharp even on a large screen.
WIDTH, MAX_PIXELS = 1_400, 4_000_000
SECONDS = 15.0
MEMORY = 1 << 30


class PageUnusable(WebError):
    """`reason` is the end of a sentence about the file."""

    name: str
    reason: str
    status = 409
    sentence = "{name} {reason}."
    hint = "Its text is shown."


async def drawn_page(path: Path, number: int) -> tuple[bytes, str]:
    """A page of a PDF, from 1, as PNG, and its media type. Raises PageUnusable."""
    try:
        with anyio.fail_after(SECONDS):
            drawn = await to_process.run_sync(_draw, path, number, cancellable=True)
    except TimeoutError:
        raise PageUnusable(path.name, f"cannot be drawn: it took longer than {SECONDS:.0f} seconds") from None
    except (BrokenWorkerProcess, MemoryError):
        raise PageUnusable(path.name, "cannot be drawn: its reader crashed, or needs more memory") from None
    if isinstance(drawn, str):
        raise PageUnusable(path.name, drawn)
    return drawn, "image/png"


async def image(path: Path) -> tuple[bytes, str]:
    """An image and its media type. Raises PageUnusable."""
    try:
        content = await to_thread.run_sync(lambda: read_regular(path, MAX_IMAGE_BYTES, links=False))
    except (OSError, ValueError) as error:
        raise PageUnusable(path.name, f"cannot be read: {os_reason(error)}") from None
    if not (kind := image_kind(content)):
        raise PageUnusable(path.name, "is not an image that is shown here")
    return content, kind


def _draw(path: Path, number: int) -> bytes | str:
    """A page as PNG, or why there is none. Raises MemoryError."""
    try:
        import pypdfium2
    except ImportError:
        return "cannot be drawn: that needs the extra `pdf` (`pip install 'ragchat[pdf]'`)"
    try:
        with limited_memory(MEMORY):
            # A path with a link in it has changed since memory read it.
            document = pypdfium2.PdfDocument(read_regular(path, MAX_FILE_BYTES, links=False))
            if number > len(document):
                return f"has no page {number:,}"
            drawn = document[number - 1]
            width, height = drawn.get_size()
            scale = min(WIDTH / max(width, 1), (MAX_PIXELS / max(width * height, 1)) ** 0.5)
            bitmap = drawn.render(scale=scale, rev_byteorder=True)
            return _png(bytes(bitmap.buffer), bitmap.width, bitmap.height, bitmap.stride)
    except (pypdfium2.PdfiumError, OSError, ValueError) as error:
        return f"cannot be drawn: {os_reason(error)}".rstrip(".")


def _png(pixels: bytes, width: int, height: int, stride: int) -> bytes:
    """An image of three bytes a pixel; a row takes `stride` bytes."""
    rows = b"".join(b"\0" + pixels[at : at + 3 * width] for at in range(0, stride * height, stride))
    header = pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = (b"IHDR", header), (b"IDAT", zlib.compress(rows, 3)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
