"""MathML, the formulas of web pages and e-books: in one line, as those of Word are written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ragmemory.files.formats.file_text import bracketed, one_line, script

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

# Deeper formulas are flattened to their symbols.
MAX_DEPTH = 60
# Signs of an operation that is not printed, such as a multiplication.
UNPRINTED = str.maketrans("", "", "\u2061\u2062\u2063\u2064")
PRIMES = frozenset("'′″‴*†")
# Accents over a letter, as combining characters.
ACCENTS = {
    **{"¯": "\u0304", "‾": "\u0304", "ˉ": "\u0304", "^": "\u0302", "ˆ": "\u0302", "~": "\u0303"},
    **{"˜": "\u0303", "˙": "\u0307", "¨": "\u0308", "→": "\u20d7"},
}
# What is raised or lowered stands behind its base.
SCRIPTED = frozenset(("msub", "msup", "msubsup"))
# A fraction of numbers, after which a letter would belong to the denominator.
FRACTION = re.compile(r"\d/\d+\Z")


def linear(formula: LexborNode, depth: int = 0) -> str:
    """A formula or a part of it in one line: "s=1/2 at²", "√(l/g)", "∑_{j=1}^{n}"."""
    if formula.tag == "-text" or depth > MAX_DEPTH:
        return one_line(formula.text() or "").translate(UNPRINTED)
    nodes = list(_parts(formula))
    parts = [linear(part, depth + 1) for part in nodes]
    base, second, third, *_ = [*parts, "", "", ""]
    if formula.tag in SCRIPTED and nodes and nodes[0].tag in ("mfrac", "mrow"):
        base = base if base.isalnum() or base.startswith(("(", "[", "{", "|")) else f"({base})"
    match formula.tag:
        case "semantics":
            return base
        case "mfrac" if formula.attributes.get("linethickness") == "0":
            return f"binom({base}, {second})"
        case "mfrac":
            return f"{bracketed(base)}/{bracketed(second)}"
        case "mroot":
            return f"{script(second, is_raised=True)}√({base})"
        case "msub" | "munder":
            return base + script(second, is_raised=False)
        case "mover" if len(base) == 1 and second in ACCENTS:
            return base + ACCENTS[second]
        case "msup" | "mover":
            return base + _raised(second)
        case "msubsup" | "munderover":
            return base + script(second, is_raised=False) + _raised(third)
        case "mfenced":
            signs = formula.attributes
            return f"{signs.get('open', '(')}{', '.join(parts)}{signs.get('close', ')')}"
        case "mtable":
            return f"[{'; '.join(parts)}]"
        case "mtr" | "mlabeledtr":
            return ", ".join(parts)
    row = "".join(_apart(nodes, parts))
    return f"√({row})" if formula.tag == "msqrt" else row


def _raised(part: str) -> str:
    return part if part and set(part) <= PRIMES else script(part, is_raised=True)


def _parts(formula: LexborNode) -> Iterator[LexborNode]:
    for part in formula.iter(include_text=True):
        if part.tag not in ("annotation", "annotation-xml", "-comment") and (
            part.tag != "-text" or (part.text() or "").strip()
        ):
            yield part


def _apart(nodes: Sequence[LexborNode], parts: Sequence[str]) -> Iterator[str]:
    """The parts of a row, with a space beside names such as "sin", behind fractions, and between numbers."""
    before, is_word_before = "", False
    for node, part in zip(nodes, parts, strict=True):
        is_word = node.tag in ("mi", "mtext") and len(part) > 1
        are_numbers = before[-1:].isdigit() and part[:1].isdigit()  # 5 1/2, 3 10⁸
        if are_numbers or (before[-1:].isalnum() and part[:1].isalnum() and (is_word or is_word_before)):
            yield " "
        yield part
        if part:
            before, is_word_before = part, is_word or FRACTION.search(part) is not None
