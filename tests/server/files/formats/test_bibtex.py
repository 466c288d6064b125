"""BibTeX."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragmemory.files.formats.bibtex import read
from ragmemory.files.formats.detection import module_for

FILE = Path("My Library.bib")
ENTRY = r"""@article{mueller2019,
	title = {{\"U}ber Gezeitenm{\"u}hlen in {England}},
	author = {M{\"u}ller, J{\"o}rg and Nov\'{a}k, Ji\v{r}\'{\i} and Stra{\ss}er, {\O}yvind},
	pages = {101--117},
}
"""


def test_the_accents_of_latex_are_characters() -> None:
    found = read(FILE, ENTRY.encode())
    assert found.text == (
        "@article{mueller2019,\n\ttitle = {Über Gezeitenmühlen in {England}},\n"
        "\tauthor = {Müller, Jörg and Novák, Jiří and Straßer, Øyvind},\n\tpages = {101--117},\n}\n"
    )
    assert (found.title, found.media_type) == ("My Library.bib", "text/plain")
    assert module_for(FILE) == "bibtex"


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (r"{\'e}t\'e, \^{\i}le, na{\"\i}ve, Fran\c{c}ois, \c Cengiz", "été, île, naïve, François, Çengiz"),
        (
            r"Erd{\H o}s, Dvo\v{r}\'ak, {\AA}ngstr\"om, \L{}\'od\'z, Stra\ss e",
            "Erdős, Dvořák, Ångström, Łódź, Straße",
        ),
        (
            r"R\&D, 5\%, \emph{x}, \v{x}, \cite{a}, \textit{b}, \alpha",
            r"R&D, 5%, \emph{x}, \v{x}, \cite{a}, \textit{b}, \alpha",
        ),
        (r"{:C\:\\Users\\o\\.zotero\\a.pdf:PDF}", r"{:C\:\\Users\\o\\.zotero\\a.pdf:PDF}"),
    ],
)
def test_letters_and_accents_have_several_forms(source: str, shown: str) -> None:
    assert read(FILE, source.encode()).text == shown
