"""HTML: the main text of a page as Markdown, without navigation, scripts and forms."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ragcommon.files.decoding import EmptyText, decode, decode_as
from ragcommon.text.rules import EXPORT_MARK
from ragmemory.files.formats.file_text import (
    OWN_EXPORT,
    Cell,
    FileText,
    TextBuilder,
    fenced,
    not_a_heading,
    one_line,
    shifted,
    spread,
    stated_title,
    table,
)
from ragmemory.files.formats.mathml import linear

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

CHARSET = re.compile(rb"""charset\s*=\s*["']?([\w-]+)""", re.IGNORECASE)
SNIFFED_BYTES = 2048
# fmt: off
LEFT_OUT = frozenset((
    "script", "style", "noscript", "template", "svg", "nav", "aside", "footer", "form", "iframe",
    "button", "select", "dialog", "head", "object", "audio", "video", "canvas",
))
NAVIGATION = frozenset((
    "navigation", "banner", "contentinfo", "search", "menu", "menubar", "complementary",
))
# Elements within a line of text; all others begin and end a block.
INLINE = frozenset((
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "dfn", "em", "font",
    "i", "ins", "kbd", "label", "mark", "output", "q", "rp", "rt", "ruby", "samp", "small", "span",
    "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
))
# fmt: on
HEADINGS = {f"h{level}": level for level in range(1, 7)}
# The names of metadata, and the same in JSON-LD. A date is stored without its time.
AUTHOR_NAMES = "author article:author dc.creator dcterms.creator citation_author"
DATE_NAMES = "article:published_time date dc.date dcterms.date dcterms.created citation_publication_date"
AUTHOR_IN_JSON = re.compile(r'"author"\s*:\s*(?:\[\s*)?(?:\{[^{}]{0,500}?"name"\s*:\s*)?"([^"\\]{1,200})"')
DATE_IN_JSON = re.compile(r'"datePublished"\s*:\s*"([^"\\]{1,40})"')
MAX_STATED = 200
DAY = re.compile(r"\d{4}(?:[-/]\d\d(?:[-/]\d\d)?)?")
# Deeper elements are flattened to plain text.
MAX_DEPTH = 150
# A comment, script or style sheet; or a tag. Groups 2 to 4: the `/` of an end tag, its name and attributes.
TAG = re.compile(
    r"""<!--(?:-?>|.*?(?:--!?>|\Z))|<(script|style)\b.*?(?:</\1|\Z)"""
    # Quotation marks count only after "=".
    r"""|<(/?)([a-z][^\s/>]*+)((?:[^>=]++|=\s*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z))?+)*+)(?:>|\Z)""",
    re.DOTALL | re.IGNORECASE,
)
QUOTED = re.compile(r"""=\s*+(?:"[^"]*"|'[^']*')""")
BETWEEN_ATTRIBUTES = re.compile(r"[\s/=]+")
# The parser takes quadratic time in the attributes of a tag, and in the open elements: those without an end
# tag, unless they end implicitly. Formatting elements are even reopened in each paragraph.
MAX_ATTRIBUTES = 1_000
MAX_OPEN = 2_000
MAX_REOPENED = 50
# fmt: off
REOPENED = frozenset((
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
))
NOT_OPEN = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr", "html", "head", "body", "p", "li", "dd", "dt", "td", "th", "tr", "tbody", "thead",
    "tfoot", "option",
))
# fmt: on
# Words in the classes and ids of what surrounds the content of a page.
# fmt: off
BANNERS = frozenset((
    "ad", "ads", "advert", "advertisement", "banner", "breadcrumb", "breadcrumbs", "consent", "cookie",
    "cookies", "editsection", "footer", "gdpr", "login", "navbar", "newsletter", "paywall", "popup", "promo",
    "recommended", "related", "share", "sharing", "sidebar", "sitenotice", "social", "sponsored", "subscribe",
    "toc", "topbar",
))
# fmt: on
# What is not displayed may still be unfolded by the reader; what has no size either, is never to be seen.
UNSEEN = re.compile(
    r"(?=.*(?<![\w-])display\s*:\s*none\b)"
    r".*(?<![\w-])(?:mso-hide\s*:\s*all|(?:max-height|max-width|height|width|font-size|line-height)\s*:\s*0)",
    re.IGNORECASE | re.DOTALL,
)
# The buttons that open a part of a page in its place, such as the answer to a question; and what belongs to
# the site rather than to its text.
OPENERS = "button[aria-expanded][aria-controls]:not([aria-haspopup])"
SITE = "nav, header, footer, aside, dialog, form, [role]:not([role=main], [role=region], [role=tabpanel])"
NOT_LETTERS = re.compile("[^a-z]+")
NOTE_NUMBER = re.compile(r"\s*\[?(\d{1,4})\]?\s*", re.ASCII)
WORD_END = re.compile(r"\w\Z")
# A list with at least FEW_LINKS links, and a larger share of its text in links, is navigation.
MAX_LINKS = 0.7
FEW_LINKS = 4
# Links to the neighbours of a page or section, which manuals have above and below each, with few other words.
TURNING = "body a[rel=next], body a[rel=prev], body a[accesskey=n], body a[accesskey=p]"
MAX_TURNING = 400
BETWEEN_LINKS = re.compile(r"[\s|·•›»>/]*[|·•›»>][\s|·•›»>/]*")
# The beginning of the list of all pages that is in each export by Notion.
NOTION_INDEX, BEGINNING = '<ul id="id::', 2_048
# A line that is no heading.
ANY_TEXT = re.compile(r"^(?!#|$)", re.MULTILINE)
# Formulas of MathJax: their TeX, and how they are drawn.
TEX = 'script[type^="math/tex"]'
DRAWN = "mjx-container, .MathJax_Preview, .MathJax, .MathJax_Display, .MathJax_SVG, .MathJax_CHTML"
TEXTS = "p, ul, ol, dl, pre, h1, h2, h3, h4, h5, h6"
# Numbers of the pages of a printed book, which stand in its sentences and words.
PAGE_NUMBERS, MAX_NUMBER = "span.pagenum, span.pageno, span.pagenumber, [role=doc-pagebreak]", 20


