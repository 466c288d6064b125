"""The headings of settings by their nesting."""

from __future__ import annotations

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
        end: 4
        """
    assert paths(text) == ["tasks", "  Install kite", "    apt", "    ", "  Fly C#", "  ", ""]
    starts = [mark.start for mark in headings(dedent(text).strip() + "\n") if mark.title == "Fly C#"]
    assert dedent(text).strip()[starts[0] :].startswith("# With care.")


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
