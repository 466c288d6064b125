"""Markdown as a tree of nodes, which the page builds without ever reading markup. Pure.

A node is a text, or a list: the name of an element, its attributes, then its nodes. Nothing in a text becomes
an element or a script: the names are those of `_ELEMENTS`, and links are shown with their address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any

from markdown_it.token import Token

from ragchat.grounding.citations import MARKER, marked_numbers
from ragchat.markdown import markdown_parser
from ragchat.sanitize import sanitize

Node = str | list[Any]

_BLOCKS = ("p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "hr")
_TABLES = ("table", "thead", "tbody", "tr", "th", "td")
_ELEMENTS = frozenset((*_BLOCKS, *_TABLES, "br", "strong", "em", "s"))
_VOID = frozenset({"br", "hr"})
# The schemes that a link may have; others are shown as text.
_SCHEMES = ("https://", "http://", "mailto:")

# Deeper emphasis is left out: a text may have thousands of levels, and each would be a call of `_tree`.
MAX_LEVEL = 50
# A marker of more, such as `[1-999]`, is no citation.
MAX_CITED = 50


def nodes(text: str) -> list[Node]:
    """The blocks of a text as nodes."""
    return _tree(iter(markdown_parser().parse(sanitize(text))))


def html(nodes: Sequence[Node], cite: Callable[[int], str] = str) -> str:
    """Nodes as HTML; `cite` writes a citation."""
    parts = []
    for node in nodes:
        if isinstance(node, str):
            parts.append(escape(node))
            continue
        name, attributes, *inner = node
        if name == "cite":
            parts.append(cite(attributes["n"]))
            continue
        written = "".join(f' {key}="{escape(str(value))}"' for key, value in attributes.items())
        parts.append(f"<{name}{written}>" + ("" if name in _VOID else f"{html(inner, cite)}</{name}>"))
    return "".join(parts)


def _tree(tokens: Iterator[Token]) -> list[Node]:
    """The nodes up to the token that closes the element that has just been opened."""
    found: list[Node] = []
    for token in tokens:
        if token.nesting and token.level >= MAX_LEVEL:
            continue
        if token.nesting < 0:
            return found
        if token.type == "inline":
            found += _tree(iter(token.children or ()))
        elif token.type in ("fence", "code_block"):
            found.append(["pre", {}, ["code", {}, token.content.removesuffix("\n")]])
        elif token.type == "code_inline":
            found.append(["code", {}, token.content])
        elif token.type in ("softbreak", "text"):
            found += _cited(token.content or "\n")
        elif token.type == "image":
            found.append(f"{token.content} ({token.attrGet('src') or ''})")
        elif token.nesting > 0:
            found += _element(token, _tree(tokens))
        elif token.tag in _ELEMENTS:
            found.append([token.tag, {}])
        else:
            found.append(token.content)
    return found


def _element(token: Token, inner: list[Node]) -> list[Node]:
    if token.tag == "a":
        # A text must not hide the address behind a friendly word.
        address = str(token.attrGet("href") or "")
        shown = [*inner, f" ({address})"] if inner != [address] else inner
        return [["a", {"href": address}, *shown]] if address.lower().startswith(_SCHEMES) else shown
    if token.hidden or token.tag not in _ELEMENTS:  # The paragraphs of a tight list are hidden.
        return inner
    if token.tag == "table":
        return [["table", {"dir": "auto"}, *inner]]
    start = token.attrGet("start")
    return [[token.tag, {} if start is None else {"start": start}, *inner]]


def _cited(text: str) -> Iterator[Node]:
    """A text in which each number of a marker such as `[1]` or `[2, 4]` is a node of its own."""
    end = 0
    for marker in MARKER.finditer(text):
        numbers = marked_numbers(marker.group(1))
        if len(numbers) <= MAX_CITED:
            yield from filter(None, [text[end : marker.start()]])
            yield from (["cite", {"n": n}] for n in numbers)
            end = marker.end()
    yield from filter(None, [text[end:]])
