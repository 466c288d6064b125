"""Headings of settings: ruled comments and boxes, tables such as "[server]", and keys. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragmemory.ingest.candidates import Candidate, is_title, line_at, squeezed
from ragmemory.ingest.nesting import nested

# The patterns begin with the previous line end: searching for "^" takes ten times as long.
# A comment with a rule, or "# - Title -".
RULED = re.compile(
    r"\n[ \t]*(?:[#;!%\"*]|//|--)(?:.*?([-=*#;~_+/])\1{3,}.*|[ \t]+-[ \t][^-\n]*[ \t]-[ \t]*\r?)(?=\n|\Z)"
)
COMMENT = re.compile(r"[ \t]*(?:[#;!%\"*]|//|--)")
FRAME = ' \t\r\n#;/%!"*-=~_+'
# "[server]", "[[routes]]"; and the setting that must follow, which may be a comment.
TABLE = re.compile(r"\n\[{1,2}([^\[\]\n]{1,80})\]{1,2}[ \t]*(?:[#;].*)?\r?(?=\n)")
_DISABLED = r"[#;][ \t]*[\w.-]+[ \t]*="
SETTING = re.compile(rf"(?:[ \t]*(?:[#;].*)?\r?\n)*?[ \t]*(?:[\w.\"'/-]+[ \t]*[=:]|{_DISABLED})")
# A comment above it that describes it, not a setting that is commented out.
COMMENTED = re.compile(r"(?:\A|\n[ \t]*\n)((?:[#;].*\n)+)\n?\Z")
DISABLED = re.compile(rf"^{_DISABLED}", re.MULTILINE)
LOOKBACK = 2_000


def banners(text: str) -> Iterator[Candidate]:
    """The heading candidates in the syntax of settings files."""
    ends = [0]
    framed = f"\n{text}"  # its offsets are those of the text plus one
    for ruled in RULED.finditer(framed):
        start, end = ruled.start(), ruled.end() - 1
        if start >= ends[-1] and (found := _banner(text, start, min(end + 1, len(text)), ruled[1] or "")):
            ends.append(found.end)
            yield found
    for table in TABLE.finditer(framed):
        if SETTING.match(framed, table.end()):
            start, end = table.start(), table.end()
            comment = COMMENTED.search(text, max(0, start - LOOKBACK), start)
            if comment and not DISABLED.search(comment[1]):
                start = end = comment.start(1)
            yield Candidate(start, end, "table", 0, table[1].strip())
    yield from nested(framed, ends)


def _banner(text: str, start: int, end: int, rule: str) -> Candidate | None:
    """The candidate for a comment from `start` to `end` that repeats `rule`."""
    title = text[start:end].strip(FRAME)
    if title:
        is_ruled = is_title(title) and not (rule and 4 * rule in title)
        return Candidate(start, end, "banner", f"{rule} title", squeezed(title)) if is_ruled else None
    line, after = line_at(text, end)
    closing, last = line_at(text, after)
    if _is_comment_title(line) and COMMENT.match(closing) and rule in closing and not closing.strip(FRAME):
        return Candidate(start, last, "banner", f"{rule} box", squeezed(line.strip(FRAME)))
    above_at = text.rfind("\n", 0, max(start - 1, 0)) + 1
    above, _ = line_at(text, above_at)
    before, _ = line_at(text, text.rfind("\n", 0, max(above_at - 1, 0)) + 1) if above_at else ("", 0)
    if start and _is_comment_title(above) and not before.strip(FRAME):
        return Candidate(above_at, end, "banner", f"{rule} below", squeezed(above.strip(FRAME)))
    return None


def _is_comment_title(line: str) -> bool:
    return bool(COMMENT.match(line)) and is_title(line.strip(FRAME))
