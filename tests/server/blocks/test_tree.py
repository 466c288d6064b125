"""The tree of a text, compared with that of markdown-it-py."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ragmemory.blocks.tree import Tree, marker_of
from ragmemory.ingest.blocks import MAX_BLOCK

ROOT = Path(__file__).resolve().parents[3]
PEER = MarkdownIt("commonmark").enable("table")
KINDS = {
    "html_block": "paragraph",  # such as a comment
    "heading_open": "heading",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "list_item_open": "item",
    "paragraph_open": "paragraph",
    "hr": "paragraph",
    "fence": "code",
    "code_block": "code",
    "table_open": "table",
    "blockquote_open": "quote",
}
# Parts that both parsers read alike in any context.
PARTS = [
    *(
        "# Tea",
        "## Green tea",
        "Black tea\n=========",
        "Steep it for\nthree minutes.",
        "One `line` of *text*.",
    ),
    *("- one\n- two", "* star\n\n* star after a blank line", "1. first\n2. second\n   goes on", "3) third"),
    *(
        "- outer\n  - inner\n    - innermost\n- outer again",
        "1. step\n\n   A paragraph of the step.\n\n2. step",
    ),
    *("- item\n\n  ```python\n  # no heading\n\n  - no item\n  ```\n- item", "- [ ] task\n- [x] done"),
    "10. ten\n\n    ```\n    code\n\n    # of an item\n    ```\n\n    Text of the item.",
    *("```\ncode\n\n# no heading\n```", "~~~~ text\n~~~\n~~~~", "    indented code\n\n    goes on"),
    *(
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "a | b\n--|--\n1 | 2",
        "> quote\n> goes on\nlazily",
        "> # in a quote",
    ),
    *(
        "Text\n> quote below text",
        "- item\n  > quote in it",
        "***",
        "Text\n* item below text",
        "-\n- empty above",
    ),
]


def blocks(text: str) -> list[tuple[str, int]]:
    """The kind and first line of each block."""
    tree = Tree(text, "markdown")
    return [(node.kind, tree.lines(node.start, node.start)[0]) for node in tree.nodes]


def blocks_of_peer(text: str) -> list[tuple[str, int]]:
    """The same by markdown-it-py, without what is in quotes and the paragraphs that begin items."""
    found: list[tuple[str, int]] = []
    quotes = 0
    for token in PEER.parse(text):
        quotes -= token.type == "blockquote_close"
        if token.type in KINDS and quotes == 0 and token.map:
            block = KINDS[token.type], token.map[0] + 1
            if not (token.type == "paragraph_open" and found and found[-1] == ("item", block[1])):
                found.append(block)
        quotes += token.type == "blockquote_open"
    return found


def check_whole(tree: Tree) -> None:
    """The blocks join to the text, and lie inside those above them."""
    first = tree.nodes[0].start if tree.nodes else len(tree.text)
    assert not tree.text[:first].strip()
    assert tree.text[:first] + "".join(tree.text[node.start : node.end] for node in tree.nodes) == tree.text
    for node in tree.nodes:
        assert node.start <= node.end <= node.stop
        if node.parent >= 0:
            above = tree.nodes[node.parent]
            assert (above.start, above.depth + 1) <= (node.start, node.depth)
            assert node.stop <= above.stop
            assert node.depth == above.depth + 1


def project_files() -> list[str]:
    names = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    return [name for name in names if not name.startswith("config/")]  # Those begin with TOML.


@pytest.mark.parametrize("name", project_files())
def test_the_project_s_own_files_have_the_blocks_of_markdown_it(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert blocks(text) == blocks_of_peer(text)
    check_whole(Tree(text, "markdown"))


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=8))
def test_generated_documents_have_the_blocks_of_markdown_it(parts: list[str]) -> None:
    text = "\n\n".join(parts) + "\n"
    assert blocks(text) == blocks_of_peer(text)


@given(st.text(alphabet="#-*+1.)>`~|=: \t\nab", max_size=200))
def test_nothing_of_any_text_is_lost(text: str) -> None:
    for format in ("markdown", "plain", "csv"):
        check_whole(Tree(text, format))


def test_a_heading_has_below_it_what_follows_up_to_the_next_of_its_level() -> None:
    tree = Tree("Before.\n\n# A\n\nText.\n\n### Deep\n\n- x\n  - y\n\n## B\n\n# C\n", "markdown")
    assert [(node.kind, node.depth, node.level) for node in tree.nodes] == [
        *(("paragraph", 1, 0), ("heading", 1, 1), ("paragraph", 2, 0), ("heading", 2, 3)),
        *(("list", 3, 0), ("item", 4, 0), ("list", 5, 0), ("item", 6, 0)),
        *(("heading", 2, 2), ("heading", 1, 1)),
    ]
    assert list(tree.below(3)) == [3, 4, 5, 6, 7]
    assert tree.lines(*tree.span(1, section=True)) == (3, 12)
    assert tree.lines(*tree.span(1)) == (3, 3)
    assert tree.nodes[7].heading == "A > Deep"


@pytest.mark.parametrize("end", ["", "\n", "\n\n\n", " \n\t\n"])
def test_the_last_block_has_the_end_of_the_text(end: str) -> None:
    tree = Tree(f"\n \n# A\n\nText.{end}", "markdown")
    check_whole(tree)
    assert tree.own(1) == "Text."
    assert tree.nodes[1].stop == len(tree.text)


def test_a_tab_is_as_wide_as_four_spaces() -> None:
    assert blocks("-\tone\n\n\ttwo\n") == [("list", 1), ("item", 1), ("paragraph", 3)]
    assert blocks("text\n\n\tcode\n") == [("paragraph", 1), ("code", 3)]


@pytest.mark.parametrize(
    ("line", "content"),
    [
        ("- a", 2),
        ("-   a", 4),
        ("-      a", 2),
        ("  12. a", 6),
        ("-", 2),
        ("1)\ta", 4),
        ("a", None),
        ("-a", None),
    ],
)
def test_the_text_of_an_item_begins_after_its_marker(line: str, content: int | None) -> None:
    marker = marker_of(line)
    assert (marker.content if marker else None) == content


def test_plain_text_has_paragraphs_and_a_csv_file_one_table() -> None:
    plain = Tree("# no heading\n- no item\n\n    no code\n", "plain")
    assert [node.kind for node in plain.nodes] == ["paragraph", "paragraph"]
    assert [node.kind for node in Tree("a,b\n1,2\n", "csv").nodes] == ["table"]


def test_a_block_that_is_too_long_for_chunking_is_still_one_block() -> None:
    text = "# A\n\n" + "A line of a long paragraph.\n" * (2 * MAX_BLOCK // 28) + "\nLast.\n"
    assert [kind for kind, _ in blocks(text)] == ["heading", "paragraph", "paragraph"]
    fence = f"```\n{text}```\n"
    assert [kind for kind, _ in blocks(fence)] == ["code"]


@pytest.mark.parametrize(
    "part",
    [
        "- item\n",
        "> quote\n\n",
        "    code\n\n",
        "* * *\n",
        "# a\n",
        "1. a\n\n   ```\n   b\n   ```\n",
        "a | b\n",
    ],
)
def test_the_time_is_linear_in_the_text(part: str) -> None:
    def seconds(count: int) -> float:
        before = time.process_time()
        Tree(part * count, "markdown")
        return time.process_time() - before

    seconds(1_000)
    assert seconds(20_000) < 100 * max(seconds(1_000), 0.001)


def test_random_lines_of_structure_take_no_part_from_each_other() -> None:
    chance = random.Random(5)
    for _ in range(300):
        lines = [
            chance.choice(["", "- a", "  - b", "1. c", "    d", "# e", "> f", "```", "|g|", "h"])
            for _ in range(30)
        ]
        check_whole(Tree("\n".join(lines), "markdown"))
