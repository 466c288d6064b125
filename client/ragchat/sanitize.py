"""Make text from documents, models and tools safe to print on a terminal. Pure.

An escape sequence in a stored document could otherwise move the cursor, set the clipboard, or hide text from
the user.
"""

from __future__ import annotations

import re

REPLACEMENT = "\ufffd"

# CSI and OSC of ECMA-48; the latter ends with BEL or ST.
_SEQUENCE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")

# Direction overrides and isolates can show text in a different order ("Trojan Source", CVE-2021-42574). The
# marks U+200E and U+200F stay: right-to-left text needs them.
_DIRECTIONS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))

_REPLACEMENTS: dict[int, str] = {
    # C0 controls become their pictures, such as ␛.
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n\r"},
    # A bare carriage return would let a line overwrite itself.
    ord("\r"): "",
    0x7F: "\u2421",
    **dict.fromkeys(range(0x80, 0xA0), REPLACEMENT),
    **dict.fromkeys(_DIRECTIONS, REPLACEMENT),
    # A lone surrogate, as in broken JSON, cannot be encoded.
    **dict.fromkeys(range(0xD800, 0xE000), REPLACEMENT),
}


def sanitize(text: str) -> str:
    """`text` with control characters replaced by visible ones; newlines and tabs stay."""
    return text if text.isascii() and text.isprintable() else text.translate(_REPLACEMENTS)


def without_escapes(text: str) -> str:
    """`text` without the escape sequences of terminals, such as those of colours and titles."""
    return _SEQUENCE.sub("", text) if "\x1b" in text or "\x9b" in text else text


def one_line(text: str, limit: int = 0) -> str:
    """`text` sanitized on one line, white space collapsed, cut to `limit` characters (0: not cut)."""
    line = " ".join(sanitize(text).split())
    return line if not limit or len(line) <= limit else line[: limit - 1].rstrip() + "…"


# Printable characters that draw nothing: joiners of graphemes, fillers, selectors of glyphs.
_BLANK = frozenset(
    map(
        chr, (0x34F, 0x115F, 0x1160, 0x2800, 0x3164, 0xFFA0, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
    )
)


def visible(text: str) -> str:
    """`text` with everything that a screen does not show as an escape such as `\\u200b`; newlines stay.

    For what the user decides on: they would agree to hidden or reordered text without having read it.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        one if _is_visible(one) else one.encode("unicode_escape", "surrogatepass").decode() for one in text
    )


def visible_json(text: str) -> str:
    """JSON in which the characters that `visible` escapes are escaped as JSON does."""
    return "".join(one if _is_visible(one) else _json_escape(one) for one in text)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _is_visible(character: str) -> bool:
    return character == "\n" or (character.isprintable() and character not in _BLANK)
