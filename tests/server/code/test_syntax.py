"""Syntax trees, and the definitions in them.

Covers `ragmemory.text.languages`.
"""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc

import pytest

from ragmemory.code import syntax
from ragmemory.code.syntax import Code, parse, parts_of
from ragmemory.text.languages import LANGUAGES, language_of
from tests.server.code.samples import SAMPLES, Sample, skip_without_grammar


def parsed(path: str, text: str) -> Code:
    language = language_of(path)
    assert language is not None
    code = parse(text, language)
    assert code is not None
    return code


def lines(path: str, text: str) -> dict[str, tuple[int, int]]:
    """The first and last line of each definition, with what is above it."""
    code = parsed(path, text)
    return {
        code.qualified(one.names): (code.line_at(one.start), code.line_at(one.end))
        for one in code.definitions
    }


def test_every_language_has_a_sample() -> None:
    assert {language_of(sample.path) for sample in SAMPLES} == set(LANGUAGES)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.path)
def test_functions_and_types_have_their_qualified_names(sample: Sample) -> None:
    skip_without_grammar(sample.path)
    code = parsed(sample.path, sample.text)
    found = [code.qualified(one.names) for one in code.definitions if one.kind != "value"]
    assert found == sample.definitions.split()
    for one in code.definitions:
        assert code.data[slice(*one.name)].decode().lstrip("~#") in one.names[-1]


def test_comments_and_decorators_belong_to_what_is_below_them() -> None:
    text = (
        "x = 1  # of x\n"
        "def first(): pass\n"
        "# No definition is right below.\n"
        "\n"
        "# Of second,\n"
        "# in two lines.\n"
        "@cached\n"
        "def second():\n"
        "    return 1\n"
    )
    found = lines("a.py", text)
    assert found["first"] == (2, 2)
    assert found["second"] == (5, 9)


def test_what_encloses_a_definition_belongs_to_it() -> None:
    assert lines("a.ts", "// Doc.\nexport default class A {\n}\n")["A"] == (1, 3)
    assert lines("a.cpp", "template <class T>\nclass A {\n};\n")["A"] == (1, 3)


def test_variables_of_modules_and_classes_are_values_but_not_those_of_functions() -> None:
    text = "LIMIT = 1\nclass A:\n    size: int = 2\n    def f(self):\n        local = 3\n"
    values = [one.names for one in parsed("a.py", text).definitions if one.kind == "value"]
    assert values == [("LIMIT",), ("A", "size")]


def test_broken_code_has_the_definitions_that_are_whole() -> None:
    found = lines("a.py", "def f():\n    return 1\n\nclass (:\n\ndef g():\n    return 2\n")
    assert "f" in found
    assert "g" in found


def test_an_unknown_language_has_no_syntax() -> None:
    assert language_of("notes.md") is None
    assert language_of("file:///a/Store.PY") is not None


def test_a_text_that_is_too_long_is_not_parsed() -> None:
    python = language_of("a.py")
    assert python is not None
    assert parse("x = 1\n" * 100_000, python) is None


@pytest.mark.parametrize(("name", "text"), [("a.rs", '"' * 300_000), ("a.swift", "+ <" * 1_500)])
def test_a_long_or_short_text_that_takes_too_long_is_given_up(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without_grammar(name)
    monkeypatch.setattr(syntax, "PARSE_SECONDS", 0.05)
    language = language_of(name)
    assert language is not None
    began = time.thread_time()
    assert parse(text, language) is None
    assert time.thread_time() - began < 2


def test_a_text_is_given_up_also_within_a_character(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax, "PARSE_SECONDS", 0.02)
    python = language_of("a.py")
    assert python is not None
    assert parse("\u3000====\n:ref:`" * 5_000, python) is None


@pytest.mark.parametrize("text", ["(" * 100_000, "{" * 100_000, "if x:\n" * 20_000, "a.b" * 100_000])
def test_deep_nesting_and_endless_lines_end(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax, "PARSE_SECONDS", 0.3)
    for path in ("a.py", "a.ts", "a.cpp"):
        language = language_of(path)
        assert language is not None
        began = time.thread_time()
        code = parse(text, language)
        assert code is None or len(code.definitions) < len(text)
        assert time.thread_time() - began < 3


def test_a_struct_and_its_alias_of_the_same_name_are_one_definition() -> None:
    skip_without_grammar("a.c")
    text = (
        "/* What is stored. */\ntypedef struct store\n{\n    int size;\n} store;\n\n"
        "typedef struct node { int n; } Node;\ntypedef struct other other;\n"
    )
    assert lines("a.c", text) == {"store": (1, 5), "Node": (7, 7), "Node.node": (7, 7), "other": (8, 8)}


def test_without_its_grammar_a_language_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without_grammar("a.go")
    go = language_of("a.go")
    assert go is not None
    syntax._grammar.cache_clear()
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "tree_sitter_go", None)
        assert parse("package a\n", go) is None
    assert parse("package a\n", go) is not None  # It may have failed for lack of memory.


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a.b.c", ["a", "b", "c"]),
        ("geo::Store<Map<int, T>>::load", ["geo", "Store", "load"]),
        ("Store#find", ["Store", "find"]),
        ("*Store[T]", ["Store"]),
        ("", []),
    ],
)
def test_a_qualified_name_has_parts(name: str, parts: list[str]) -> None:
    assert parts_of(name) == parts


def test_parsing_keeps_no_memory() -> None:
    text = "x = compute(1, 'a rather long argument')\n" * 3_000
    parsed("a.py", text)
    tracemalloc.start()
    try:
        for _ in range(5):
            parsed("a.py", text)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < len(text)
    finally:
        tracemalloc.stop()
