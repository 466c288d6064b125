"""LaTeX."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ragmemory.files.formats.latex import read

FILE = Path("kite.tex")
TEXT = r"""\documentclass{article}
\title{On \emph{Kites}~and \LaTeX{} \\ Tails}
\section*{The \texttt{wind}}\label{sec:wind} % measured
At the coast, \section is a command. % a comment of 5\%
# no heading
\begin{table}[ht] \centering
\label{tab:wind}
It pushes by 5\%.
\begin{abstract}
In short.
\end{abstract}
  \subsection[Short]{Gusts \emph{\&} calms} \label{a} % b
\section{Run} on.
\begin{verbatim}
\section{not a heading}
\end{verbatim}
"""
MARKDOWN = r"""
\title{On \emph{Kites}~and \LaTeX{} \\ Tails}
### The wind
At the coast, \section is a command.
    # no heading


It pushes by 5\%.
### Abstract
In short.

#### Gusts & calms
\section{Run} on.
````
\section{not a heading}
````
"""


def test_headings_and_listings_become_those_of_markdown_and_lines_keep_their_numbers() -> None:
    found = read(FILE, TEXT.encode())
    assert found.text == MARKDOWN
    assert (found.title, found.media_type) == ("On Kites and Tails", "text/markdown")


def test_the_first_heading_is_the_title_where_none_is_stated() -> None:
    assert read(FILE, b"\\chapter{Wind}\nIt blows.\n").title == "Wind"
    assert read(FILE, b"It blows.\n").title == "kite.tex"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (r"\begin{theorem}[LaSalle's principle]\label{thm:a}", "Theorem (LaSalle's principle)"),
        (r"\begin{lem}[Erd\H{o}s, \emph{1947}]", "Lemma (Erdős, 1947)"),
        (r"\begin{lem}\label{lem:a}", "Lemma"),
        (r"\begin{proof}[Proof of \cref{thm:a}]", "Proof of thm:a"),
        (r"\begin{lem}[kite]", "Lemma (kite)"),
        (r"\begin{theorem}\label{thm:b}", ""),
        (r"\begin{figure}[Htb]", ""),
        (r"\begin{multicols}[2]", ""),
        (r"\begin{axis}[xlabel={Time of day}]", ""),
        (r"\begin{frame}[fragile]{The \emph{tail}}", "##### The tail"),
        (r"\begin{frame}{Gusts} of wind", r"\begin{frame}{Gusts} of wind"),
        (r"\frametitle{Gusts}", "##### Gusts"),
        (r"$a\in\tool$ for 5 \$ in K\"oln", r"$a\in Kite 2$ for 5 \$ in Köln"),
        (r"\tool is light, \tool{}s are not; \tools.", r"Kite 2 is light, Kite 2s are not; \tools."),
        (
            r"Na\"ive M\"{u}ller, {\'E}cole, Stra\ss{}e, {\O}re, Dvo\v{r}\'ak, {\c{C}}a",
            "Naïve Müller, École, Straße, Øre, Dvořák, Ça",
        ),
        (
            r"The norm $\v{r}a + \O(n)$ of \O(1) is 5\% of \v{r}.",
            r"The norm $\v{r}a + \O(n)$ of \O(1) is 5\% of \v{r}.",
        ),
    ],
)
def test_names_of_theorems_and_slides_accents_and_words_of_the_author_are_written(
    line: str, shown: str
) -> None:
    head = "\\newtheorem{lem}[thm]{Lemma}\n\\newcommand{\\tool}{Kite~2\\xspace}\n"
    assert read(FILE, f"{head}{line}\nIt holds.\n".encode()).text == f"{head}{shown}\nIt holds.\n"


@pytest.mark.parametrize(
    "text",
    ["\\title[a\n" * 50_000, "\\newtheorem{a}[\n" * 50_000, f"\\begin{{a}}[{'a' * 100_000}]\nText."],
    ids=["title", "theorem", "name"],
)
def test_the_time_is_in_proportion_to_the_size_of_the_file(text: str) -> None:
    spent = os.times().user
    assert read(FILE, text.encode()).text
    assert os.times().user - spent < 2


def test_a_title_may_have_several_lines_and_thanks() -> None:
    title = "\\title[Short]{On the \\textbf{tail\n  \\emph{of}} % of all\n kites\\thanks{To {all}.}}\n"
    assert read(FILE, title.encode()).title == "On the tail of kites"
