"""Bookmarks that a browser exported: folders as headings, and the titles and addresses of the links."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import NamedTuple

from ragcommon.files.decoding import decode
from ragmemory.files.formats.file_text import MAX_LEVEL, FileText, TextBuilder, not_a_heading, one_line

BOOKMARKS = re.compile(rb"(?:\xef\xbb\xbf)?\s*<!doctype\s+netscape-bookmark-file-1>", re.IGNORECASE)
# The name of a folder, above the list of its links; a link; a description; where a list begins or ends.
PART = re.compile(
    r"""<h[1-6]\b[^<>]*>(?P<folder>[^<]*)"""
    r"""|<a\s(?P<attributes>(?:[^<>"]++|"[^"]*+")*+)>(?P<title>[^<]*)"""
    r"""|<dd>(?P<about>[^<]*)|<(?P<end>/?)dl>""",
    re.IGNORECASE,
)
ATTRIBUTE = re.compile(r"""(href|tags)\s*=\s*"([^"]*)\"""", re.IGNORECASE)
# Others are scripts, data and queries of the browser.
ADDRESS = re.compile(r"(?:https?|ftp|file|mailto|gemini):", re.IGNORECASE)


class Folder(NamedTuple):
    level: int
    name: str
    lines: list[str]


def read(path: Path, data: bytes) -> FileText:
    """The links of a file, those of a folder before its subfolders. Raises NotText."""
    folders = [Folder(0, "", [])]
    opened, last = [folders[0]], folders[0]
    for part in PART.finditer(decode(data).text):
        if part["folder"] is not None:
            last = Folder(len(opened), _shown(part["folder"]), [])
            folders.append(last)
        elif part["title"] is not None:
            last = opened[-1]
            last.lines.append(_link(part))
        elif part["about"] is not None:
            last.lines.append(f"  {not_a_heading(_shown(part['about']))}")
        elif not part["end"]:
            opened.append(folders[-1])
        elif len(opened) > 1:
            opened.pop()
    builder = TextBuilder(by_paragraph=True)
    for folder in folders:
        if folder.name:
            builder.add(f"{'#' * min(folder.level, MAX_LEVEL)} {folder.name}")
        builder.add("\n".join(folder.lines))
    return builder.build(next((one.name for one in folders if one.name), path.name))


def _link(part: re.Match[str]) -> str:
    stated = {name.lower(): _shown(value) for name, value in ATTRIBUTE.findall(part["attributes"])}
    address, title = stated.get("href", ""), _shown(part["title"])
    address = f" ({address})" if ADDRESS.match(address) and address != title else ""
    tags = f" [{stated['tags']}]" if stated.get("tags") else ""
    return f"- {title}{address}{tags}"


def _shown(text: str) -> str:
    return one_line(unescape(text))
