"""Markdown as nodes: only known elements, no addresses but those of the web, markers as citations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ragchat.web.markup import Node, nodes


def text_of(nodes: Sequence[Node]) -> str:
    return "".join(node if isinstance(node, str) else text_of(node[2:]) for node in nodes)


def elements(name: str, nodes: Sequence[Node]) -> list[list[Any]]:
    """The elements of this name, also those within others."""
    lists = [node for node in nodes if isinstance(node, list)]
    return [one for node in lists for one in ([node] if node[0] == name else elements(name, node[2:]))]


def test_text_never_becomes_an_element() -> None:
    assert nodes("<script>alert(1)</script>\n\n<b>x</b>") == [
        ["p", {}, "<script>alert(1)</script>"],
        ["p", {}, "<b>x</b>"],
    ]


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "/search"]
)
def test_only_addresses_of_the_web_become_links(address: str) -> None:
    assert "a" not in [node[0] for node in nodes(f"[here]({address})")[0][2:] if isinstance(node, list)]


def test_a_link_shows_its_address() -> None:
    link = ["a", {"href": "https://example.org/"}, "here", " (https://example.org/)"]
    assert nodes("[here](https://example.org/)") == [["p", {}, link]]


def test_an_image_is_shown_as_its_address() -> None:
    assert nodes("![a cat](https://example.org/cat.png)") == [
        ["p", {}, "a cat (https://example.org/cat.png)"]
    ]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("One [1].", [1]),
        ("Two [2, 4].", [2, 4]),
        ("Three [1-3].", [1, 2, 3]),
        ("【5】", [5]),
        ("[1-900]", []),
    ],
)
def test_markers_are_citations(text: str, numbers: list[int]) -> None:
    inner = nodes(text)[0][2:]
    assert [node[1]["n"] for node in inner if isinstance(node, list)] == numbers


def test_code_is_kept_as_it_is() -> None:
    assert nodes("```py\na[1] < 2\n```") == [["pre", {}, ["code", {}, "a[1] < 2"]]]


def test_control_characters_and_directions_are_made_visible() -> None:
    assert nodes("a\x1b[2J\u202eb") == [["p", {}, "a␛[2J\ufffdb"]]


def test_a_text_may_be_nested_without_end() -> None:
    text = "**a *" * 2_000 + "b" + "***" * 2_000
    assert text_of(nodes(text)).count("a") == 2_000