def read(path: Path, data: bytes, *, is_page: bool = False) -> FileText:
    """The main text of a file; of a page from the web, also without what its classes call banners.

    Raises NotText.
    """
    html = _decoded(data)
    if NOTION_INDEX in html[:BEGINNING]:
        raise EmptyText("is the list of pages in an export by Notion")
    tree = _tree(html)
    text, title = _markdown(tree, is_page=is_page)
    if not ANY_TEXT.search(text):  # A page of links, such as a list of what was saved to be read.
        text, title = _markdown(_tree(html), is_page=is_page, with_links=True)
    builder = TextBuilder(by_paragraph=True)
    heading, _, rest = text.partition("\n\n") if text.startswith("# ") else ("", "", text)
    builder.add(heading)
    if text:
        builder.add(_byline(tree))
    builder.add(rest)
    return replace(
        builder.build(title or path.name), left_out=OWN_EXPORT if html.rstrip().endswith(EXPORT_MARK) else ""
    )


def markdown(html: str, *, with_links: bool = False) -> tuple[str, str]:
    """The main text as Markdown, and the title: that of the head, else the first heading, else "".

    With `with_links`, it has the addresses of links, and lists of links are not taken for navigation.
    """
    return _markdown(_tree(html), is_page=False, with_links=with_links)


def _tree(html: str) -> LexborHTMLParser:
    from selectolax.lexbor import LexborHTMLParser

    return LexborHTMLParser(_bounded(html))


def _markdown(tree: LexborHTMLParser, *, is_page: bool, with_links: bool = False) -> tuple[str, str]:
    head = tree.css_first("head > title")
    root = _main(tree.body) if tree.body else None
    if root is None:
        return "", ""
    _clean(root)
    blocks = _Blocks(len(root.text() or "") if is_page else 0, with_links)
    blocks.walk(root, 0)
    blocks.end()
    first = tree.css_first("h1")
    title = stated_title(head.text()) if head else ""
    return "\n\n".join(map("\n".join, blocks.done)), title or (one_line(first.text()) if first else "")


