"""Plain text, Markdown and source code, unchanged but for data of images and signs for a terminal."""

from __future__ import annotations

import re
from pathlib import Path
from shlex import quote

from ragcommon.files.decoding import decode
from ragcommon.text.rules import ASK, EXPECT, EXPORT_MARK, FRONT_MATTER, MARKDOWN_NAMES, STEP
from ragmemory.files.formats import asciidoc
from ragmemory.files.formats.file_text import OWN_EXPORT, OWN_SCRIPT, PRIVATE_KEY, FileText
from ragmemory.files.formats.note_programs import without_records
from ragmemory.files.formats.paged import without_page_breaks
from ragmemory.ingest.documents import is_markdown, is_prose, leading_heading
from ragmemory.ingest.headings import has_markdown

# The source of a manual page begins with a request or comment of roff, and has a title and sections. It may
# define macros before them.
ROFF = (
    re.compile(r"\s*[.'][ \t]*(?:[\\A-Za-z]|\n)"),
    re.compile(r"^\.[ \t]*(?:TH|Dd)[ \t]+\S", re.MULTILINE),
    re.compile(r"^\.[ \t]*S[Hh]\b", re.MULTILINE),
)
# A character that a typewriter strikes over, for bold or underlined ones; and colours of a terminal.
OVERSTRUCK = re.compile("[^\n]\x08|\x1b\\[[\\d;]*[mK]")
# AsciiDoc without its extension, as the manuals of Git are: headings below their anchors.
ASCIIDOC = re.compile(r"^\[\[[\w.:-]+(?:,[^]|\n]*)?\]\]\n={1,6}[ \t]+\S.*(?<!=)$", re.MULTILINE)
IMAGE_DATA = re.compile(r"(\bdata:image/[\w.+-]+)(?:;[\w.=-]+)*;base64,[\w+/=%-]+", re.ASCII)
KEY = re.compile(r"\s*-----BEGIN (?:[A-Z]+ ){0,2}PRIVATE KEY(?: BLOCK)?-----")
# The forms of YAML that programs for notes write: a value, or a list in one line or several. Logseq has the
# properties of a page in lines of their own instead.
STATED = re.compile(r"^(title|tags)::?[ \t]*+(?![>|])(.*(?:\n[ \t]*- .*)*)", re.MULTILINE)
PROPERTIES = re.compile(r"((?:[\w-]+::.*(?:\n|\Z))+)")


def read(path: Path, data: bytes) -> FileText:
    """The text of a file. Raises NotText, EmptyText."""
    decoded, suffix = decode(data), path.suffix.lower()
    text, notes = decoded.text, [decoded.note]
    if suffix in ("", ".txt") and len(ASCIIDOC.findall(text)) > 1:
        return asciidoc.read(path, data)
    if suffix in MARKDOWN_NAMES:
        front = FRONT_MATTER.match(text)
        text = without_records(text, front[1] if front else "")
    else:  # Programs write these.
        text = OVERSTRUCK.sub("", text) or text
    if is_markdown(path.name):
        if "data:image/" in text:  # A regular expression reads a megabyte in 15 ms.
            text = IMAGE_DATA.sub(r"\1", text)
    elif is_prose(path.name):
        text = without_page_breaks(text)
    begins, title, section = ROFF
    if begins.match(text) and title.search(text) and section.search(text):
        name = quote(path.stem)
        shown = f"`man {name} | col -b > {name}.txt`"
        notes.append(f"is the source of a manual page, with its markup: load what {shown} writes instead")
    # A name says nothing about the text of a file without a known extension.
    is_plain = is_markdown(path.name) and suffix not in MARKDOWN_NAMES and not has_markdown(text)
    note = "; ".join(filter(None, notes))
    media_type = "text/plain" if is_plain else ""
    stated, tags = _stated(suffix, text)
    left_out = _left_out(suffix, text)
    return FileText(text, stated or path.name, note, media_type=media_type, tags=tags, left_out=left_out)


def _left_out(suffix: str, text: str) -> str:
    if KEY.match(text):
        return PRIVATE_KEY
    if text.rstrip().endswith(EXPORT_MARK):
        return OWN_EXPORT
    is_script = suffix == ".toml" and all(one.search(text) for one in (STEP, ASK, EXPECT))
    return OWN_SCRIPT if is_script else ""


def title_of(path: Path, text: str) -> str:
    """The title that a Markdown document states, else the file's name."""
    return _stated(path.suffix.lower(), text)[0] or path.name


def _stated(suffix: str, text: str) -> tuple[str, list[str]]:
    """The title and the tags that a Markdown document states.

    Its first heading states the title if that is of the first level, or nothing but front matter is above it.
    """
    if suffix not in MARKDOWN_NAMES:
        return "", []
    front = FRONT_MATTER.match(text) or PROPERTIES.match(text)
    stated = {name: value.rstrip() for name, value in STATED.findall(front[1])} if front else {}
    title = stated.get("title", "").strip("\"'") or leading_heading(text[front.end() if front else 0 :])
    tags = re.split(r"\n[ \t]*- |,", stated.get("tags", "").strip("[]"))
    return title, [*filter(None, (tag.strip(" \t\"'#[]") for tag in tags))]
