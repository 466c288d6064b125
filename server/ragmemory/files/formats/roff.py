"""Manual pages (roff with the macros man or mdoc): headings, lists and listings become those of Markdown.

The line numbers stay the same. Macros that a page defines, and most requests of roff, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ragcommon.files.decoding import decode
from ragmemory.files.formats.file_text import CODE_FENCE, FileText, not_a_heading, one_line
from ragmemory.ingest.documents import MARKDOWN

# A page begins with a request or comment, and has a title and sections. It may define macros before them.
PAGE = (
    re.compile(rb"\s*[.'][ \t]*(?:[\\A-Za-z]|\n)"),
    re.compile(rb"^\.[ \t]*(?:TH|Dd)[ \t]+\S", re.MULTILINE),
    re.compile(rb"^\.[ \t]*S[Hh]\b", re.MULTILINE),
)
WITHIN = 65_536
REQUEST = re.compile(r"[.'][ \t]*(\S{1,3})?(?!\S)[ \t]*(.*)")
ARGUMENT = re.compile(r'"((?:[^"]|"")*)"?|(\S+)')
COMMENT = re.compile(r"(?<!\\)\\[\"#].*")
# A change of font, size or colour; a movement; the value of a register or string; a character by its name.
ESCAPE = re.compile(
    r"\\(?:[fFmMsSkz](?:\[[^]]*\]|\(..|[-+]?\d+|.)|[hvwlLDbox]'[^']*'|[n*][-+]?(?:\[(\w*)\]|\((..)|(.))"
    r"|\[([^]]*)\]|\((..)|(.|$))"
)
CHARACTERS = {
    **{"hy": "-", "mi": "-", "em": "—", "en": "–", "bu": "•", "ci": "•", "aq": "'", "cq": "’", "oq": "‘"},
    **{"lq": "“", "rq": "”", "dq": '"', "rs": "\\", "ti": "~", "ha": "^", "at": "@", "sh": "#", "Do": "$"},
    **{"or": "|", "ba": "|", "sl": "/", "co": "©", "rg": "®", "de": "°", "mu": "×", "+-": "±", "->": "→"},
    **{"<-": "←", "<=": "≤", ">=": "≥", "!=": "≠", "ga": "`", "lB": "[", "rB": "]", "la": "⟨", "ra": "⟩"},
    **{"e": "\\", "-": "-", "'": "'", "`": "`", ".": ".", " ": " ", "~": " ", "0": " ", "Aq": "'"},
}
ALTERNATING = frozenset(("BR", "BI", "IB", "IR", "RB", "RI"))
FONTS = ALTERNATING | {"B", "I", "SM", "SB", "R", "OP", "SY"}
LISTINGS = {"nf": True, "EX": True, "TS": True, "fi": False, "EE": False, "TE": False}
# The macros of mdoc that may follow each other in a line: what they write before their words, and after them.
# fmt: off
MACROS = {
    **dict.fromkeys((
        "Ad", "An", "Ar", "Cm", "Dv", "Em", "Er", "Ev", "Fa", "Fn", "Ft", "Ic", "In", "Li", "Lk", "Ms", "Mt",
        "Nd", "Nm", "No", "Pa", "Sx", "Sy", "Tn", "Va", "Vt", "Xr", "Oc", "Pc", "Dc", "Bc",
    ), ""),
    "Fl": "-", "Op": "[]", "Oo": "[]", "Pq": "()", "Po": "()", "Bq": "[]", "Bo": "[]", "Aq": "<>",
    "Brq": "{}", "Dq": "“”", "Qq": '""', "Sq": "‘’", "Ql": "‘’",
}
# fmt: on
STOPS = frozenset(".,:;)]?!")


def is_manual(data: bytes) -> bool:
    """Whether a file is a manual page, by its beginning."""
    begins, title, section = PAGE
    beginning = data[:WITHIN]
    return bool(begins.match(beginning) and title.search(beginning) and section.search(beginning))


def read(path: Path, data: bytes) -> FileText:
    """The text with Markdown's headings and fences. Raises NotText."""
    decoded = decode(data)
    page = _Page()
    lines = [page.line(line) for line in decoded.text.split("\n")]
    return FileText("\n".join(lines), page.title or path.name, decoded.note, media_type=MARKDOWN)