def _clean(root: LexborNode) -> None:
    """Remove what a reader does not see or read, and replace formulas and notes by text."""
    _write_formulas(root)
    # Links of headings to themselves: "¶" or "#".
    for link in root.css('a[href*="#"]'):
        if (mark := (link.text() or "").strip()) and not any(map(str.isalnum, mark)):
            link.decompose()
    for number in root.css(PAGE_NUMBERS):
        if len(number.text() or "") <= MAX_NUMBER:
            number.replace_with("")
    turning = {block.mem_id: block for block in map(_block_of, root.css(TURNING))}
    for block in [one for one in turning.values() if _turns(one) and not _is_within(one, turning)]:
        block.decompose()
    _open(root)
    for unseen in [*root.css("del, s, strike"), *filter(_is_unseen, root.css("[hidden], [style]"))]:
        unseen.replace_with("")
    _write_shifted(root)


def _open(root: LexborNode) -> None:
    """Show what buttons of the text open in its place, below their texts."""
    of_site = {button.mem_id for button in root.css(f":is({SITE}) button")}
    openers = [button for button in root.css(OPENERS) if button.mem_id not in of_site]
    parts = {part.attributes["id"]: part for part in root.css(f"[id]:not({SITE})")} if openers else {}
    for button in openers:
        if part := parts.get(button.attributes["aria-controls"]):
            button.unwrap()
            for hiding in {"hidden", "style", "aria-hidden"}.intersection(part.attributes):
                del part.attrs[hiding]


def _byline(tree: LexborHTMLParser) -> str:
    """Lines with the author and the date of publication, as far as a page states them."""

    def stated(names: str, pattern: re.Pattern[str]) -> str:
        for name in names.split():
            for node in tree.css(f'meta[name="{name}" i], meta[property="{name}" i]'):
                content = one_line(node.attributes.get("content") or "")[:MAX_STATED]
                if content and not content.startswith(("http:", "https:")):
                    return content
        scripts = (node.text() or "" for node in tree.css('script[type="application/ld+json"]'))
        found = next(filter(None, map(pattern.search, scripts)), None)
        return one_line(found[1]) if found else ""

    author, date = stated(AUTHOR_NAMES, AUTHOR_IN_JSON), DAY.match(stated(DATE_NAMES, DATE_IN_JSON))
    return "\n".join([*([f"Author: {author}"] if author else []), *([f"Date: {date[0]}"] if date else [])])


def _bounded(html: str) -> str:
    """Drop tags that are nested too deeply, and the attributes of tags that have too many."""
    opened, left_out = Counter[str](), Counter[str]()
    count = {True: 0, False: 0}  # open elements, by whether they are reopened

    def bounded(tag: re.Match[str]) -> str:
        is_end, name = tag[2], (tag[3] or "").lower()
        is_reopened = name in REOPENED
        if not name or name in NOT_OPEN:
            pass
        elif not is_end:
            if count[is_reopened] == (MAX_REOPENED if is_reopened else MAX_OPEN):
                left_out[name] += 1
                return "" if is_reopened else " "
            count[is_reopened] += 1
            opened[name] += 1
        elif left_out[name]:
            left_out[name] -= 1
            return "" if is_reopened else " "
        elif opened[name]:
            count[is_reopened] -= 1
            opened[name] -= 1
        has_many = name and len(tag[4]) > MAX_ATTRIBUTES
        if has_many and len(BETWEEN_ATTRIBUTES.split(QUOTED.sub(" ", tag[4]))) > MAX_ATTRIBUTES:
            return f"<{is_end}{name}>"
        return tag[0]

    return TAG.sub(bounded, html)


def _decoded(data: bytes) -> str:
    """Decode with the charset that the page declares, else as any text file."""
    stated = CHARSET.search(data[:SNIFFED_BYTES])
    has_mark = data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = decode_as(data, stated[1].decode()) if stated and not has_mark else None
    return decode(data).text if text is None else text


