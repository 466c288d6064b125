"""HTML: the main text as Markdown.

Covers `mathml`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ragcommon.files.decoding import EmptyText, NotText
from ragmemory.files.formats import html
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
    assert read_page.places == [
        *((1, "The tea tree"), (3, "The tea tree ¶ 1")),
        *((5, "The tea tree > Uses"), (7, "The tea tree > Uses ¶ 1")),
    ]


def test_without_a_main_element_lists_of_links_hidden_parts_and_forms_are_left_out() -> None:
    links = "".join(f"<li><a href={n}>Page {n}</a>" for n in range(5))
    assert (
        text_of(f"<ul>{links}</ul><div role=navigation>Menu</div><p hidden>no</p><form>Search</form><p>Yes.")
        == "Yes.\n"
    )


def test_what_is_never_to_be_seen_is_left_out_also_in_tables_and_headings() -> None:
    assert (
        text_of(
            "<div style='max-height: 0px; DISPLAY : none !important'>no <b style='display:none'>no</b></div>"
            "<h1>Codes<span style='display:none;mso-hide:all'> no</span></h1><p style='width:0'>Seen "
            "<i style='--display:none;height:0'>too</i>.</p><p style='display:none'>Unfolded</p>"
            "<table><tr><td>A<td>B<tr style='display:none;font-size:0'><td>no<td>no<tr><td>C<td>D</table>"
        )
        == "# Codes\n\nSeen too.\n\nUnfolded\n\n| A | B |\n| --- | --- |\n| C | D |\n"
    )


def test_contents_and_links_to_the_neighbours_of_a_section_are_left_out() -> None:
    contents = "".join(f"<dt><a href=#s{n}>Section {n}</a></dt>" for n in range(5))
    turning = "<a href=#s1 rel=prev>Sea</a>, Next: <a href=#s3 accesskey=n>Land</a>"
    assert text_of(
        f"<dl>{contents}</dl><div><table><tr><td>{turning}</td></tr></table></div><p>Previous: {turning}</p>"
        f"<h1>Waves</h1><dl><dt>High</dt><dd>They roll.</dd></dl>"
    ).split() == ["#", "Waves", "High", "They", "roll."]


@pytest.mark.parametrize(
    "html",
    [
        "<article><p>Read it.</p><a rel=next href=x>Next</a></article>",
        "<p>Read <a rel=prev href=x>part one</a> first.</p>",
        "<dl><dt>Mail</dt><dd><a href=a>ada@kite.example</a></dd>"
        + "<dt>Web</dt><dd><a href=b>kite.example</a></dd>" * 3
        + "</dl>",
        "".join(["<dl>", *(f"<dt><a href=#{n}>Why?</a></dt><dd>So.</dd>" for n in range(4)), "</dl>"]),
    ],
)
def test_texts_with_links_are_no_navigation(html: str) -> None:
    written = re.sub("<[^>]*>", " ", html).split()
    assert [word for word in written if word not in text_of(html)] == []


def test_lists_tables_code_and_quotations_are_markdown() -> None:
    assert text_of("<ul><li>green<li>black<ol><li>Assam<li>Ceylon</ol></ul>") == (
        "- green\n- black\n  1. Assam\n  2. Ceylon\n"
    )
    assert text_of("<table><tr><th>Kind<th>Minutes<tr><td>Green|white<td>3</table>") == (
        "| Kind | Minutes |\n| --- | --- |\n| Green\\|white | 3 |\n"
    )
    assert text_of("<pre>x = 1\n  y</pre>") == "```\nx = 1\n  y\n```\n"
    assert text_of("<blockquote><p>One<p>Two</blockquote>") == "> One\n\n> Two\n"


def test_a_definition_is_in_the_paragraph_of_its_term() -> None:
    options = "<dt>-v, --verbose<dd>Says more.<br>Twice: all.<p>To a file, too."
    modes = "<dt>Mode<dd><ul><li>fast</ul>"
    assert text_of(f"<dl>{options}{modes}</dl><p>End.") == (
        "-v, --verbose\n  Says more.\n  Twice: all.\n\nTo a file, too.\n\nMode\n\n- fast\n\nEnd.\n"
    )


def test_what_is_below_a_term_without_a_definition_is_a_paragraph_of_its_own() -> None:
    assert text_of("<dl><dt>One<dd><dl><dt>Two</dl></dl><p>End.") == "One\n\nTwo\n\nEnd.\n"
    assert text_of("<dl><dt><h3>One</h3><dd>Text.</dl>") == "### One\n\nText.\n"
    assert text_of("<dl><dt>One<dd><blockquote>Said.</blockquote></dl>") == "One\n\n> Said.\n"


def test_deleted_text_is_left_out() -> None:
    for tag in ("del", "s", "strike"):
        gone = f"<{tag}>7 <{tag}>or 8</{tag}></{tag}>"
        assert text_of(f"<p>It was {gone} <ins>5</ins> pounds.") == "It was 5 pounds.\n"
        assert "| 5 |" in text_of(f"<table><tr><td>a<td>{gone} 5<tr><td>b<td>6</table>")
        assert text_of(f"<h2>Now {gone} 5</h2><{tag}><p>Old.</p></{tag}>") == "## Now 5\n"


def test_cells_that_span_rows_and_columns_keep_their_places() -> None:
    head = "<tr><th rowspan=2>Route<th colspan=2>Adult<th rowspan=2>Bike<tr><th>single"
    assert text_of(f"<table>{head}<tr><td>Inner<td>5<td>9<td>3</table>") == (
        "| Route | Adult |  | Bike |\n| --- | --- | --- | --- |\n"
        "| Route | single |  | Bike |\n| Inner | 5 | 9 | 3 |\n"
    )
    long = "long " * 50
    assert text_of(f"<table><tr><td rowspan=2>{long}<td>1<tr><td>2</table>").endswith("|\n|  | 2 |\n")


def test_a_formula_is_given_in_tex_or_by_its_symbols() -> None:
    tex = "<annotation encoding='application/x-tex'>a_1</annotation>"
    symbols = (
        "<semantics><mrow><mi>E</mi><mo>=</mo></mrow><annotation encoding='x'>no</annotation></semantics>"
    )
    assert (
        text_of(
            f"<h1>On <math alttext=k></math></h1><p>One <math><semantics><mi>a</mi>{tex}</semantics></math>, "
            f"<math>{symbols}</math>.<img aria-hidden=true alt=no>"
        )
        == "# On k\n\nOne a_1, E=.\n"
    )


@pytest.mark.parametrize(
    ("formula", "written"),
    [
        (
            "<mi>s</mi><mo>=</mo><mfrac><mn>1</mn><mn>2</mn></mfrac><mi>a</mi><msup><mi>t</mi><mn>2</mn></msup>",
            "s=1/2 at²",
        ),
        ("<msup><mn>10</mn><mrow><mo>−</mo><mn>8</mn></mrow></msup>", "10⁻⁸"),
        ("<msqrt><mfrac><mi>l</mi><mrow><mi>g</mi><mo>+</mo><mi>a</mi></mrow></mfrac></msqrt>", "√(l/(g+a))"),
        ("<mroot><mi>x</mi><mn>3</mn></mroot>", "³√(x)"),
        ("<mn>2</mn><mi>d</mi><mi>sin</mi><mo>\u2061</mo><mi>θ</mi>", "2d sin θ"),
        ("<msub><mi>F</mi><mrow>\n<mi>h</mi> <mi>k</mi></mrow></msub>", "F_{hk}"),
        (
            "<munderover><mo>∑</mo><mrow><mi>j</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover>",
            "∑_{j=1}ⁿ",
        ),
        ("<msubsup><mi>x</mi><mn>0</mn><mo>′</mo></msubsup>", "x₀′"),
        ("<mover><mi>x</mi><mo>¯</mo></mover>", "x\u0304"),
        ("<mfrac linethickness=0><mi>n</mi><mi>k</mi></mfrac>", "binom(n, k)"),
        (
            "<mtable><mtr><mtd>1</mtd><mtd>0</mtd></mtr><mtr><mtd>0</mtd><mtd>2</mtd></mtr></mtable>",
            "[1, 0; 0, 2]",
        ),
        ("<semantics><mi>E</mi><annotation-xml><mi>no</mi></annotation-xml></semantics>", "E"),
        ("<mrow>" * 70 + "<mi>x</mi><mi>y</mi>", "xy"),
        ("<mn>5</mn><mfrac><mn>1</mn><mn>2</mn></mfrac>", "5 1/2"),
        ("<mn>3</mn><mo>\u2062</mo><msup><mn>10</mn><mn>8</mn></msup>", "3 10⁸"),
        ("<mn>2</mn><mo>&InvisibleTimes;</mo><mn>3</mn><mi>x</mi>", "2 3x"),
        ("<mfrac><mn>2</mn><mn>1.5</mn></mfrac><mi>a</mi>", "2/1.5 a"),
        ("<!-- a --><msup><mi>x</mi><!-- power --><mn>2</mn><?b?></msup>", "x²"),
        ("<mi>f</mi><mfenced><mi>x</mi><mi>y</mi></mfenced>", "f(x,y)"),
        (
            "<mfenced open='[' close separators='; |'><mi>a</mi><mi>b</mi><mi>c</mi><mi>d</mi></mfenced>",
            "[a;b|c|d",
        ),
        ("<mfenced separators=''><mi>a</mi><mi>b</mi></mfenced>", "(ab)"),
        ("<msup><mfrac><mi>a</mi><mi>b</mi></mfrac><mn>2</mn></msup>", "(a/b)²"),
        ("<msub><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mi>k</mi></msub>", "(a+b)_k"),
        ("<msup><mfenced><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow></mfenced><mn>2</mn></msup>", "(a+b)²"),
        ("<msubsup><mrow><mo>−</mo><mn>1</mn></mrow><mn>0</mn><mi>n</mi></msubsup>", "(−1)₀ⁿ"),
        ("<mi>a</mi><msup><mo>+</mo><mi>n</mi></msup><mi>b</mi>", "a+ⁿb"),
    ],
)
def test_a_formula_without_tex_is_in_one_line(formula: str, written: str) -> None:
    assert text_of(f"<p>Let <math>{formula}</math> be.") == f"Let {written} be.\n"


def test_formulas_of_mathjax_are_in_tex_or_those_for_screen_readers() -> None:
    drawn = "<span class=MathJax_Preview></span><span class=MathJax><nobr>L</nobr></span>"
    for_readers = "<mjx-assistive-mml><math><mi>r</mi></math></mjx-assistive-mml>"
    assert (
        text_of(
            f"<p>One {drawn}<script type='math/tex; mode=display'>L&lt;1</script> and "
            f"<mjx-container><mjx-math aria-hidden=true>2</mjx-math>{for_readers}</mjx-container>, all."
        )
        == "One L&lt;1 and r, all.\n"
    )


MATH = "<math><msup><mi>c</mi><mn>2</mn></msup></math>"


@pytest.mark.parametrize(
    ("drawn", "written"),
    [
        (f"<span class=MathJax><nobr aria-hidden=true>c2</nobr><span>{MATH}</span></span>", "c²"),
        (f"<span class=MathJax_Display><b class=MathJax_SVG>c2<i>{MATH}</i></b></span>", "c²"),
        ("<span class=MathJax_Preview></span><span class=MathJax_CHTML><nobr>c2</nobr></span>", "c2"),
        ("<mjx-container><mjx-math>c2</mjx-math></mjx-container>", "c2"),
    ],
)
def test_formulas_of_mathjax_without_tex_are_those_for_screen_readers_or_their_symbols(
    drawn: str, written: str
) -> None:
    assert text_of(f"<p>The energy is {drawn} here.") == f"The energy is {written} here.\n"


def test_formulas_of_mathjax_with_tex_are_not_written_twice() -> None:
    drawn = f"<span class=MathJax><nobr aria-hidden=true>c2</nobr><span>{MATH}</span></span>"
    assert text_of(f"<p>It is {drawn}<script type=math/tex>c^2</script> here.") == "It is c^2 here.\n"


def test_an_exponent_with_a_sign_stays_apart() -> None:
    assert text_of("<p>2e<sup>−λt</sup> of the 3<sup>rd</sup>") == "2e^{−λt} of the 3rd\n"


def test_the_mark_of_a_note_is_no_part_of_a_word() -> None:
    marks = "<a href=#n><sup>1</sup></a> and eel<sup><a href=#m>[2]</a></sup>"
    assert text_of(f"<p>Roach{marks} on 40 m<sup>2</sup>.") == "Roach[^1] and eel[^2] on 40 m².\n"


def test_a_linked_number_after_a_word_is_the_mark_of_a_note() -> None:
    marks = "450<a epub:type=noteref href=#a>2</a> marks<a href=#b>3</a>, page <a>4</a>, <a>5</a><a>6</a>"
    assert text_of(f"<p>Sold for {marks}.") == "Sold for 450[^2] marks[^3], page 4, 56.\n"
    assert text_of("<p>Roach<sup><a>1</a>,<a>2</a></sup>") == "Roach[^1],[^2]\n"


@pytest.mark.parametrize(
    ("html", "written"),
    [
        ("10<sup>12</sup> at 10<sup>-4</sup> mol", "10¹² at 10⁻⁴ mol"),
        ("log<sub>10</sub>2, SO<sub>4</sub><sup>2-</sup>", "log₁₀2, SO₄²⁻"),
        ("5<sup>1</sup>/<sub>2</sub> days", "5¹/₂ days"),
        ("2<sup>k</sup>, 2<sup>3k</sup>, x<sub>k</sub>, m<sup>2 </sup>and", "2^k, 2^{3k}, x_k, m² and"),
        ("1<sup>st</sup>, 2<sup>e</sup>, M<sup>me</sup>, tea<sup>*</sup>", "1st, 2e, Mme, tea*"),
        ("<a href=/area>40 m<sup>2</sup></a>", "40 m²"),
    ],
)
def test_raised_and_lowered_text_stays_apart_from_the_characters_before_it(html: str, written: str) -> None:
    assert text_of(f"<p>{html}") == f"{written}\n"
    assert "10⁶ m²" in text_of("<table><tr><td>a<td>10<sup>6</sup> m<sup>2</sup></table>")


def test_the_links_of_headings_to_themselves_are_left_out() -> None:
    page = '<h2>Wind<a class="headerlink" href="#wind">¶</a></h2><p>See <a href="p#n">north</a>.'
    assert text_of(page) == "## Wind\n\nSee north.\n"


def test_what_buttons_open_in_its_place_is_below_them_and_menus_stay_left_out() -> None:
    opener = "<button aria-expanded=false aria-controls={}>{}</button>"
    questions = (
        f"{opener.format('p1', 'How long?')}<div id=p1 hidden>Two weeks.</div>"
        f"<h2>{opener.format('p2', 'How wide?')}</h2><p id=p2 aria-hidden=true style='display:none'>A metre."
    )
    assert text_of(questions) == "How long?\n\nTwo weeks.\n\n## How wide?\n\nA metre.\n"
    menus = (
        f"<nav>{opener.format('a', 'no')}</nav><div id=a hidden>no</div>"
        f"{opener.format('b', 'no')}<ul id=b role=menu hidden><li>no</ul>"
        f"<button aria-haspopup=menu {opener.format('c', 'no')[7:]}<div id=c hidden>no</div>"
    )
    assert text_of(f"{menus}<p>Yes.") == "Yes.\n"


def test_the_caption_of_a_table_is_above_it() -> None:
    page = (
        "<table><caption>Working <b>range</b></caption><tr><th>Heat<td>5–40 °C<tr><th>Power<td>75 W</table>"
    )
    assert text_of(page) == "Working range\n\n| Heat | 5–40 °C |\n| --- | --- |\n| Power | 75 W |\n"


def test_the_page_numbers_of_a_printed_book_are_no_part_of_its_sentences() -> None:
    number = "<span class=pagenum><a id=Page_52>[52]</a></span>"
    assert text_of(f"<p>The love{number} of flow{number}ers.[7]</p>") == "The love of flowers.[7]\n"
    table = "<table><tr><th>Word<th>Page<tr><td>Love<td class=pageno>52</table>"
    assert "| Love | 52 |" in text_of(table)


def test_the_number_of_a_chapter_and_its_title_are_one_heading() -> None:
    text = text_of("<hgroup><h2>VII</h2><p>Visiting</p></hgroup><p>One morning …</p>")
    assert text == "## VII Visiting\n\nOne morning …\n"
    assert text_of("<hgroup><h2></h2></hgroup><p>One morning …</p>") == "One morning …\n"


def test_a_list_keeps_the_numbers_that_the_page_states() -> None:
    assert text_of("<ol start=4><li>Four<li>Five<li value=9>Nine<li>Ten</ol>") == (
        "4. Four\n5. Five\n9. Nine\n10. Ten\n"
    )


def test_a_table_that_lays_out_a_page_is_read_as_text() -> None:
    assert text_of("<table><tr><td><h1>Title</h1><td><p>One.<p>Two.</table>") == "# Title\n\nOne.\n\nTwo.\n"
    row = "<table><tr><td>Left<td>Right</table>"
    assert text_of(f"<table><tr><td>{row}</table>") == text_of(row) == "Left\n\nRight\n"


def test_a_note_that_asciidoc_sets_in_a_table_of_one_row_is_text_and_no_header() -> None:
    note = '<td class="icon"><div>Note</div><td class="content">To stop it, send TERM.'
    assert text_of(f'<div class="admonitionblock"><table><tr>{note}</table></div>') == (
        "Note\n\nTo stop it, send TERM.\n"
    )


def test_a_table_within_a_layout_table_is_a_table() -> None:
    inner = "<table><tr><th>Item<th>Price<tr><td>Tea<td>3 €</table>"
    assert text_of(f"<table><tr><td><p>Thank you.{inner}</table>") == (
        "Thank you.\n\n| Item | Price |\n| --- | --- |\n| Tea | 3 € |\n"
    )


@pytest.mark.parametrize(
    "data",
    [
        "<meta charset=shift_jis><p>緑茶".encode("shift_jis"),
        "<p>緑茶".encode(),
        "<meta charset=utf-8><p>緑茶".encode("utf-16"),
        "<meta charset=undefined><p>緑茶".encode(),
    ],
)
def test_the_encoding_is_the_stated_one_or_detected(data: bytes) -> None:
    assert read(PAGE, data).text == "緑茶\n"


@pytest.mark.parametrize("charset", ["ISO-8859-1", "latin1", "iso-8859-9"])
def test_a_page_that_states_latin_1_is_in_the_encoding_of_windows_as_in_browsers(charset: str) -> None:
    assert (
        read(PAGE, f"<meta charset={charset}><p>„Kaffee“ – 3 €".encode("cp1252")).text == "„Kaffee“ – 3 €\n"
    )
    assert read(PAGE, f"<meta charset={charset}><p>caf\xe9 \x81".encode("latin-1")).text.startswith("café")


def test_elements_nested_without_end_are_read() -> None:
    assert "deep" in text_of("<div>" * 5_000 + "deep")


def test_a_page_without_text_is_refused() -> None:
    with pytest.raises(NotText, match="holds no text"):
        read(PAGE, b"<title>Empty</title><script>x</script>")


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p " + " ".join(f"a{n}=1" for n in range(60_000)) + ">Tea.", "Tea."),
        ("<div>" * 60_000 + "Tea.", "Tea."),
        ("<i>" * 30_000 + "</p>" * 30_000 + "Tea.", "Tea."),
        ("".join(f"<font a{n}><p>x" for n in range(4_000)) + "<p>Tea.", "Tea."),
        ("<article>x" * 20_000 + "<p>Tea.", "Tea."),
        ("<table>" + "<tr><td>a<td>b" * 5_000 + "<tr>" + "<td>x" * 5_000 + "</table>Tea.", "Tea."),
        ("<table><tr>" + "<td rowspan=65534>a" * 5_000 + "<tr><td>x" * 5_000 + "</table>Tea.", "Tea."),
        ("<table>" + "<tr><td colspan=65534>a<td>b" * 1_000 + "</table>Tea.", "Tea."),
        ("<p><math><mi>x</mi></math>" * 10_000 + "<p>Tea.", "Tea."),
        ("<p><math>" + "<msup>" * 50 + "<mi>+" + "x" * 500_000 + "</msup>" * 50 + "</math>Tea.", "Tea."),
        ("<span class=MathJax>" * 2_000 + "<i>x</i> " * 20_000 + "Tea.", "Tea."),
        ("<pre>" + "`" * 200_000 + "</pre>Tea.", "Tea."),
        ("<div>" * 2_000 + "<a>x</a>|" * 10_000 + "<p>Tea.", "Tea."),
    ],
    ids=lambda page: page[:8],
)
def test_the_time_is_in_proportion_to_the_size_of_the_page(page: str, text: str) -> None:
    spent = os.times().user
    assert text_of(page).rstrip().endswith(text)
    assert os.times().user - spent < 2


def test_only_tags_are_left_out_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "MAX_OPEN", 3)
    monkeypatch.setattr(html, "MAX_REOPENED", 2)
    assert text_of("<div><div><div><div>A</div>B</div></div></div><ul><li>C</ul>") == "A B\n\n- C\n"
    assert text_of("<b>A<b>B<b>C</b>D</b></b> <b>E</b>") == "ABCD E\n"
    script = "<script>'<div><div><div><div>'; if (a<b) {}</script><!-- <div> -->"
    assert text_of(f"{script}<ul><li>One<li>Two</ul>") == "- One\n- Two\n"
    monkeypatch.setattr(html, "MAX_ATTRIBUTES", 10)
    long = 'title="a b c d e f g h i j k l m n"'
    assert text_of(f"<p hidden {long}>No<p hidden a b c d e f g h i j>Yes") == "Yes\n"


LINKS = "".join(
    f'<li><a href="https://example.org/{name}">{name}</a>' for name in ("bread", "tea", "soup", "jam")
)


@pytest.mark.parametrize("page", ["<ul>{}</ul>", "<nav><ul>{}</ul></nav>"], ids=["list", "navigation"])
def test_the_links_of_a_file_with_nothing_else_are_its_text(page: str) -> None:
    found = read(PAGE, f"<body><h1>Unread</h1>{page.format(LINKS)}".encode())
    assert found.text.startswith(
        "# Unread\n\n- bread (https://example.org/bread)\n- tea (https://example.org/tea)\n"
    )


def test_the_lists_of_links_of_a_page_with_nothing_else_are_its_text() -> None:
    data = f"<body><nav><ul>{LINKS}</ul></nav><h1>Unread</h1><ul>{LINKS}</ul>".encode()
    found = html.read(PAGE, data, is_page=True)
    assert found.text.count("bread (") == 1


def test_headings_and_cells_have_a_space_only_between_blocks() -> None:
    page = """
        <h2><a>AcceptFilter</a>-<b>Direktive</b></h2>
        <table>
        <tr><th>Files<th>Meaning
        <tr><td><code>foo</code>, <code>bar</code>.<td><p>T<small>E</small>X</p>and <img alt="yes">
        </table>
        """
    assert text_of(page) == (
        "## AcceptFilter-Direktive\n\n| Files | Meaning |\n| --- | --- |\n| foo, bar. | TEX and yes |\n"
    )


def test_bars_of_links_and_lists_that_turn_pages_are_left_out() -> None:
    names = ("Module", "FAQ", "Glossar", "Index")
    links = [f'<a href="{name}.html">{name}</a>' for name in names]
    turning = '<ul><li><a accesskey="p">Back</a></li><li>Book</li><li><a accesskey="n">Next</a></li></ul>'
    page = f"<p>{' | '.join(links)}</p>{turning}<h1>Filters</h1><p>{', '.join(links)}</p><p>Text.</p>"
    assert text_of(page) == "# Filters\n\nModule, FAQ, Glossar, Index\n\nText.\n"


def test_the_list_of_pages_in_an_export_of_notion_is_not_read() -> None:
    page = '<title>Export-3c1f</title><ul id="id::3c1f"><li><a href="Tea%203c1f.md">Tea 3c1f.md</a></ul>'
    with pytest.raises(EmptyText, match="the list of pages in an export by Notion"):
        read(Path("index.html"), page.encode())


def test_a_line_of_code_in_a_paragraph_is_no_heading() -> None:
    assert text_of("<h2>Kites</h2><p><code># Fly<br>kite up</code></p>") == "## Kites\n\n    # Fly\nkite up\n"
