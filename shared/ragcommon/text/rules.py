"""Rules about text in both programs: scripts, identifiers, headings, names of passages. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

# Thai, Lao, Myanmar, Khmer, kana, Han: the inside of a character class.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)

# Combining marks, and the scripts of India, whose vowels are marks: the inside of a character class. `\w`
# matches no mark, and so splits the words of Hindi, Arabic, Hebrew and others, and decomposed letters.
MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0711-\u074a"
    "\u0900-\u0963\u0966-\u0dff\u200c\u200d"
)

# Where a part of an identifier ends: retry_after, retryAfter, utf8Decode, HTTPServer; but not IDs, H2SO4.
PART_END = r"_+|(?<=[a-z])(?=[A-Z])|(?<=\d)(?=[A-Z][a-z])|(?<=[A-Z])(?=[A-Z][a-z]{2})"

# Ends exported conversations. Memory does not take them from folders: old answers would become sources.
EXPORT_MARK = "<!-- exported by ragchat -->"
# In a script of questions: the line that begins a step, what it does, and what it expects.
STEP = re.compile(r"^[ \t]*\[\[[ \t]*step[ \t]*\]\]", re.MULTILINE)
ASK = re.compile(r"^[ \t]*(?:ask|query)[ \t]*=", re.MULTILINE)
EXPECT = re.compile(r"^[ \t]*(?:expect[ \t]*[.=]|\[[ \t]*step\.expect)", re.MULTILINE)

# A line with its end.
LINE = re.compile(r"[^\n]*\n|[^\n]+")
# How the names of files in Markdown end.
MARKDOWN_NAMES = (".md", ".markdown", ".mdown", ".mkd")
# YAML at the beginning of Markdown, which the group holds.
FRONT_MATTER = re.compile(r"---[ \t]*\n((?:(?!---[ \t]*\n).*\n){0,100}?)---[ \t]*(?:\n|\Z)")
# Markdown's lines: a fence of code, the item of a list, the row of a table.
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s")
# `<h1 align="center">Name</h1>`, perhaps on several lines; it has the logo of a project, too.
_HTML_HEADING = re.compile(
    r" {0,3}<h([1-6])(?:\s[^>]*)?>((?:(?!</?h[1-6]).)*)</h\1>\s*\Z", re.DOTALL | re.IGNORECASE
)
_TAG = re.compile(r"<!--.*?-->|</?[a-zA-Z](?:[^<>\"']|\"[^\"]*\"|'[^']*')*>", re.DOTALL)
# Pandoc, Hugo and others name a heading: "## Scope {#scope .wide}".
_ATTRIBUTES = re.compile(r"[ \t]*\{:?[ \t]*[#.][^{}]*\}$")
# What a heading shows of its markup: the text of a link, of emphasis and of code, and an escaped character.
# Underscores stay: they are part of names.
_IMAGE = re.compile(r"!\[([^][]*)\]\((?:[^()]|\([^()]*\))*\)")
_MARKUP = re.compile(
    r"(?<!\w)\[([^][]*)\](?:\((?:[^()]|\([^()]*\))*\)|\[[^][]*\])"
    r"|(?<![\w*`])(\*{1,3}|`+)(?=\S)(.*?[^\s\\])\2(?![\w*`])|\\([!-/:-@[-`{-~])"
    r"|</?(?:a|b|br|code|em|font|h[1-6]|i|img|kbd|small|span|strong|sub|sup|u)"
    r"(?:\s+[\w-]+=(?:\"[^\"]*\"|'[^']*'|[^\s<>]*))*\s*/?>",
    re.IGNORECASE,
)
_ROW = re.compile(r"\s*\|.*\|\s*")
_ACCENTS = "[\u0300-\u036f]"

# Characters of a heading, and so of a title. Every chunk below repeats it, so a longer line is not a heading.
MAX_HEADING = 300
# Characters of a heading in HTML with its markup: that of a project's page has a logo and badges.
MAX_HTML_HEADING = 1_500
# Characters of a query that are used. Words, pairs and phrases are looked up one by one: a million characters
# took half a minute.
MAX_QUERY_CHARACTERS = 10_000


def searchable(text: str) -> str:
    """The text as FTS5 indexes it, with spaces around every character of an unspaced script.

    FTS5's tokenizers take a whole run of such characters as one token, so a word inside it would never be
    found. Each character becomes a token of its own, and a word is searched as a phrase.
    """
    # Compiled when a text first needs it, not at start-up.
    return text if text.isascii() else re.sub(f"([{UNSPACED}])", r" \1 ", text)


def query_part(text: str) -> str:
    """The part of a text that is searched for: its first MAX_QUERY_CHARACTERS, without a word that is cut."""
    if len(text) <= MAX_QUERY_CHARACTERS:
        return text
    # A longer run is no word, or has none: some scripts have no spaces.
    return re.sub(r"\S{1,100}\Z", "", text[: MAX_QUERY_CHARACTERS + 1])[:MAX_QUERY_CHARACTERS]


def counted(number: int, what: str) -> str:
    """`1 chunk`, `1,204 chunks`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def passage_names(title: str, heading: str) -> list[str]:
    """The title of a document and the heading path of a passage; the path alone if the title begins it."""
    begins = f"{heading} > ".startswith(f"{title} > ")
    return [name for name in ([heading] if begins else [title, heading]) if name]


