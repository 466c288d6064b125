"""Code and settings in parts that can be quoted."""

from __future__ import annotations

from ragchat.offline.code import MOST_LINES, parts
from ragchat.offline.layout import blocks


def cut(text: str, uri: str = "file:///a.py") -> list[tuple[list[str], list[str]]]:
    """The lines and the parents of each part, without white space."""
    return [
        ([line.text.strip() for line in part.lines], [line.text.strip() for line in part.parents])
        for block in blocks(text, uri)
        for part in parts(block.lines)
    ]


def test_a_signature_is_quoted_with_its_docstring() -> None:
    text = '''class Bucket:
    """Limits a rate."""

    @override
    def take(
        self,
    ) -> bool:
        """Take a token.

        False if there is none.
        """
        return True
'''
    class_part, method, body = cut(text)
    assert class_part == (["class Bucket:", '"""Limits a rate."""'], [])
    assert method[0][:2] == ["@override", "def take("]
    assert method[0][-1] == '"""'
    assert body == (["return True"], ["class Bucket:", "def take(", "self,", ") -> bool:"])


def test_of_a_long_docstring_the_first_paragraph_is_quoted_with_the_signature() -> None:
    details = "\n".join(f"    Detail {number}." for number in range(MOST_LINES))
    first, *_ = cut(f'def f():\n    """Do it.\n\n{details}\n    """\n')
    assert first[0] == ["def f():", '"""Do it.']


def test_a_comment_is_quoted_with_the_line_below_it() -> None:
    text = "/**\n * Sends it again.\n */\nexport function send() {\n  go();\n}\n"
    assert cut(text, "file:///a.ts")[0][0] == ["/**", "* Sends it again.", "*/", "export function send() {"]
    rust = "/// Waits.\n#[inline]\npub fn wait() {"
    assert cut(rust, "file:///a.rs")[0][0] == ["/// Waits.", "#[inline]", "pub fn wait() {"]
    assert cut("# seconds\ntimeout = 3", "file:///a.toml")[0][0] == ["# seconds", "timeout = 3"]


def test_a_comment_above_an_empty_line_stands_alone() -> None:
    assert [lines for lines, _ in cut("# licence\n\nx = 1")] == [["# licence"], ["x = 1"]]


def test_the_keys_of_an_element_are_below_its_first_key() -> None:
    yaml = "jobs:\n  - name: sweep\n    hour: 3\n  - name: report\n    hour: 6"
    assert cut(yaml, "file:///a.yaml")[-1] == (["hour: 6"], ["jobs:", "- name: report"])
    json = '{\n  "jobs": [\n    {\n      "name": "sweep",\n      "hour": 3\n    }\n  ]\n}'
    hour = next(found for found in cut(json, "file:///a.json") if "hour" in found[0][0])
    assert hour[1][-1] == '"name": "sweep",'


def test_nesting_goes_on_below_an_empty_line() -> None:
    assert cut("a:\n  b: 1\n\n  c: 2", "file:///a.yaml")[-1] == (["c: 2"], ["a:"])
