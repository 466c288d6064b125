"""EPUB: the chapters of an e-book in reading order."""

from __future__ import annotations

import posixpath
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


def read(path: Path, data: bytes) -> FileText:
    """The text of a book. Raises NotText."""
    archive = open_archive(data, KIND)
    title, pages = _contents(archive)
    builder, has_text = TextBuilder(by_paragraph=True), False
    for name in pages:
        text, _ = markdown(member(archive, name, KIND).decode("utf-8", errors="replace"))
        builder.add(text)
        has_text = has_text or bool(text)
    if not has_text and ENCRYPTION in archive.namelist():
        raise NotText("is encrypted")
    return builder.build(title or path.name)


def _contents(archive: ZipFile) -> tuple[str, list[str]]:
    """The title of a book, and the names of its pages in reading order. Raises Damaged."""
    roots = [one for one in xml(archive, CONTAINER, KIND).iter() if local(one.tag) == "rootfile"]
    if not roots:
        raise Damaged(KIND)
    package_name = attribute(roots[0], "full-path")
    title, files, order = "", dict[str, str](), list[str]()
    for element in xml(archive, package_name, KIND).iter():
        name = local(element.tag)
        if name == "title":
            title = title or one_line(element.text or "")
        elif name == "item" and attribute(element, "media-type") in PAGES:
            files[attribute(element, "id")] = unquote(attribute(element, "href"))
        elif name == "itemref":
            order.append(attribute(element, "idref"))
    pages = [files[identifier] for identifier in dict.fromkeys(order) if identifier in files]
    folder = posixpath.dirname(package_name)
    return title, [posixpath.normpath(posixpath.join(folder, page)) for page in pages]
