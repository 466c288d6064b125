"""MathML, the formulas of web pages and e-books: in one line, as those of Word are written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, repeat
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
# A fraction of numbers, after which a letter would belong to the denominator.
FRACTION = re.compile(r"\d/\d+(?:[.,]\d+)?\Z")
DECIMAL = re.compile(r"\d+[.,]\d+")
OPENING, CLOSING = frozenset("([{⟨⌊⌈"), frozenset(")]}⟩⌋⌉")
# Signs at which an exponent or index would belong to the last part only.
OPERATIONS = frozenset("+-−±∓×·⋅*/÷")
# A longer base is left as it is.
MAX_BASE = 1_000
# No parts: comments, processing instructions, and the same formula in another notation.
NO_PARTS = frozenset((None, "-comment", "annotation", "annotation-xml"))


def linear(formula: LexborNode, depth: int = 0) -> str:
    """A formula or a part of it in one line: "s=1/2 at²", "√(l/g)", "∑_{j=1}^{n}"."""
    if formula.tag == "-text" or depth > MAX_DEPTH:
        return one_line(formula.text() or "").translate(UNPRINTED)
    nodes = list(_parts(formula))
    parts = [linear(part, depth + 1) for part in nodes]
    base, second, third, *_ = [*parts, "", "", ""]
    match formula.tag:
        case "semantics":
            return base
        case "mfrac" if formula.attributes.get("linethickness") == "0":
            return f"binom({base}, {second})"
        case "mfrac":
            return f"{_term(base)}/{_term(second)}"
        case "mfenced":
            return _fenced(formula, parts)
        case "mroot":
            return f"{script(second, is_raised=True)}√({base})"
        case "msub" | "munder":
            return _base(base) + script(second, is_raised=False)
        case "mover" if len(base) == 1 and second in ACCENTS:
            return base + ACCENTS[second]
        case "msup" | "mover":
            return _base(base) + _raised(second)
        case "msubsup" | "munderover":
            return _base(base) + script(second, is_raised=False) + _raised(third)
        case "mtable":
            return f"[{'; '.join(parts)}]"
        case "mtr" | "mlabeledtr":
            return ", ".join(parts)
    row = "".join(_apart(nodes, parts))
    return f"√({row})" if formula.tag == "msqrt" else row


def _term(part: str) -> str:
    return part if DECIMAL.fullmatch(part) else bracketed(part)


def _base(part: str) -> str:
    """What has an exponent or index; in brackets if it is a fraction or a sum."""
    if not 1 < len(part) <= MAX_BASE:
        return part
    depths = accumulate((char in OPENING) - (char in CLOSING) for char in part)
    is_sum = any(not depth and char in OPERATIONS for char, depth in zip(part, depths, strict=True))
    return f"({part})" if is_sum else part


def _fenced(formula: LexborNode, parts: Sequence[str]) -> str:
    """The parts with the brackets and separators that the attributes state, by default those of "f(x,y)"."""
    stated = {"open": "(", "close": ")", "separators": ","} | formula.attributes
    marks = "".join((stated["separators"] or "").split())
    between = chain([""], marks, repeat(marks[-1:]))
    inner = "".join(mark + part for mark, part in zip(between, parts, strict=False))
    return f"{stated['open'] or ''}{inner}{stated['close'] or ''}"


def _raised(part: str) -> str:
    return part if part and set(part) <= PRIMES else script(part, is_raised=True)


def _parts(formula: LexborNode) -> Iterator[LexborNode]:
    for part in formula.iter(include_text=True):
        if part.tag not in NO_PARTS and (part.tag != "-text" or (part.text() or "").strip()):
            yield part


def _apart(nodes: Sequence[LexborNode], parts: Sequence[str]) -> Iterator[str]:
    """The parts of a row, with a space between numbers, beside names ("sin"), behind fractions of numbers."""
    before, is_word_before = "", False
    for node, part in zip(nodes, parts, strict=True):
        is_word = node.tag in ("mi", "mtext") and len(part) > 1
        are_numbers = before[-1:].isdigit() and part[:1].isdigit()
        are_joined = before[-1:].isalnum() and part[:1].isalnum()
        if are_numbers or (are_joined and (is_word or is_word_before)):
            yield " "
        yield part
        if part:
            before, is_word_before = part, is_word or FRACTION.search(part) is not None
