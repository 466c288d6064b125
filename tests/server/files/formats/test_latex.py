"""LaTeX."""

from __future__ import annotations

from pathlib import Path

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
