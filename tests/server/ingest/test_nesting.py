"""The headings of settings by their nesting."""

from __future__ import annotations

import json
from textwrap import dedent

import pytest

from ragmemory.ingest.headings import headings


def paths(text: str) -> list[str]:
    """The titles, indented by their levels."""
    return ["  " * (mark.level - 1) + mark.title for mark in headings(dedent(text).strip() + "\n")]


def test_the_keys_of_yaml_and_json_that_have_others_below_them() -> None:
    text = """
        # ---- Kites ----
        services:
          kite:
            image: "kite:1"
            ports:
              - 80
          reel:
            # It winds.
            ports: [81]
        hosts:
          - 'my sea':
              ports:
                - 82
          - name: land
            ports:
              - 83
        text: |
          Note:
            no key
        # ---- Rest ----
        version:
        - of: 3
        end: 4
        """
    assert [path for path in paths(text) if path.strip()] == [
        *("Kites", "  services", "    kite", "    reel", "  hosts", "        my sea", "      land"),
        *("Rest", "  version"),
    ]
    assert [path for path in paths(text) if not path.strip()] == ["  ", "  "]  # the ends of hosts and version
    assert paths(
        '{\n  "a": {\n    "b": [\n      1\n    ],\n    "c": {}\n  },\n  "d": {\n    "e": 1\n  }\n}'
    ) == [
        *("a", "  b", "  ", "d"),
    ]
    assert paths('[\n  {\n    "a": {\n      "b": 1\n    },\n    "c": {\n      "d": 2\n    }\n  }\n]') == []
    assert paths("Dear Ada,\n\nthere are two:\n  a kite\n  a reel\n\nand one more:\n  the sea\n") == []


def test_keys_that_recur_only_end_a_section() -> None:
    text = "".join(f"{name}:\n  only_{name}:\n    - 1\n  ports:\n    - 2\n" for name in ("a", "b", "c"))
    assert paths(text) == ["a", "  only_a", "  ", "b", "  only_b", "  ", "c", "  only_c", "  "]


def test_items_of_yaml_have_the_values_of_first_keys_that_name_them_as_titles() -> None:
    text = """
        tasks:
        - name: "Install kite"
          apt:
            name: kite
          retries: 3
        # With care.
        - name: Fly C#  # it
          wind: 4
          height: 50
        - env: pairs have no titles
          value: 3
        - name: pairs
          value: 4
        - trip: yes
          from: here
          to: there
        - flightId: to the sea
          wind: 5
          height: 60
        end: 4
        """
    assert paths(text) == [
        *("tasks", "  Install kite", "    apt", "    ", "  Fly C#", "  ", "  to the sea", ""),
    ]
    starts = [mark.start for mark in headings(dedent(text).strip() + "\n") if mark.title == "Fly C#"]
    assert dedent(text).strip()[starts[0] :].startswith("# With care.")


KITES = [
    {"id": "K-1", "size": 3, "made": {"title": "no name of it", "by": "Ada"}},
    {"id": "K-2", "title": "Sea kite", "makerName": "Ada", "name": "Sea, kite"},
    {"size": 5, "wind": 6, "colour": "none"},
    {"name": "pair", "value": 7},
    {"id": 8, "makerName": "Ada", "title": "Land kite"},
    {"id": "kite-9", "makerName": "Ada", "size": 9},
    {"firstName": "Ann", "lastName": "Lee", "age": 10},
    {"name": None, "paid": "late", "isbn_id": "X-9", "id": 9},
    {"name": "C:\\kite", "size": 10, "wind": 11},
    {"id": "0b51fc3e-8d0c-4c5e-9a54-0d6a3c1a2b4f", "size": 12, "commit_id": "488ee38a"},
]


@pytest.mark.parametrize("whole", [KITES, {"name": "Kites", "of": "all", "sold": 1, "kites": KITES}])
def test_objects_in_a_list_of_json_have_the_value_of_a_key_that_names_them_as_title(whole: object) -> None:
    """The whole itself has none: its name is that of the document."""
    text = json.dumps(whole, indent=2)
    found = [mark for mark in headings(text) if mark.title not in ("kites", "made")]
    assert [mark.title for mark in found if mark.title] == [
        *("K-1", "Sea, kite", "Land kite", "kite-9", "Ann"),
    ]
    assert all(text[mark.start :].lstrip().startswith("{\n") for mark in found)
    # The ends of the sections that an object without a name follows.
    assert [mark.title for mark in found][2:] == ["", "Land kite", "kite-9", "Ann", ""]


def test_keys_after_an_inner_list_of_json_belong_to_the_object_around_it() -> None:
    kites = [
        {"name": f"Kite {n}", "reels": [{"name": f"Reel {n}", "size": 1, "wind": 2}], "tail": n}
        for n in (1, 2)
    ]
    text = json.dumps(kites, indent=2)
    last = [mark for mark in headings(text) if mark.start < text.index('"tail": 2')][-1]
    assert (last.title, last.level) == ("", 2)
    assert text[last.start :].lstrip().startswith('"tail": 2')


def test_items_of_yaml_are_named_by_a_later_key_too_and_not_by_a_value_that_is_none() -> None:
    text = """
        kites:
        - size: 3
          title: Sea kite
          wind: 4
        - valid: true
          name: null
          id: land
        end: 4
        """
    assert paths(text) == ["kites", "  Sea kite", "  land", ""]


def test_documents_of_kubernetes_are_named_by_kind_and_name() -> None:
    labels = "  labels:\n    name: other\n"
    text = "---\n".join(
        f"kind: {kind}\nmetadata:\n{above}  name: kite\nspec:\n  port: {port}\n"
        for kind, above, port in (("Service", "", 1), ("Deployment", labels, 2), ("Role", "", 3))
    )
    assert [title for title in paths(text) if title[:1].strip()] == [
        "Service kite",
        "Deployment kite",
        "Role kite",
    ]


def test_a_document_without_a_name_is_read_in_linear_time() -> None:
    # If each line doubled it, this would never end.
    paths("kind: Kite\nmetadata:\n" + "  labels:\n    a: b\n" * 1_000)


@pytest.mark.parametrize(
    "text", ["", "; one = 1\n; two = 2\n", "}\n}\n", "Dear Ada,\n\n  it rains.\n  You know it.\n"]
)
def test_comments_and_prose_have_no_blocks(text: str) -> None:
    assert paths(text) == []
