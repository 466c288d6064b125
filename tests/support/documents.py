"""Small files of many formats, written by hand: the tests depend on no writer of theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from struct import pack
from zipfile import ZIP_DEFLATED, ZipFile
from zlib import compress, crc32


def pdf(
    pages: Sequence[str | bytes], title: str = "", *, is_encrypted: bool = False, annotations: bytes = b""
) -> bytes:
    """A PDF with one line of text for each line of a page; "" makes one without text, bytes are its content.

    The fonts F1, in bold F2, monospaced F5 and F7, and F3 and F4, bitmaps whose characters have no names, may
    be used there, and F6, one with the names of dingbats for "a" and "e".
    No password opens an encrypted PDF. `annotations` are those of each page, as dictionaries.
    """
    glyph = b"500 0 0 0 400 500 d1 0 0 400 500 re f"
    dingbats = (
        b"begincmap 1 begincodespacerange <00> <ff> endcodespacerange\n"
        b"2 beginbfchar <61> <275B> <65> <2761> endbfchar endcmap"
    )
    bitmaps = (
        b"<< /Type /Font /Subtype /Type3 /FontBBox [0 0 500 500] /FontMatrix [.001 0 0 .001 0 0] /FirstChar 0"
        b" /LastChar 255 /Widths [%s] /Encoding << /Differences [0 %s] >> /CharProcs << %s >>"
        b" /Resources << >> >>"
        % (
            b"500 " * 256,
            b" ".join(b"/a%d" % code for code in range(256)),
            b" ".join(b"/a%d 4 0 R" % code for code in range(256)),
        )
    )
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(glyph), glyph),
        bitmaps,
        bitmaps,
        bitmaps.replace(b"/Encoding", b"/ToUnicode 8 0 R /Encoding"),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(dingbats), dingbats),
    ]
    kids = []
    for page in pages:
        content = compress(page if isinstance(page, bytes) else _lines(page))
        kids.append(len(objects) + 1)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R"
            b" /F2 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold >> /F3 5 0 R /F4 6 0 R"
            b" /F5 << /Type /Font /Subtype /Type1 /BaseFont /Courier >> /F6 7 0 R"
            b" /F7 << /Type /Font /Subtype /Type1 /BaseFont /Courier-Bold >> >> >>"
            b" /Annots [%s] /Contents %d 0 R >>" % (annotations, len(objects) + 2)
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
    return odf_members("text", f"<office:text>{body}</office:text>")


def odf_members(kind: str, body: str, styles: str = "") -> dict[str, str]:
    """The members of an OpenDocument file of a kind with this body and these automatic styles."""
    names = (
        "".join(
            f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
            for name in ("office", "text", "table", "style", "presentation", "drawing")
        )
        + ' xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0"'
    )
    return {
        "mimetype": f"application/vnd.oasis.opendocument.{kind}",
        "content.xml": f"<office:document-content{names}><office:automatic-styles>{styles}"
        f"</office:automatic-styles><office:body>{body}</office:body></office:document-content>",
    }


def xls(sheets: dict[str, list[list[str | float]]], merged: Sequence[int] = ()) -> bytes:
    """A workbook of Excel 97 to 2003: BIFF8 records as the stream of an OLE file. Hidden if named "(…)".

    `merged`: the first and last row and column, from 0, of merged cells in each sheet.
    """

    def record(kind: int, data: bytes) -> bytes:
        return pack("<HH", kind, len(data)) + data

    def beginning(kind: int) -> bytes:
        return record(0x809, pack("<HHHHII", 0x600, kind, 0, 0, 0, 0))

    def cell(row: int, column: int, value: str | float) -> bytes:
        at = pack("<HHH", row, column, 0)
        if isinstance(value, str):
            return record(0x204, at + pack("<HB", len(value), 1) + value.encode("utf-16-le"))
        return record(0x203, at + pack("<d", value))

    end = record(0x0A, b"")
    bodies = [
        beginning(0x10)
        + b"".join(cell(y, x, value) for y, row in enumerate(rows) for x, value in enumerate(row))
        + (record(0xE5, pack("<HHHHH", 1, *merged)) if merged else b"")
        + end
        for rows in sheets.values()
    ]
    stream = beginning(5) + record(0xE0, bytes(20))  # One format of cells.
    at = len(stream) + sum(12 + len(name) for name in sheets) + len(end)
    for name, body in zip(sheets, bodies, strict=True):
        about = pack("<IBBBB", at, name.startswith("("), 0, len(name), 0)
        stream += record(0x85, about + name.encode("latin-1"))
        at += len(body)
    return _ole("Workbook", stream + end + b"".join(bodies))


def _ole(name: str, stream: bytes) -> bytes:
    """An OLE file with one stream, of less than 120 sectors of 512 bytes."""
    free, last, table, none = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD, 0xFFFFFFFF
    size = max(len(stream), 4_096)  # Smaller ones would be stored in another way.
    sectors = -(-size // 512)

    def entry(title: str, kind: int, child: int, start: int, length: int) -> bytes:
        shown = title.encode("utf-16-le").ljust(64, b"\0")
        links = pack("<HBBIII", 2 * len(title) + 2, kind, 1, none, none, child)
        return shown + links + bytes(36) + pack("<IQ", start, length)

    chain = [table, last, *range(3, sectors + 2), last]
    head = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16) + pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6)
    head += bytes(10) + pack("<IIIIIIIII", 1, 1, 0, 4_096, last, 0, last, 0, 0)
    folder = entry("Root Entry", 5, 1, last, 0) + entry(name, 2, none, 2, size)
    return (
        head.ljust(512, b"\xff")
        + pack("<128I", *chain, *[free] * (128 - len(chain)))
        + folder.ljust(512, b"\0")
        + stream.ljust(sectors * 512, b"\0")
    )


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


def scan(text: str | bytes) -> bytes:
    """The content of a page of a PDF that is only an image of lines of text; bytes are what it shows."""
    width, height, pixels = drawn(pdf([text]))
    image = b"BI /W %d /H %d /CS /G /BPC 8 ID %s EI" % (width, height, pixels)
    return b"q 612 0 0 792 0 0 cm %s Q" % image
