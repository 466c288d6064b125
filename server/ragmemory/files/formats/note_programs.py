"""Markdown without what programs for notes keep in it for themselves; the number of lines stays the same.

Joplin appends a record to each note, and writes records of notebooks and tags; Excalidraw keeps drawings as
data; Logseq writes identifiers, states and clocks of blocks, and what highlights look like; Notion writes
identifiers into links; others write elements of HTML for styles and anchors.
"""

from __future__ import annotations

import re

from ragcommon.files.decoding import EmptyText

# The record at the end of a file that Joplin exports; its last line is the kind of the file.
JOPLIN = re.compile(r"(?:\A|\n\n)id: [0-9a-f]{32}\n(?:\w+:.*\n)*type_: (\d+)\s*\Z")
JOPLIN_NOTE = "1"
# A first line that is neither empty, a heading nor the beginning of front matter.
PLAIN = re.compile(r"(?!#{1,6}[ \t]|---$)[^\n]*\S", re.MULTILINE)
# The data of a drawing, which follows its texts; what is above these, and their identifiers.
EXCALIDRAW = re.compile(
    r"\n(?:%%\n)?##? Drawing\n```(?:compressed-)?json\n[\s\S]*|^==⚠.*|^# Excalidraw Data$|^##? Text Elements$"
    r"|(?<![ \t])[ \t]+\^[\w-]{8}$",
    re.MULTILINE,
)
# A code block, which may begin an item of a list, or a span of code. What is in them stays.
CODE = (
    r"(?P<code>^[ \t]*(?:- )?(?P<fence>`{3,}+(?!.*`)|~{3,}+)[\s\S]*?(?:^[ \t]*(?P=fence)[`~]*[ \t]*$|\Z)"
    r"|(?<!`)(?P<ticks>`++)[^`\n]+(?P=ticks))|"
)
LOGSEQ_MARKS = ("id:: ", "collapsed:: ", ":LOGBOOK:", "ls-type:: ")
LOGSEQ = re.compile(
    CODE + r"^[ \t]+(?:id:: [0-9a-f]{8}-[0-9a-f-]{27}|collapsed:: (?:true|false)"
    r"|ls-type:: annotation|hl-(?:color|stamp|type):: \w+"
    r"|:LOGBOOK:\n(?:[ \t]+CLOCK:.*\n)*[ \t]+:END:)$",
    re.MULTILINE,
)
# The target of a link to another page of an export by Notion, and to a note or attachment of Joplin.
LINK_END = re.compile(r"(?:%20|\(:/)[0-9a-f]{32}")
LINK = re.compile(
    CODE + r"(?<=\])\((?:(?![\w+.-]+:)[^()\s]{0,2000}%20|:/)[0-9a-f]{32}[^()\s]{0,2000}\)", re.MULTILINE
)
# Elements of HTML for a style or as the target of a link, which no program shows.
STYLE = re.compile(
    CODE + r"(?<!\\)</?(?:span|font)(?:\s[^<>]{0,2000})?>|<a\s(?:id|name)=[^<>\s]{1,200}>\s?</a>",
    re.MULTILINE,
)


def without_records(text: str, front: str) -> str:
    """The text of a note, which states `front` at its beginning. Raises EmptyText if it is only a record."""
    if "type_: " in text[-20:] and (record := JOPLIN.search(text)):
        note = text[: record.start()]
        if record[1] == JOPLIN_NOTE:
            text = f"{'# ' if PLAIN.match(note) else ''}{note}{_blank(record)}"
        elif "\n" not in note.strip():  # A notebook or tag has a name alone.
            raise EmptyText("is a record of Joplin, not a note")
    if "excalidraw-plugin:" in front:
        text = EXCALIDRAW.sub(_blank, text)
    # To find code takes 0.1 s per megabyte.
    if any(mark in text for mark in LOGSEQ_MARKS):
        text = LOGSEQ.sub(_blank_outside_code, text)
    if ("%20" in text or "(:/" in text) and LINK_END.search(text):
        text = LINK.sub(_blank_outside_code, text)
    if any(mark in text for mark in ("</span>", "</font>", "</a>")):
        text = STYLE.sub(_blank_outside_code, text)
    return text


def _blank(lines: re.Match[str]) -> str:
    return "\n" * lines[0].count("\n")


def _blank_outside_code(found: re.Match[str]) -> str:
    return found[0] if found["code"] else _blank(found)
