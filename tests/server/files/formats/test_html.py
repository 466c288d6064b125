"""HTML: the main text as Markdown."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragconfig.files.decoding import NotText
from ragmemory.files.formats.html import read

pytest.importorskip("selectolax", reason="selectolax is not installed")

PAGE = Path("page.html")


def text_of(body: str) -> str:
    return read(PAGE, f"<body>{body}</body>".encode()).text


def test_the_main_text_is_kept_and_navigation_is_left_out() -> None:
    read_page = read(
        PAGE,
        b"<title>Tea &amp; trees</title><body><header><a href=/>Home</a></header>"
        b"<nav><ul><li><a href=a>One</a></ul></nav><main><h1>The <b>tea</b> tree</h1><p>It grows\nslowly.</p>"
        b"<h2>Uses</h2><p>Drinks.<script>bad()</script></p></main><footer>Imprint</footer>",
    )
    assert read_page.title == "Tea & trees"
    assert read_page.text == "# The tea tree\n\nIt grows slowly.\n\n## Uses\n\nDrinks.\n"
    assert read_page.media_type == "text/markdown"


def test_without_a_main_element_lists_of_links_hidden_parts_and_forms_are_left_out() -> None:
    links = "".join(f"<li><a href={n}>Page {n}</a>" for n in range(5))
    assert (
        text_of(f"<ul>{links}</ul><div role=navigation>Menu</div><p hidden>no</p><form>Search</form><p>Yes.")
        == "Yes.\n"
    )


def test_lists_tables_code_and_quotations_are_markdown() -> None:
    assert text_of("<ul><li>green<li>black<ol><li>Assam<li>Ceylon</ol></ul>") == (
        "- green\n- black\n  1. Assam\n  2. Ceylon\n"
    )
    assert text_of("<table><tr><th>Kind<th>Minutes<tr><td>Green|white<td>3</table>") == (
        "| Kind | Minutes |\n| --- | --- |\n| Green\\|white | 3 |\n"
    )
    assert text_of("<pre>x = 1\n  y</pre>") == "```\nx = 1\n  y\n```\n"
    assert text_of("<blockquote><p>One<p>Two</blockquote>") == "> One\n\n> Two\n"


def test_a_table_that_lays_out_a_page_is_read_as_text() -> None:
    assert text_of("<table><tr><td><h1>Title</h1><td><p>One.<p>Two.</table>") == "# Title\n\nOne.\n\nTwo.\n"


@pytest.mark.parametrize(
    "data",
    [
        "<meta charset=shift_jis><p>緑茶".encode("shift_jis"),
        "<p>緑茶".encode(),
        "<meta charset=utf-8><p>緑茶".encode("utf-16"),
    ],
)
def test_the_encoding_is_the_stated_one_or_detected(data: bytes) -> None:
    assert read(PAGE, data).text == "緑茶\n"


def test_elements_nested_without_end_are_read() -> None:
    assert "deep" in text_of("<div>" * 5_000 + "deep")


def test_a_page_without_text_is_refused() -> None:
    with pytest.raises(NotText, match="holds no text"):
        read(PAGE, b"<title>Empty</title><script>x</script>")
