"""Which row of a CSV file names its columns."""

from __future__ import annotations

import pytest

from ragcommon.text.columns import csv_header


@pytest.mark.parametrize(
    ("above", "header", "below"),
    [
        ("", "tree,age\n", "oak,40\n"),
        ("sep=;\n", "tree;age\n", "oak;40,5\nelm;3,5\n"),
        ("Trees of the park, 2024\n\n", "tree;age;bed\n", "oak;40;A\nelm;3;B\n"),
        ("Trees;;\n;;\n", "tree;age;bed\n", "oak;40;A\nelm;3;B\n"),
        ("# by: us, them\n", "tree,age,bed\n", "oak,40,A\nelm,3,B\n"),
        (";2023;;2024;\n", "tree;north;south;north;south\n", "oak;1;2;3;4\nelm;5;6;7;8\n"),
        ('"Until:";"31.03.2024"\n\n', '"day";"who";"sum"\n', '"01.03.2024";"Ida";"1,50"\n' * 3),
        ("", "tree\t2022\t2023\t2024\n", "oak\t41\t40\t42\n"),
        ("", "tree|2015|2020|2024\n", "oak|1|2|3\n"),
        ("", "tree,1,2,3\n", "oak,7,8,8\n"),
        ("", "tree,0,1,2\n", "oak,4,6,5\n"),
        ("", "tree;03.2024;04.2024\n", "oak;7,5;8\n"),
        ("", '"tree\nor bush","age, years",bed\n', "oak,40,A\n"),
        ("", "tree,,age,,bed\n", "oak,,40,,A\n"),
        ("", "tree,age,bed,\n", "oak,40,A\nelm,3,B\n"),
        ("", "tree,age", ""),
        ("", ",capital\n", "France,Paris\nSpain,Madrid\n"),
        ("", ",capital,river\n", "France,Paris,Seine\nSpain,Madrid,Tagus\n"),
        ("", "tree;bed;keeper\n", "oak;A;Ida;\nelm;B;Max;\n"),
        ("", "tree;bed;keeper\n", "oak;A;Ida;\nelm;3;Max;\n"),
        ("", "bed,keeper\n", "oak,A,Ida\nelm,B,Max\n"),
        ("", "bed,keeper,day\n", "1,A,Ida,Monday\n2,B,Max,Friday\n"),
        ("", "tree,bed,,keeper\n", "oak,A,x,Ida\nelm,B,y,Max\n"),
        ("", "tree,bed,keeper,\n", "oak,A,Ida\nelm,B,Max\n"),
        ("", "#,tree\n", "a,oak\nb,elm\n"),
        ("", "# tree,age\n", "oak,40\n"),
        ("# by us, them\n", "tree,bed\n", "oak,A\nelm,B\n"),
        ("Until:,May\n", "tree,bed,age\n", "oak,A,40\nelm,B,3\n"),
        ("Trees;in May;;;\n", "tree;bed;a;b;c\n", "oak;A;x;y;z\nelm;B;x;y;z\n"),
        (";north;;south;\n", "tree;a;b;a;b\n", "oak;x;y;x;y\nelm;x;y;x;y\n"),
    ],
)
def test_the_header_names_the_columns_below_a_title_and_may_count_them(
    above: str, header: str, below: str
) -> None:
    start, end = csv_header(above + header + below)
    assert (above + header + below)[start:end] == header
    assert start == len(above)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "oak\nelm\n",
        "oak,40\nelm,3\n",
        "oak; 4,5\nelm; 3,5\n",
        "Ann,1901,1980\nEve,1911,1990\n",
        "1,2\n3,4\n",
        "oak,1,2\nelm,5,9\n",
        "oak,3,4,5\nelm,6,2,1\n",
        "oak,1,2,3\nelm,4,5,6\n",
    ],
)
def test_a_row_with_other_numbers_or_a_single_cell_names_no_columns(text: str) -> None:
    assert csv_header(text) == (0, 0)


def test_a_file_that_is_no_csv_has_no_header() -> None:
    assert csv_header('"' * 9_000) == (0, 0)


@pytest.mark.parametrize(("text", "end"), [("oak,{},7\nelm,1,2\n", 0), ("tree,2023,2024\noak,{},7\n", 15)])
def test_a_number_of_thousands_of_digits_is_no_year_and_counts_nothing(text: str, end: int) -> None:
    assert csv_header(text.format("1" * 4_400)) == (0, end)