def _main(body: LexborNode) -> LexborNode:
    """The only non-empty `main` or `article`, else the whole body."""
    for selector in ("main, [role=main]", "article"):
        found = (node for node in body.css(selector) if (node.text() or "").strip())
        main = next(found, None)
        if main is not None and next(found, None) is None:
            return main
    return body


@dataclass
class _Blocks:
    """Walks a tree and collects its blocks. `page`: the characters of a page from the web; 0: of a file.

    `with_links`: lists of links are kept, and the addresses of links are shown.
    """

    page: int = 0
    with_links: bool = False
    done: list[list[str]] = field(default_factory=list)  # the lines of each block; a list is one block
    line: list[str] = field(default_factory=list)  # the text of the open block
    prefix: str = ""  # list marker of the open block
    quoted: int = 0  # nesting depth of blockquotes
    lists: list[int] = field(default_factory=list)  # the last number of each enclosing list; -1 for bullets
    term: int = 0  # how many blocks there are up to a term whose definition may follow; 0 for none

    def end(self) -> None:
        """End the open block."""
        lines = [not_a_heading(" ".join(line.split())) for line in "".join(self.line).split("\n")]
        text = "\n".join(filter(None, lines))
        self.line = []
        if not text:
            return
        block = f"{'  ' * (len(self.lists) - 1)}{self.prefix}{text}"
        is_item = bool(self.lists and self.prefix)
        if defines := 0 < self.term == len(self.done) and not (is_item or self.quoted):
            block, self.term = "  " + block.replace("\n", "\n  "), 0
        self._append(block, joined=defines or (is_item and bool(self.done) and _is_item(self.done[-1][0])))
        self.prefix = ""

    def _append(self, block: str, *, joined: bool = False) -> None:
        if self.quoted:
            block = "\n".join(f"{'> ' * self.quoted}{line}".rstrip() for line in block.split("\n"))
        if joined:
            self.done[-1].append(block)
        else:
            self.done.append([block])

    def walk(self, node: LexborNode, depth: int) -> None:
        """Read the children of an element."""
        if depth > MAX_DEPTH:
            self.line.append(node.text(separator=" ") or "")
            return
        for child in node.iter(include_text=True):
            tag = child.tag or ""
            if tag == "-text":
                self.line.append((child.text_content or "").replace("\n", " "))
            elif tag == "br":
                self.line.append("\n")
            elif self._is_left_out(tag) or _is_hidden(child) or (self.page and self._is_banner(child)):
                continue
            elif tag == "img":
                self.line.append(f" {child.attributes.get('alt') or ''} ")
            elif tag in INLINE:
                self.walk(child, depth + 1)
                if tag == "a" and self.with_links:
                    self._add_address(child)
            else:
                self.end()
                self._block(tag, child, depth)
                self.end()

    def _is_left_out(self, tag: str) -> bool:
        return tag in LEFT_OUT and not (tag == "nav" and self.with_links and not self.page)

    def _add_address(self, link: LexborNode) -> None:
        address = link.attributes.get("href") or ""
        if address.startswith(("http:", "https:")) and address != (link.text() or "").strip():
            self.line.append(f" ({address})")

    def _is_banner(self, node: LexborNode) -> bool:
        """Whether a smaller part of a page says in its class or id that it is no content."""
        attributes = node.attributes
        words = f"{attributes.get('class') or ''} {attributes.get('id') or ''}".lower()
        is_named = not BANNERS.isdisjoint(NOT_LETTERS.split(words)) or (
            node.tag == "div" and _is_navigation(node)
        )
        return is_named and node.css_first("h1") is None and 2 * len(node.text() or "") < self.page

    def _block(self, tag: str, node: LexborNode, depth: int) -> None:
        if tag in HEADINGS:
            if title := one_line("".join(_inner_text(node))):
                self._append(f"{'#' * HEADINGS[tag]} {title}")
        elif tag == "hgroup" and (heading := node.css_first(", ".join(HEADINGS))) is not None:
            if title := one_line("".join(_inner_text(node))):  # "VII" and "Visiting", its title
                self._append(f"{'#' * HEADINGS[heading.tag or '']} {title}")
        elif tag == "pre":
            if (code := node.text() or "").strip():
                self._append(fenced(code))
        elif tag == "table" and (rows := _rows(node)):
            if (caption := node.css_first("caption")) is not None:
                self.walk(caption, depth + 1)
                self.end()
            self._append("\n".join(table(rows)))
        elif not self.with_links and _is_only_links(tag, node):
            return
        elif tag in ("ul", "ol"):
            self.lists.append(_number(node, "start") - 1 if tag == "ol" else -1)
            self.walk(node, depth + 1)
            self.end()
            self.lists.pop()
        elif tag == "li":
            if self.lists and self.lists[-1] >= 0:
                self.lists[-1] = _number(node, "value", self.lists[-1] + 1)
            number = self.lists[-1] if self.lists else -1
            self.prefix = f"{number}. " if number > 0 else "- "
            self.walk(node, depth + 1)
            self.end()
            self.prefix = ""
        elif tag in ("dt", "dl"):
            self.term = 0
            self.walk(node, depth + 1)
            self.end()
            is_text = bool(self.done) and self.done[-1][-1][:1] not in "#|>`"
            self.term = len(self.done) if tag == "dt" and is_text else 0
        elif tag == "blockquote":
            self.quoted += 1
            self.walk(node, depth + 1)
            self.end()
            self.quoted -= 1
        else:
            self.walk(node, depth + 1)


