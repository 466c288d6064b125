"""Headings of settings: ruled comments and boxes, tables such as "[server]", keys of YAML and JSON. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragmemory.ingest.candidates import Candidate, is_title, line_at, squeezed

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
# A key of YAML or JSON; what follows one that has others below it, in its line and in the next; a text of
# several lines as its value.
PAIR = re.compile(r"\n[ \t]*+(?:- ++)*+(?:\"[^\"\n]*\"|'[^'\n]*'|[\w$@/.-][^\"'#\n:]*):(?= |\r?\n)")
NO_VALUE = re.compile(r"[ \t]*+[{[]?+[ \t]*+(?:#.*)?\r?(?=\n)")
BLOCK = re.compile(r"[ \t]*+[|>][-+\d]*[ \t]*\r?\n")
OTHER = re.compile(r"\n[ \t]*+(?![\r\n#}\]]|\Z)")
# The minimum share of keys among the lines that are neither blank nor comments, and the characters looked at.
MIN_PAIRS = 0.6
SAMPLE = 20_000


def banners(text: str) -> Iterator[Candidate]:
    """The heading candidates in the syntax of settings files."""
    last = 0
    framed = f"\n{text}"  # its offsets are those of the text plus one
    for ruled in RULED.finditer(framed):
        start, end = ruled.start(), ruled.end() - 1
        if start >= last and (found := _banner(text, start, min(end + 1, len(text)), ruled[1] or "")):
            last = found.end
            yield found
    for table in TABLE.finditer(framed):
        if SETTING.match(framed, table.end()):
            start, end = table.start(), table.end()
            comment = COMMENTED.search(text, max(0, start - LOOKBACK), start)
            if comment and not DISABLED.search(comment[1]):
                start = end = comment.start(1)
            yield Candidate(start, end, "table", 0, table[1].strip())
    beginning = framed[:SAMPLE]
    # An array of JSON has records, not settings.
    if beginning[1:2] != "[" and len(PAIR.findall(beginning)) >= MIN_PAIRS * len(OTHER.findall(beginning)):
        yield from _keys(framed)


def _keys(framed: str) -> Iterator[Candidate]:
    """The keys with others below them, and without a title where those end, in a text with little else."""
    open_keys: list[int] = []  # their indentation
    text = -1  # the indentation of a key with a text of several lines
    for pair in PAIR.finditer(framed):
        name = pair[0].lstrip()
        indent = len(pair[0]) - 1 - len(name)
        if 0 <= text < indent:
            continue
        text = indent if BLOCK.match(framed, pair.end()) else -1
        outer = [one for one in open_keys if one < indent]
        below = OTHER.search(framed, pair.end()) if NO_VALUE.match(framed, pair.end()) else None
        inner = len(below[0]) - 1 if below else -1
        is_list = below is not None and inner == indent and framed.startswith("- ", below.end())
        if inner > indent or (is_list and not name.startswith("-")):
            yield Candidate(pair.start(), pair.start(), "key", indent, name.lstrip("- ").strip("\"':"))
            open_keys = [*outer, indent]
        elif len(outer) < len(open_keys) and not (name.startswith("-") and open_keys[len(outer)] == indent):
            yield Candidate(pair.start(), pair.start(), "key", open_keys[len(outer)], "")
            open_keys = outer


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