def is_row(line: str) -> bool:
    """Whether a line is a row of a table in Markdown."""
    return line.lstrip()[:1] == "|" and _ROW.fullmatch(line) is not None


def is_rule(line: str) -> bool:
    """Whether a line is the one below the header of a table in Markdown."""
    return is_row(line) and set(line.strip()) <= set("|:- ")


def table_header(text: str, row: int, gaps: tuple[str, ...] = ()) -> tuple[int, int]:
    """The span of the header of the table in Markdown with a row at offset `row`; empty if it has none.

    Lines that begin like one of `gaps` stand for rows that are left out.
    """
    top = above = row
    while above > 0:
        end, above = above, text.rfind("\n", 0, above - 1) + 1
        if is_row(line := text[above:end]):
            top = above
        elif not line.startswith(gaps):
            break
    second = text.find("\n", top) + 1
    third = text.find("\n", second) + 1
    return (top, third - 1) if 0 < second < third and is_rule(text[second:third]) else (0, 0)


def heading_of(line: str) -> tuple[int, str] | None:
    """Level and text of a heading with `#`, or in HTML; None for any other line of Markdown."""
    if found := _HTML_HEADING.match(line) if "</h" in line[:MAX_HTML_HEADING].lower() else None:
        name = _unescaped(_TAG.sub(" ", found[2]))
        return (int(found[1]), name) if 0 < len(name) <= MAX_HEADING else None
    if len(line) > MAX_HEADING:
        return None
    match = re.match(r" {0,3}(#{1,6})(?:[ \t]+|$)(.*)", line.rstrip())
    if match is None:
        return None
    title = _ATTRIBUTES.sub("", match[2])
    bare = title.rstrip("#")
    name = heading_text(title if bare.rstrip() == bare != "" else bare)
    return len(match[1]), _unescaped(name) if "&" in name and "`" not in title else name


def _unescaped(text: str) -> str:
    from html import unescape  # not at start-up

    return " ".join(unescape(text).split())


def heading_text(markup: str) -> str:
    """The text of a heading in Markdown, of at most MAX_HEADING: no images, links, emphasis and escapes."""
    if not any(mark in markup for mark in "[*`<\\"):
        return markup.strip()

    def shown(found: re.Match[str]) -> str:
        link, mark, marked, escaped = found.groups(default="")
        return marked if mark[:1] == "`" else escaped or heading_text(link or marked)

    # A heading may be a logo alone.
    texts = (_MARKUP.sub(shown, _IMAGE.sub(image, markup)).strip() for image in ("", r"\1"))
    return next(filter(None, texts), "")


def without_accents(text: str) -> str:
    """In lower case, without accents, and decomposed.

    The ı of Turkish is an i, whose dot is an accent: the lower case of I cannot tell them apart.
    """
    return re.sub(_ACCENTS, "", unicodedata.normalize("NFKD", text.casefold())).replace("ı", "i")


def with_words_replaced(text: str, replacements: Mapping[str, str]) -> str:
    """The text with whole words replaced; the keys are without accents, in lower case.

    The case and the accents of a word in the text do not matter; its first letter stays upper-case.
    """

    def replaced(found: re.Match[str]) -> str:
        word = found[0]
        new = replacements.get(without_accents(word), word)
        return new[:1].upper() + new[1:] if word[0].isupper() else new

    return re.sub(rf"(?:\w|{_ACCENTS})+", replaced, text) if replacements else text