def _write_formulas(root: LexborNode) -> None:
    """Replace the formulas of MathJax and those in MathML by their text.

    What MathJax draws is next to the TeX, or around the MathML for screen readers. There is no TeX in a page
    that was saved without scripts.
    """
    formulas = root.css(TEX)
    for formula in formulas:
        formula.replace_with(formula.text() or "")
    inner = set[int]()
    for drawn in root.css(DRAWN):
        if drawn.mem_id in inner:
            continue
        inner.update(node.mem_id for node in drawn.css(DRAWN))
        has_tex = formulas and drawn.tag != "mjx-container"
        shown = None if has_tex else drawn.css_first("math")
        text = "" if formulas else drawn.text() or ""
        drawn.replace_with(_written(shown) if shown is not None else text)
    for formula in root.css("math"):
        formula.replace_with(_written(formula))


def _written(formula: LexborNode) -> str:
    """A formula in TeX if the page states that, else in one line."""
    tex = formula.css_first('annotation[encoding="application/x-tex"]')
    stated = formula.attributes.get("alttext") or (tex.text() if tex is not None else "")
    return stated or linear(formula)


def _write_shifted(root: LexborNode) -> None:
    """Write raised and lowered text, and marks of notes, which would be part of the word before them."""
    for node in root.css("sup, sub, a"):
        text = node.text() or ""
        if (number := NOTE_NUMBER.fullmatch(text)) and _is_note_mark(node):
            node.replace_with(f"[^{number[1]}]")
        elif node.tag != "a" and node.css_first("a") is None:
            written = shifted(text, is_raised=node.tag == "sup")
            if written != text:
                node.replace_with(written)
    root.merge_text_nodes()


def _is_note_mark(number: LexborNode) -> bool:
    """Whether a number is raised and a link, is said to be the mark of a note, or is linked after a word."""
    if number.tag != "a":
        return number.tag == "sup" and number.css_first("a") is not None
    kinds = f"{number.attributes.get('epub:type') or ''} {number.attributes.get('role') or ''}"
    is_raised = (number.parent is not None and number.parent.tag == "sup") or number.css_first("sup")
    before = number.prev
    # Page numbers are links one after another.
    is_text = before is not None and before.tag in {"-text", *INLINE} - {"a"}
    word_end = WORD_END.search(before.text() or "") if before is not None and is_text else None
    return "noteref" in kinds or bool(is_raised or word_end)


def _is_item(block: str) -> bool:
    return re.match(r"[> ]*(?:- |\d+\. )", block) is not None


def _is_unseen(node: LexborNode) -> bool:
    attributes = node.attributes
    return "hidden" in attributes or UNSEEN.match(attributes.get("style") or "") is not None


