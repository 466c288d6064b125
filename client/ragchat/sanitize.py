"""Text from documents, models and tools, made harmless for a terminal. Pure.

A stored document with an escape sequence in it could otherwise move the cursor, set the clipboard, or show
the user something else than what stands there.
"""

from __future__ import annotations

REPLACEMENT = "\ufffd"

# Direction overrides and isolates can show a text in another order than it has ("Trojan Source",
# CVE-2021-42574). The plain marks U+200E and U+200F stay: right-to-left text needs them.
_DIRECTIONS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))

_HARMLESS: dict[int, str] = {
    # C0 controls as their own pictures, so that one sees that there was one.
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n\r"},
    # Line ends are newlines; a bare carriage return would let a line overwrite itself.
    ord("\r"): "",
    0x7F: "\u2421",
    **dict.fromkeys(range(0x80, 0xA0), REPLACEMENT),
    **dict.fromkeys(_DIRECTIONS, REPLACEMENT),
    # Half a surrogate pair, as broken JSON brings it, cannot be encoded at all.
    **dict.fromkeys(range(0xD800, 0xE000), REPLACEMENT),
}


def neutral(text: str) -> str:
    """`text` without anything that a terminal would obey; new lines and tabs stay."""
    return text if text.isascii() and text.isprintable() else text.translate(_HARMLESS)


def one_line(text: str, limit: int = 0) -> str:
    """`text` on one line, white space collapsed, cut to `limit` characters (0: not cut)."""
    line = " ".join(neutral(text).split())
    return line if not limit or len(line) <= limit else line[: limit - 1].rstrip() + "…"
