"""Small files of many formats, written by hand: the tests depend on no writer of theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from struct import pack
from zipfile import ZIP_DEFLATED, ZipFile
from zlib import compress, crc32


def pdf(pages: Sequence[str | bytes], title: str = "", *, is_encrypted: bool = False) -> bytes:
    """A PDF with one line of text for each line of a page; "" makes one without text, bytes are its content.

    No password opens an encrypted one.
    """
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    kids = []
    for page in pages:
        content = compress(page if isinstance(page, bytes) else _lines(page))
        kids.append(len(objects) + 1)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>"
            b" /Contents %d 0 R >>" % (len(objects) + 2)
        )
        objects.append(
            b"<< /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream" % (len(content), content)
        )
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (
        b" ".join(b"%d 0 R" % kid for kid in kids),
        len(kids),
    )
    objects.append(f"<< /Title ({_escaped(title)}) >>".encode("cp1252"))
    trailer = b"/Info %d 0 R" % len(objects)
    if is_encrypted:
        key = b"<" + b"ab" * 32 + b">"
        objects.append(b"<< /Filter /Standard /V 1 /R 2 /O %s /U %s /P -4 >>" % (key, key))
        trailer += b" /Encrypt %d 0 R /ID [<01> <01>]" % len(objects)
    data, offsets = b"%PDF-1.4\n", list[int]()
    for number, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    count = len(objects) + 1
    return (
        data
        + b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF"
        % (
            *(count, table),
            *(count, trailer, len(data)),
        )
    )


def _lines(page: str) -> bytes:
    """The content of a page with these lines."""
    lines = "".join(f"({_escaped(line)}) Tj 0 -14 Td " for line in page.split("\n") if line)
    return f"BT /F1 12 Tf 72 720 Td {lines}ET".encode("cp1252")


def archive(members: Mapping[str, str | bytes]) -> bytes:
    """A ZIP file."""
    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return buffer.getvalue()


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def epub_members(title: str, chapters: Sequence[str]) -> dict[str, str]:
    """The members of an e-book, whose chapters are HTML."""
    items = "".join(
        f'<item id="c{number}" href="c%20{number}.xhtml" media-type="application/xhtml+xml"/>'
        for number in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{number}"/>' for number in range(len(chapters)))
    return {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        '<rootfiles><rootfile full-path="OEBPS/package.opf"/></rootfiles></container>',
        "OEBPS/package.opf": '<package xmlns="http://www.idpf.org/2007/opf" '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>{title}</dc:title></metadata>'
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>",
    } | {f"OEBPS/c {number}.xhtml": f"<body>{chapter}</body>" for number, chapter in enumerate(chapters)}


def odt_members(body: str) -> dict[str, str]:
    """The members of an OpenDocument text with this body."""
    names = "".join(
        f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "text", "table")
    )
    return {
        "mimetype": "application/vnd.oasis.opendocument.text",
        "content.xml": f"<office:document-content{names}><office:body><office:text>{body}</office:text>"
        "</office:body></office:document-content>",
    }


def drawn(page: bytes, dpi: int = 150) -> tuple[int, int, bytes]:
    """The width, the height and the grey pixels of the first page of a PDF."""
    import pypdfium2

    bitmap = pypdfium2.PdfDocument(page)[0].render(scale=dpi / 72, grayscale=True)
    pixels = bytes(bitmap.buffer)
    rows = (pixels[at : at + bitmap.width] for at in range(0, bitmap.stride * bitmap.height, bitmap.stride))
    return bitmap.width, bitmap.height, b"".join(rows)


def png(width: int, height: int, pixels: bytes = b"") -> bytes:
    """An image in shades of grey."""
    rows = b"".join(b"\0" + pixels[at : at + width] for at in range(0, len(pixels), width))
    header = pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", compress(rows)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        pack(">I", len(data)) + kind + data + pack(">I", crc32(kind + data)) for kind, data in parts
    )


def photo(text: str) -> bytes:
    """A PNG that shows lines of text."""
    return png(*drawn(pdf([text])))


def scan(text: str) -> bytes:
    """The content of a page of a PDF that is only an image of lines of text."""
    width, height, pixels = drawn(pdf([text]))
    image = b"BI /W %d /H %d /CS /G /BPC 8 ID %s EI" % (width, height, pixels)
    return b"q 612 0 0 792 0 0 cm %s Q" % image