def _is_hidden(node: LexborNode) -> bool:
    attributes = node.attributes
    return (
        attributes.get("aria-hidden") == "true"
        or attributes.get("role") in NAVIGATION
        or (node.tag == "header" and node.css_first("h1, h2") is None)
    )


def _block_of(link: LexborNode) -> LexborNode:
    """The block around a link; the whole table if it is in one."""
    node = link
    while node.parent is not None and node.tag in INLINE | {"td", "th", "tr", "tbody", "li"}:
        node = node.parent
    return node


def _turns(block: LexborNode) -> bool:
    """Whether a block has little but links to the neighbours of a page or section."""
    if block.tag not in ("p", "ul") and (
        block.tag not in ("div", "table") or block.css_first(TEXTS) is not None
    ):
        return False
    return len(block.css("a")) > 1 and len(block.text() or "") < MAX_TURNING


def _is_within(node: LexborNode, others: Container[int]) -> bool:
    """Whether a node is inside one of the others, given by their ids."""
    return node.parent is not None and (node.parent.mem_id in others or _is_within(node.parent, others))


def _is_only_links(tag: str, block: LexborNode) -> bool:
    """Whether a block leads to other pages or sections, and says nothing itself."""
    if tag in ("ul", "ol"):
        return _is_navigation(block)
    if tag == "dl":
        return _is_contents(block)
    return tag in ("p", "div") and _is_bar(block)


def _is_contents(terms: LexborNode) -> bool:
    """Whether a list of definitions is a table of contents: links, and below them only further lists."""
    return _is_navigation(terms) and all(one.css_first("dl, ul, ol") is not None for one in terms.css("dd"))


def _is_navigation(items: LexborNode) -> bool:
    """Whether a list consists of links."""
    links = items.css("a")
    if len(links) < FEW_LINKS:
        return False
    linked = sum(len(one_line(link.text() or "")) for link in links)
    return linked > MAX_LINKS * len(one_line(items.text() or ""))


def _is_bar(block: LexborNode) -> bool:
    """Whether a block has only links with signs between them: "Home | Help | FAQ", "Docs > 2.4 > Modules"."""
    if block.css_first(f"{TEXTS}, div, table") not in (None, block):
        return False
    links = block.css("a")
    text = one_line(block.text() or "")
    if len(links) < FEW_LINKS or len(text) > MAX_TURNING:
        return False
    for link in links:
        text = text.replace(one_line(link.text() or ""), "", 1)
    return BETWEEN_LINKS.fullmatch(text) is not None


def _rows(node: LexborNode) -> list[list[str]]:
    """The cells of a table; none for a layout table: it holds blocks, or has one column or row."""
    if node.css_first("table h1, table h2, table p + p") is not None:
        return []
    # A table within another one matches itself.
    if any(one != node for one in node.css("table table")):
        return []
    rows = spread(map(_cells, node.css("tr")))
    return rows if len(rows) > 1 and max(map(len, rows)) > 1 else []


def _inner_text(node: LexborNode, depth: int = 0) -> Iterator[str]:
    """The text of a heading or cell, with a space only where a block or a line begins or ends."""
    if depth > MAX_DEPTH:
        yield node.text(separator=" ") or ""
        return
    for child in node.iter(include_text=True):
        tag = child.tag or ""
        if tag == "-text":
            yield child.text_content or ""
        elif tag == "img":
            yield f" {child.attributes.get('alt') or ''} "
        elif tag in INLINE:
            yield from _inner_text(child, depth + 1)
        elif tag not in ("script", "style", "template"):
            yield " "
            yield from _inner_text(child, depth + 1)
            yield " "


def _cells(row: LexborNode) -> Iterator[Cell]:
    for cell in row.iter():
        if cell.tag in ("td", "th"):
            text = one_line("".join(_inner_text(cell)))
            yield text, _number(cell, "colspan"), _number(cell, "rowspan")


def _number(node: LexborNode, name: str, usual: int = 1) -> int:
    number = re.fullmatch(r"\s*0*([1-9]\d{0,4})\s*", node.attributes.get(name) or "", re.ASCII)
    return int(number[1]) if number else usual
