"""JSON with comments and trailing commas."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragchat.servers.jsonc import to_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, // one\n "b": [1, 2,],\n}', {"a": 1, "b": [1, 2]}),
        ('/* a\n comment */ {"a": /**/ 1 /* , */ , }', {"a": 1}),
        (
            '{"a": "// no comment, /* nor this */ and no comma ,}"}',
            {"a": "// no comment, /* nor this */ and no comma ,}"},
        ),
        ('{"a": "a quote \\" // and more", } // end', {"a": 'a quote " // and more'}),
        ("[1, // one, }\n]", [1]),
        ("\ufeff{}", {}),
    ],
)
def test_comments_and_last_commas_are_left_out(text: str, value: object) -> None:
    assert json.loads(to_json(text.encode())) == value


@pytest.mark.parametrize("text", ["{,}{", '{"a": 1 /* never closed', '{"a" 1}', "[1,,]", '{"a": "open}'])
def test_what_is_wrong_otherwise_stays_wrong(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(to_json(text.encode()))


def test_lines_keep_their_numbers_for_messages() -> None:
    text = b'{\n/* two\nlines */ "a": 1, // end\r\n}'
    assert to_json(text).count(b"\n") == text.count(b"\n")
    assert len(to_json(text)) == len(text)


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(TREES)
def test_plain_json_keeps_its_value(value: object) -> None:
    for indent in (None, 2):
        assert json.loads(to_json(json.dumps(value, ensure_ascii=False, indent=indent).encode())) == value
