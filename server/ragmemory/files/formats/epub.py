"""EPUB: the chapters of an e-book in reading order."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from urllib.parse import unquote
from zipfile import ZipFile

from ragcommon.files.decoding import NotText
from ragmemory.files.formats.archives import attribute, local, member, open_archive, xml
from ragmemory.files.formats.file_text import Damaged, FileText, TextBuilder, one_line
from ragmemory.files.formats.html import markdown

KIND = "EPUB"
CONTAINER = "META-INF/container.xml"
ENCRYPTION = "META-INF/encryption.xml"
PAGES = ("application/xhtml+xml", "text/html")
# An empty element of XHTML: HTML takes it for the beginning of one, and "<title/>" would hide the whole page.
EMPTY = re.compile(r"<(?!br\b)([a-z][\w:-]*+)([^<>]*)/>")


def read(path: Path, data: bytes) -> FileText:
    """The text of a book. Raises NotText."""
    archive = open_archive(data, KIND)
    title, authors, pages = _contents(archive)
    builder, has_text = TextBuilder(by_paragraph=True), False
    if authors:
        builder.add(f"Author of {title or path.name}: {', '.join(authors)}")
    for name in pages:
        html = member(archive, name, KIND).decode("utf-8", errors="replace")
        text, _ = markdown(EMPTY.sub(r"<\1\2></\1>", html))
        builder.add(text)
        has_text = has_text or bool(text)
    if not has_text and ENCRYPTION in archive.namelist():
        raise NotText("is encrypted")
    return builder.build(title or path.name)


def _contents(archive: ZipFile) -> tuple[str, list[str], list[str]]:
    """The title of a book, its authors, and the names of its pages in reading order. Raises Damaged."""
    roots = [one for one in xml(archive, CONTAINER, KIND).iter() if local(one.tag) == "rootfile"]
    if not roots:
        raise Damaged(KIND)
    package_name = attribute(roots[0], "full-path")
    title, authors, files, order = "", list[str](), dict[str, str](), list[str]()
    for element in xml(archive, package_name, KIND).iter():
        name = local(element.tag)
        if name == "title":
            title = title or one_line(element.text or "")
        elif name == "creator" and (author := one_line(element.text or "")):
            authors.append(author)
        elif name == "item" and attribute(element, "media-type") in PAGES:
            files[attribute(element, "id")] = unquote(attribute(element, "href").partition("#")[0])
        elif name == "itemref":
            order.append(attribute(element, "idref"))
    folder = posixpath.dirname(package_name)
    pages = [posixpath.normpath(posixpath.join(folder, files[one])) for one in order if one in files]
    # Some books list a page once for each of its sections.
    return title, authors, list(dict.fromkeys(pages))