class _Page:
    """Reads a page line by line."""

    def __init__(self) -> None:
        self.title = self._name = self._prefix = ""
        self._end = ""  # the request that ends the definition of a macro
        self._is_listing = False

    def line(self, line: str) -> str:
        if self._end:
            is_end = re.match(rf"[.'][ \t]*{re.escape(self._end)}(?!\S)", line)
            self._end = "" if is_end else self._end
            return ""
        line = COMMENT.sub("", line.rstrip())
        if line[:1] in (".", "'"):
            found = REQUEST.match(line)
            return self._request(found[1] or "", found[2]) if found else ""
        prefix, self._prefix = self._prefix, ""
        return unescaped(line) if self._is_listing else not_a_heading(prefix + unescaped(line).lstrip(" "))

    def _request(self, name: str, rest: str) -> str:
        words = [unescaped((one[1] or one[2] or "").replace('""', '"')) for one in ARGUMENT.finditer(rest)]
        first, *others = words or [""]
        match name:
            case "de" | "am" | "ig":
                self._end = others[0] if others and name != "ig" else "."
            case "TH" | "Dt" if others and not self.title:
                self.title = f"{first.lower()}({others[0]})"
                return f"# {self.title}"
            case "SH" | "Sh" | "SS" | "Ss" if first:
                if self._is_listing:  # The heading would be in the listing.
                    return self._fence(begins=False)
                return f"{'##' if name[1] in 'Hh' else '###'} {one_line(' '.join(words))}"
            case "IP" | "It" if not any(map(str.isalnum, "".join(words[:1]))) or first == "o":
                self._prefix = "- " if first or name == "It" else ""
            case "IP":
                return f"- {first}"
            case "It":
                return f"- {self._words(words)}"
            case "Bd" | "Ed":
                return self._fence(begins=name == "Bd")
            case _ if name in LISTINGS:
                return self._fence(begins=LISTINGS[name])
            case _ if name in MACROS or name in FONTS or name[:1] == "%":
                prefix, self._prefix = self._prefix, ""
                glue = "" if name in ALTERNATING else " "
                return prefix + (self._words([name, *words]) if name in MACROS else glue.join(words))
            case "UR" | "URL" | "MT" | "MTO":
                return first
            case _:
                pass
        return ""

    def _fence(self, *, begins: bool) -> str:
        if begins == self._is_listing:
            return ""
        self._is_listing = begins
        return CODE_FENCE

    def _words(self, words: Sequence[str]) -> str:
        """The words of a line of mdoc, whose macros may follow each other."""
        text, closing, joins = "", "", True
        rest = iter(words)
        for word in rest:
            if word == "Ns":
                joins = True
                continue
            if word in STOPS and not joins:
                text, closing, joins = text + closing + word, "", False
                continue
            shown = word
            if word in MACROS:
                shown, after = MACROS[word], ""
                if word == "Xr":
                    shown = f"{next(rest, '')}({next(rest, '')})"
                elif word == "Nm":
                    following = next(rest, "")
                    is_name = (
                        following not in ("", "Ns") and following not in MACROS and following not in STOPS
                    )
                    self._name = self._name or (following if is_name else "")
                    shown, after = (following, "") if is_name else (self._name, following)
                elif len(shown) == 2:
                    shown, closing = shown[0], shown[1] + closing
                if after in STOPS and after:
                    shown += after
            if shown:
                text += ("" if joins else " ") + shown
                joins = shown == MACROS.get(word, " ")[:1]
        return text + closing


def unescaped(text: str) -> str:
    """A text of roff with its characters, and without changes of the font and movements."""
    return ESCAPE.sub(_character, text)


def _character(found: re.Match[str]) -> str:
    name = next((one for one in found.groups() if one is not None), "")
    if re.fullmatch(r"u[0-9A-F]{4,6}", name):
        return chr(int(name[1:], 16))
    return CHARACTERS.get(name, "")
