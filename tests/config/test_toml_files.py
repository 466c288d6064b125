"""TOML that would exhaust the parser is refused in a sentence, and quickly."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ragcommon.files.safe_open import FileTooLarge
from ragconfig.toml_files import NotToml, at_line, decode_toml, read_toml

MANY = 100_000
LONG_KEY = r"a key has more than 16 parts \(at line 1\)"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a" + ".a" * MANY + " = 1", LONG_KEY),
        ("[" + "a . " * MANY + "a]", LONG_KEY),
        ("x = {" + '"a\\"".' * MANY + "a = 1}", LONG_KEY),
        ("'a'" + ".'a'" * MANY + " = 1", LONG_KEY),
        ("x = " + "[" * MANY, "it is nested too deeply"),
        ("x = " + "{a = " * MANY, "it is nested too deeply"),
        ("x = " + "9" * 5000, "Exceeds the limit"),
        ("x = 2026-02-30", "Invalid date"),
        ("x = " + "a-" * MANY, "Invalid value"),
        ('x = "' + "' " * MANY, "Expected '\"'|Unterminated|Illegal|at end"),
        ("[x", "Expected ']'"),
    ],
    ids=lambda value: value[:12],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(text: str, reason: str) -> None:
    spent = os.times().user
    with pytest.raises(NotToml, match=reason):
        decode_toml(text.encode())
    assert os.times().user - spent < 2


def test_names_and_texts_with_dots_are_none_of_that() -> None:
    text = 'hosts = ["a.b.c.d.e.f.g.h", "1.2.3.4"]\nurl = "https://a.b.c/d.e"\n[a.b.c]\nd.e = 1.5\n'
    assert decode_toml(text.encode())["a"] == {"b": {"c": {"d": {"e": 1.5}}}}


def test_a_file_is_bounded_and_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_bytes(b"\xef\xbb\xbfx = 1\r\n")
    assert read_toml(path, 100) == {"x": 1}
    with pytest.raises(FileTooLarge):
        read_toml(path, 5)
    path.write_bytes(b"x = '\xff'")
    with pytest.raises(NotToml, match=r"it is not text in UTF-8 \(byte 5\)"):
        read_toml(path, 100)


def test_the_line_of_a_key_is_found_where_it_is_written_in_a_usual_way() -> None:
    content = b"# notes\nroot.a = 1\n[one]\na = 1\n'b' = 2\n[two] # more\na = 3\nc = { d = 4 }\n"
    lines = [at_line("f", content, key) for key in ("root.a", "one.a", "one.b", "two.a", "two.c.d")]
    assert lines == ["f, line 2", "f, line 4", "f, line 5", "f, line 7", "f"]
