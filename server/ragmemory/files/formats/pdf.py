"""PDF: the text of each page, with its headings. Pages without text, but with images, are read by OCR."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from ctypes import c_void_p, cast, create_string_buffer
from itertools import groupby
from math import pi
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import normalize

from ragcommon.files.decoding import NotText
from ragcommon.text.places import OCR
from ragmemory.files.formats.detection import PDF_MARK, PDF_WITHIN
from ragmemory.files.formats.file_text import (
    MAX_CHARACTERS,
    Damaged,
    FileText,
    MissingExtra,
    TextBuilder,
    TooMuchText,
    not_a_heading,
    one_line,
    page_ranges,
    stated_title,
)
from ragmemory.files.formats.layout import arranged, crossings, is_plain
from ragmemory.files.formats.page_columns import Box
from ragmemory.files.formats.page_tables import undivided
from ragmemory.files.formats.pdf_headings import (
    BOLD,
    Bookmark,
    Line,
    headings,
    is_cut,
    repeated,
    repeated_numbers,
    running_heads,
    title_of,
    with_headings,
    without_repeated,
)
from ragmemory.files.formats.scans import Image, ScannedPages

if TYPE_CHECKING:
    import pypdfium2

MAX_PAGES = 10_000
# Accents that TeX prints over the letter after them, and as combining characters; "ı" is the letter i there.
ACCENTS = {
    **{"`": "\u0300", "´": "\u0301", "ˆ": "\u0302", "˜": "\u0303", "¨": "\u0308", "˚": "\u030a"},
    **{"˝": "\u030b", "ˇ": "\u030c", "˘": "\u0306", "¯": "\u0304", "˙": "\u0307"},
    **{"¸": "\u0327", "˛": "\u0328"},
}
ACCENT = re.compile(f"[{''.join(ACCENTS)}]")
# The letter may be apart, and an ogonek never begins a word.
ACCENTED = re.compile(
    rf"c¸(?!c)|(?:(?<=[^\W\d_]) (?=˛)|(?<=[^\W\d_]) (?={ACCENT.pattern} ))?({ACCENT.pattern}) ?([^\W\d_])"
)
MAX_ACCENTS = 50
# Accents that are printed over letters: how many of a page are looked at, how many characters away the letter
# may be in the text, and the largest gap between their boxes in font sizes. MOVED_AWAY marks the place of
# such an accent, which is removed.
MAX_PLACED_ACCENTS, SEARCH_DISTANCE, MAX_GAP = 1_000, 400, 0.3
MOVED_AWAY = "\0"
MOVED = re.compile(r"(?<= )\0 | ?\0(?=\r?\n|\Z)|\0")
MAX_SPACES = 100
# Codes of TeX's encodings T1 and TS1 that mean something else in Latin-1. A text with one of T1_ONLY is
# in T1.
T1 = dict(enumerate("“”„«»–—\u200c\u2080ıȷﬀﬁﬂﬃﬄ", 0x10)) | {
    **dict(enumerate("ĂĄĆČĎĚĘĞĹĽŁŃŇŊŐŔŘŚŠŞŤŢŰŮŸŹŽŻĲİđ§", 0x80)),
    **dict(enumerate("ăąćčďěęğĺľłńňŋőŕřśšşťţűůÿźžżĳ¡¿£", 0xA0)),
    **{0xD7: "Œ", 0xDF: "ẞ", 0xF7: "œ", 0xFF: "ß"},
}
T1_ONLY = frozenset((*range(0x10, 0x17), *range(0x1B, 0x20), 0xFF))
TS1 = {0x84: "†", 0x85: "‡", 0x87: "‰", 0x88: "•", 0x97: "™", 0xBF: "€"}
# The dingbats that are named like the characters of bitmaps of TeX, a1 to a206 by their codes: Ghostscript
# takes one for the other.
DINGBATS = {
    ord(sign): code
    for code, sign in enumerate(
        "✁✂✄☎✆✝✞✟✠✡☛☞✌✍✎✏✑✒✓✔✕✖✗✘✙✚✛✜✢✣✤✥✦✧★✩✪✫✬✭✮✯✰✱✲✳✴✵✶✷✸✹✺✻✼✽✾✿❀❁❂❃❄❅❆❇❈❉❊❋●❍■❏❑▲▼◆❖ ◗❘❙❚"
        "❯❱❲❳❨❩❬❭❪❫❴❵❛❜❝❞❡❢❣❤✐❥❦❧♠♥♦♣    ✉✈✇①②③④⑤⑥⑦⑧⑨⑩❶❷❸❹❺❻❼❽❾❿➀➁➂➃➄➅➆➇➈➉➊➋➌➍➎➏➐➑➒➓➔→➣↔↕➙➛➜➝"
        "➞➟➠➡➢➤➥➦➧➨➩➫➭➯➲➳➵➸➺➻➼➽➾➚➪➶➹➘➴➷➬➮➱✃❐❒❮❰",
        1,
    )
    if sign != " "
}
# That of "e": a page without it has other dingbats, which are meant as such.
LIKE_E = "❡"
# Bullets of the fonts Symbol and Wingdings, which programs write as characters of the private use area.
BULLETS = {"\uf0b7": "•", "\uf0a7": "▪", "\uf0d8": "➢", "\uf0fc": "✓"}
LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "\u200c": "", **BULLETS})
OF_TEX = re.compile(rf"[\x10-\x1f\x80-\x9f¿ÿ{LIKE_E}]|{ACCENT.pattern}")
# Dots that lead to a page number or a price are wider than a screen. Shortened, they still show a gap.
LEADER, GAP = re.compile(r"\.{5,}|(?:\. ){4,}\."), "...."
# From this many jumps in reading order on, a failure to analyse the layout of a page is reported.
MANY_JUMPS = 12
# Beyond these limits the text keeps the order of the file: analysing the layout takes 4 µs per character.
MAX_RECTS = 20_000
MAX_ARRANGED = 50_000
# Characters of a page whose angles are looked at.
MAX_TURNED = 100
# From this angle on, in radians, text is slanted.
MIN_SLANT, RIGHT_ANGLE = 0.1, pi / 2
LINE = re.compile(r"\S(?:[^\r\n]*\S)?")
# The weight from which a font is bold (regular ones have 435 or less), if its name does not say so.
BOLD_WEIGHT = 540
MONOSPACED = re.compile(rb"mono(?!type)|courier|typewriter|(?<!uni)code|consol|cmtt")
MAX_FONT_NAME = 200
# Scanned pages are drawn with DPI dots per inch, as tesseract advises; a larger page than A3 with fewer.
DPI, POINTS, MAX_PIXELS = 300, 72, 18_000_000


def read(path: Path, data: bytes) -> FileText:
    """The text of a PDF; its places are the pages. Raises NotText."""
    document, scanned = _opened(data), ScannedPages(data)
    pages = [_page(document, number, scanned) for number in range(min(len(document), MAX_PAGES))]
    # Before the running heads are removed: a page with nothing else has text.
    remarks = "; ".join(_remarks(pages, scanned, len(document)))
    outline = list(_outline(document))
    for number, head in running_heads([page.text for page in pages], outline):
        pages[number] = _without(pages[number], head)
    texts = [page.text for page in pages]
    keys = repeated(texts)
    pages = [_without_repeated(page, keys) for page in pages]
    heads: dict[int, list[str]] = defaultdict(list)
    for number, head in repeated_numbers(texts, keys, [page.text for page in pages]):
        heads[number].append(head)
    lines = [page.lines for page in pages]
    title = title_of(lines)
    found = headings(lines, outline, title)
    of_page = {number: list(group) for number, group in groupby(found, key=attrgetter("page"))}
    builder, above = TextBuilder(), ""
    for number, page in enumerate(pages):
        text = with_headings(page.text, of_page.get(number, []), page.lines)
        mark = f" {OCR}" if number + 1 in scanned else ""
        parts = LEADER.sub(GAP, text).strip("\n"), "\n".join(map(not_a_heading, heads[number])), *page.notes
        whole = "\n\n".join(filter(None, parts))
        builder.add(whole, f"p. {number + 1}{mark}", continues=is_cut(above, whole))
        above = "" if heads[number] or page.notes else whole
    stated = stated_title(document.get_metadata_dict().get("Title", ""))
    own = title.title if title and title in found else path.name
    return builder.build(stated or own, remarks)


def _opened(data: bytes) -> pypdfium2.PdfDocument:
    """Raises NotText."""
    if PDF_MARK not in data[:PDF_WITHIN]:
        raise Damaged("PDF")
    try:
        import pypdfium2
        from pypdfium2.raw import FORMTYPE_ACRO_FORM, FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY
    except ImportError:
        raise MissingExtra("pdf") from None

    try:
        document = pypdfium2.PdfDocument(data)
        # Draws the values that their program left to the viewer. PDFium does so for no other kind of form.
        if document.get_formtype() == FORMTYPE_ACRO_FORM:
            document.init_forms()
        return document
    except pypdfium2.PdfiumError as error:
        if error.err_code in (FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY):
            raise NotText("is encrypted with a password") from None
        raise Damaged("PDF") from None


class _Page(NamedTuple):
    text: str
    is_sure: bool  # whether the reading order is known
    lines: list[Line]  # in the order of the file
    notes: Sequence[str] = ()  # of its readers, such as comments on highlights


def _remarks(pages: Sequence[_Page], scanned: ScannedPages, count: int) -> Iterator[str]:
    """What the user must know of how the pages were read, as ends of a sentence about the file."""
    blank = [n for n, page in enumerate(pages, 1) if not page.text.strip() and n not in scanned]
    if blank:
        where = "any page: it" if len(blank) == count else f"{page_ranges(blank)}, which"
        yield f"has no text on {where} may be scanned{scanned.reason}"
    if read_by_ocr := scanned.note():
        yield read_by_ocr
    if unsure := [n for n, page in enumerate(pages, 1) if not page.is_sure]:
        yield f"the order of columns or cells could not be told on {page_ranges(unsure)}"
    if count > MAX_PAGES:
        yield f"only the first {MAX_PAGES:,} of its {count:,} pages were read"


def _page(document: pypdfium2.PdfDocument, number: int, scanned: ScannedPages) -> _Page:
    """Read a page; a damaged one has no text."""
    import pypdfium2
    from pypdfium2.raw import FORMTYPE_NONE, FPDFPage_CountObjects, FPDFPage_GetAnnotCount

    try:
        page = document[number]
        try:
            notes = list[str]()
            if FPDFPage_GetAnnotCount(page) and document.get_formtype() != FORMTYPE_NONE:
                notes = _notes(page, page.get_textpage().get_text_bounded())
                page = _filled(document, number, page)
            if turns := _turns(page.get_textpage()):
                page = _turned(document, number, page, turns)
            read = _read(page.get_textpage())
            if not read.text.strip() and FPDFPage_CountObjects(page):
                read = read._replace(text=scanned.text(number + 1, lambda: _drawn(page)))
            return read._replace(notes=notes or _notes(page, read.text))
        finally:
            page.close()
    except pypdfium2.PdfiumError:
        return _Page("", True, [])


def _filled(document: pypdfium2.PdfDocument, number: int, page: pypdfium2.PdfPage) -> pypdfium2.PdfPage:
    """The page with the values of its form fields in its text, and without other annotations."""
    from pypdfium2 import raw

    for place in reversed(range(raw.FPDFPage_GetAnnotCount(page))):
        annotation = raw.FPDFPage_GetAnnot(page, place)
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        raw.FPDFPage_CloseAnnot(annotation)
        if kind != raw.FPDF_ANNOT_WIDGET:
            raw.FPDFPage_RemoveAnnot(page, place)
    raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY)
    page.close()
    return document[number]


def _turns(page: pypdfium2.PdfTextPage) -> int:
    """By how many right angles, clockwise, most characters must be turned to be upright."""
    from pypdfium2.raw import FPDFText_GetCharAngle

    places = range(0, page.count_chars(), page.count_chars() // MAX_TURNED + 1)
    turns = Counter(round(-FPDFText_GetCharAngle(page, place) / RIGHT_ANGLE) % 4 for place in places)
    return max(turns, key=turns.__getitem__, default=0)


def _turned(
    document: pypdfium2.PdfDocument, number: int, page: pypdfium2.PdfPage, turns: int
) -> pypdfium2.PdfPage:
    """The page turned clockwise, because PDFium finds the lines and columns of upright text only."""
    from pypdfium2.raw import FS_MATRIX, FS_RECTF, FPDFPage_TransFormWithClip

    left, bottom, right, top = page.get_mediabox()
    for _ in range(turns):
        left, bottom, right, top = bottom, -right, top, -left
        FPDFPage_TransFormWithClip(page, FS_MATRIX(0, -1, 1, 0, 0, 0), FS_RECTF(left, top, right, bottom))
    page.set_mediabox(left, bottom, right, top)
    page.set_cropbox(left, bottom, right, top)
    page.close()
    return document[number]


def _notes(page: pypdfium2.PdfPage, text: str) -> list[str]:
    """The texts of notes and comments on a page, each once, without copies of its own text in highlights.

    Raises TooMuchText.
    """
    from pypdfium2 import raw

    kinds = range(raw.FPDF_ANNOT_FREETEXT, raw.FPDF_ANNOT_INK + 1)  # highlights, drawings, stamps …
    left, own = MAX_CHARACTERS, one_line(text)
    found = dict[str, None]()
    for number in range(raw.FPDFPage_GetAnnotCount(page)):
        annotation = raw.FPDFPage_GetAnnot(page, number)
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        is_hidden = raw.FPDFAnnot_GetFlags(annotation) & raw.FPDF_ANNOT_FLAG_HIDDEN
        if not is_hidden and (kind == raw.FPDF_ANNOT_TEXT or kind in kinds):
            size = raw.FPDFAnnot_GetStringValue(annotation, b"Contents", None, 0)
            buffer = (raw.FPDF_WCHAR * (size // 2))()
            raw.FPDFAnnot_GetStringValue(annotation, b"Contents", buffer, size)
            note = one_line(bytes(buffer).decode("utf-16-le", "replace"))
            is_typed = kind in (raw.FPDF_ANNOT_TEXT, raw.FPDF_ANNOT_FREETEXT)
            if note and note not in found and (is_typed or note not in own):
                found[note] = None
                left -= len(note)
        raw.FPDFPage_CloseAnnot(annotation)
        if left < 0:
            raise TooMuchText
    return [f"Note: {note}" for note in found]


def _read(page: pypdfium2.PdfTextPage) -> _Page:
    """Read a page in the order of its columns and tables, or as PDFium returns it.

    Plain prose is detected by the boxes of its lines: those of all characters take ten times as long.
    """
    read = _arranged(page, _mended(page))
    if ACCENT.search(read.text) is None or not _has_overlaid(page):
        return read
    lines = [line._replace(text=composed(line.text)) for line in read.lines]
    return read._replace(text=composed(read.text), lines=lines)


def _arranged(page: pypdfium2.PdfTextPage, mended: Mapping[int, str]) -> _Page:
    from pypdfium2.raw import FPDFText_GetUnicode

    plain: str = page.get_text_bounded()
    if mended:
        plain = _with(plain, [chr(FPDFText_GetUnicode(page, at)) for at in range(page.count_chars())], mended)
    lines = list(_lines(page, mended))
    count = page.count_rects()
    if count > MAX_RECTS or page.count_chars() > MAX_ARRANGED:
        return _Page(_joined(plain), True, lines)
    boxes = [Box(*page.get_rect(number)) for number in range(count)]
    if is_plain(boxes):
        return _Page(_joined(plain), True, lines)
    text, unknown = arranged(list(_characters(page, mended)))
    return _Page(_joined(text or plain), min(crossings(boxes), unknown) < MANY_JUMPS, lines)


def _has_overlaid(page: pypdfium2.PdfTextPage) -> bool:
    """Whether most accents of a page are printed over the letter after them, and are no apostrophes."""
    from pypdfium2.raw import FPDFText_GetUnicode

    text = "".join(chr(FPDFText_GetUnicode(page, place)) for place in range(page.count_chars()))
    found = [
        (one.start(), one.end() + (text[one.end() : one.end() + 1] == " ")) for one in ACCENT.finditer(text)
    ]
    overlaid = 0
    for place, following in found[:MAX_ACCENTS]:
        if following < len(text):
            accent, letter = page.get_charbox(place), page.get_charbox(following)
            overlaid += letter[0] < (accent[0] + accent[2]) / 2 < letter[2]
    return 2 * overlaid > min(len(found), MAX_ACCENTS)


def composed(text: str) -> str:
    """The text with accents in their letters: "instalaci´on" is "instalación"."""

    def letter(found: re.Match[str]) -> str:
        if not found[1]:
            return "ç"
        one = normalize("NFC", found[2].replace("ı", "i") + ACCENTS[found[1]])
        return one if len(one) == 1 else found[0]

    return ACCENTED.sub(letter, text)


def _without(page: _Page, head: str) -> _Page:
    text = "\n".join(line for line in page.text.split("\n") if line != head)
    return page._replace(text=text, lines=[line for line in page.lines if line.text != head.strip()])


def _without_repeated(page: _Page, keys: set[str]) -> _Page:
    text = "\n".join(without_repeated(page.text.split("\n"), keys, str))
    return page._replace(text=text, lines=without_repeated(page.lines, keys, attrgetter("text")))


def _drawn(page: pypdfium2.PdfPage) -> Image:
    """A page in shades of grey, as PGM, which needs no compression."""
    width, height = page.get_size()
    scale = min(DPI / POINTS, (MAX_PIXELS / max(width * height, 1)) ** 0.5)
    bitmap = page.render(scale=scale, grayscale=True)
    pixels, stride = bytes(bitmap.buffer), bitmap.stride
    rows = b"".join(pixels[at : at + bitmap.width] for at in range(0, stride * bitmap.height, stride))
    return Image(b"P5 %d %d 255\n" % (bitmap.width, bitmap.height) + rows)


def _joined(text: str) -> str:
    return undivided(text).replace("\r\n", "\n").translate(LIGATURES)


def _with(plain: str, text: Sequence[str], mended: Mapping[int, str]) -> str:
    """The text of a page, where PDFium sets other spaces and drops some characters, with the mended ones."""
    parts, at = list[str](), 0
    for place, character in enumerate(text):
        start = at + len(plain[at : at + MAX_SPACES]) - len(plain[at : at + MAX_SPACES].lstrip(" \r\n"))
        if plain[start : start + 1] == character and character not in " \r\n":
            parts += plain[at:start], mended.get(place, character)
            at = start + 1
        elif place in mended:
            if text[place - 1 : place] in ([" "], ["\n"]):
                parts.append(plain[at:start])
                at = start
            parts.append(mended[place])
    return MOVED.sub("", "".join(parts) + plain[at:])


def _lines(page: pypdfium2.PdfTextPage, mended: Mapping[int, str]) -> Iterator[Line]:
    """The lines of a page with their font sizes: the smallest of the first, middle and last character."""
    from pypdfium2.raw import (
        FPDFText_GetFontInfo,
        FPDFText_GetFontSize,
        FPDFText_GetFontWeight,
        FPDFText_GetUnicode,
    )

    name = create_string_buffer(MAX_FONT_NAME)

    def style(place: int) -> tuple[bool, bool]:
        """Whether a character is bold, and whether it is of code."""
        # A longer name is not copied: the buffer would still hold that of another font.
        size = FPDFText_GetFontInfo(page, place, name, MAX_FONT_NAME, None)
        font = name.value.lower() if 0 < size <= MAX_FONT_NAME else b""
        is_bold = b"bold" in font or FPDFText_GetFontWeight(page, place) >= BOLD_WEIGHT
        return is_bold, MONOSPACED.search(font) is not None

    text: str = page.get_text_range()
    # Offsets in the text are those of its characters, unless some are missing: those without a code.
    if len(text) != page.count_chars():
        text = "".join(chr(FPDFText_GetUnicode(page, place)) for place in range(page.count_chars()))
    for found in LINE.finditer(text):
        middle = (found.start() + found.end()) // 2
        places = [place for place in (found.start(), middle, found.end() - 1) if not text[place].isspace()]
        size = round(min(FPDFText_GetFontSize(page, place) for place in places), 1)
        line = found[0]
        if mended:
            line = "".join(mended.get(place, text[place]) for place in range(found.start(), found.end()))
        line = undivided(MOVED.sub("", line)).translate(LIGATURES).strip()
        styles = [style(place) for place in places]
        # Names of code are often not bold in a bold title; in code and in an index, single words are bold.
        begins_bold = styles[0] == (True, False)
        is_bold = all(is_bold or (is_code and begins_bold) for is_bold, is_code in styles)
        yield Line(line, round(size + BOLD * is_bold, 1))


def _outline(document: pypdfium2.PdfDocument) -> Iterator[Bookmark]:
    for bookmark in document.get_toc():
        target = bookmark.get_dest()
        page = target.get_index() if target else None
        if page is not None:
            yield Bookmark(page, bookmark.level + 1, bookmark.get_title())


def _characters(page: pypdfium2.PdfTextPage, mended: Mapping[int, str]) -> Iterator[tuple[str, Box]]:
    """The characters of a page with their boxes, which have no height in slanted text."""
    from pypdfium2.raw import (
        FS_RECTF,
        FPDFText_GetCharAngle,
        FPDFText_GetLooseCharBox,
        FPDFText_GetUnicode,
    )

    box = FS_RECTF()
    first = ""  # of the two code units of a character beyond U+FFFF
    for number in range(page.count_chars()):
        unit = mended.get(number) or chr(FPDFText_GetUnicode(page, number))
        text = (first + unit).encode("utf-16", "surrogatepass").decode("utf-16", "ignore") if first else unit
        first = unit if "\ud800" <= unit < "\udc00" else ""
        if text != MOVED_AWAY and not first:
            FPDFText_GetLooseCharBox(page, number, box)
            is_slanted = (
                MIN_SLANT < FPDFText_GetCharAngle(page, number) % RIGHT_ANGLE < RIGHT_ANGLE - MIN_SLANT
            )
            yield text, Box(box.left, box.bottom, box.right, box.bottom if is_slanted else box.top)


def _mended(page: pypdfium2.PdfTextPage) -> dict[int, str]:
    """What is meant by characters that the fonts of TeX have in other places, and by accents over letters."""
    text = page.get_text_range()
    if OF_TEX.search(text) is None:
        return {}
    return _decoded(page, DINGBATS if LIKE_E in text else {}) | _on_letters(page)


def _decoded(page: pypdfium2.PdfTextPage, dingbats: Mapping[int, int]) -> dict[int, str]:
    """The characters of fonts without names, bitmaps of TeX, whose codes PDFium takes for those of Latin-1.

    Such a font with letters has TeX's encoding T1 if a code is used that is no letter elsewhere, as for "fi".
    """
    from pypdfium2.raw import (
        FPDFText_GetFontInfo,
        FPDFText_GetTextObject,
        FPDFText_GetUnicode,
        FPDFTextObj_GetFont,
    )

    fonts, misnamed = defaultdict[int, dict[int, int]](dict), set[int]()
    name = create_string_buffer(MAX_FONT_NAME)
    for place in range(page.count_chars()):
        printed = FPDFText_GetTextObject(page, place)
        if printed and FPDFText_GetFontInfo(page, place, name, MAX_FONT_NAME, None) <= 1:
            font = cast(FPDFTextObj_GetFont(printed), c_void_p).value or 0
            code = FPDFText_GetUnicode(page, place)
            fonts[font][place] = dingbats.get(code, code)
            if code in dingbats:
                misnamed.add(place)
    texts = [
        codes for codes in fonts.values() if any(ord("a") <= code <= ord("z") for code in codes.values())
    ]
    is_t1 = any(code in T1_ONLY for codes in texts for code in codes.values())
    letters = T1 if is_t1 else {}
    found = {
        place: letters.get(code, chr(code))
        for codes in texts
        for place, code in codes.items()
        if code in letters or place in misnamed
    }
    signs = [codes for codes in fonts.values() if codes not in texts]
    return found | {place: TS1[code] for codes in signs for place, code in codes.items() if code in TS1}


def _on_letters(page: pypdfium2.PdfTextPage) -> dict[int, str]:
    """Letters with the accents that are printed over them, wherever these stand in the text."""
    from pypdfium2.raw import FPDFText_GetFontSize, FPDFText_GetUnicode

    text = [chr(FPDFText_GetUnicode(page, place)) for place in range(page.count_chars())]
    found = dict[int, str]()
    for place in [place for place, character in enumerate(text) if character in ACCENTS][:MAX_PLACED_ACCENTS]:
        left, bottom, right, _ = page.get_charbox(place)
        size = FPDFText_GetFontSize(page, place)
        around = range(max(place - SEARCH_DISTANCE, 0), min(place + SEARCH_DISTANCE, len(text)))
        for near in sorted(around, key=lambda other: abs(other - place)):
            letter = normalize("NFC", text[near].replace("ı", "i") + ACCENTS[text[place]])
            if near in found or len(letter) > 1 or not letter.isalpha():
                continue
            box = page.get_charbox(near)
            if box[0] <= (left + right) / 2 <= box[2] and -MAX_GAP * size < bottom - box[3] < MAX_GAP * size:
                found |= {near: letter, place: MOVED_AWAY}
                if text[place - 1 : place] == [" "] and text[place + 1 : place + 2] in ([" "], ["\r"], []):
                    found[place - 1] = MOVED_AWAY
                break
    return found
