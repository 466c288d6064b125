"""The shape of a script, and how its mistakes are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragchat.errors import ScriptInvalid
from ragchat.script import Expectation, listed, load_script
from ragchat.script_runner import Outcome, check


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "script.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_variables_stand_anywhere_in_a_step(tmp_path: Path) -> None:
    script = load_script(
        write(
            tmp_path,
            """
            [script]
            name = "A name"
            [variables]
            who = "Ada"
            year = 1843
            [[step]]
            inject = { text = "${who} wrote it in ${year}.", uri = "note:${who}" }
            [[step]]
            ask = "What did ${who} write?"
            expect = { contains = ["${year}", "$5"], cites = "note:${who}" }
            """,
        )
    )
    assert script.script.name == "A name"
    assert script.step[0].inject is not None
    assert script.step[0].inject.text == "Ada wrote it in 1843."
    assert script.step[1].title == "What did Ada write?"
    assert script.step[1].expect.contains == ["1843", "$5"]
    assert [step.kind for step in script.step] == ["inject", "ask"]


@pytest.mark.parametrize(
    ("inject", "paths"),
    [("'notes/${who}.md'", "notes/Ada.md"), ("['a', 'b']", ["a", "b"]), ("{ path = 'a' }", "a")],
)
def test_what_is_injected_may_be_a_path_or_several(
    tmp_path: Path, inject: str, paths: str | list[str]
) -> None:
    text = f"[variables]\nwho = 'Ada'\n[[step]]\ninject = {inject}"
    step = load_script(write(tmp_path, text)).step[0]
    assert step.inject is not None
    assert listed(step.inject.path) == listed(paths)
    assert step.title == ", ".join(listed(paths))


IN_EXPECT = "contains belongs in expect = { … }."


@pytest.mark.parametrize(
    ("text", "reason", "hint"),
    [
        ("[[step]]\nakk = 'x'", "in step 1, there is no key akk.", "Did you mean ask?"),
        (
            "[[step]]\nask = 'x'\nexpect = { containz = 'y' }",
            "in step 1, there is no key containz in expect.",
            "Did you mean contains?",
        ),
        ("[scrpt]\nname = 'x'\n[[step]]\nask = 'x'", "there is no key scrpt.", "Did you mean script?"),
        (
            "[[step]]\nask = '${whom}'\n[variables]\nwho = 'x'",
            "there is no variable whom",
            "Did you mean who?",
        ),
        ("[[step]]\nask = '${whom}'", "there is no variable whom", ""),
        ("[[step]]\nask = 3", "in step 1, ask must be a text, not a number.", ""),
        (
            "[[step]]\nask = 'x'\n[[step]]\ninject = 3",
            "in step 2, inject must be a path, a list of paths, or a table, not a number.",
            "",
        ),
        (
            "[[step]]\ninject = ['a', 1]",
            "in step 1, each of inject.path must be a text, not a number.",
            "",
        ),
        (
            "[[step]]\nask = 'x'\nexpect = { grounded = 'yes' }",
            "in step 1, expect.grounded must be true or false, not a text.",
            "",
        ),
        (
            "[[step]]\nask = 'x'\n[variables]\nwho = ['x']",
            "each of variables must be a number or a text, not a list.",
            "",
        ),
        (
            "[step]\nask = 'x'",
            "step must be a list, not a table.",
            "Each step begins with the line [[step]].",
        ),
        ("step = [1]", "in step 1, it must be a table, not a number.", ""),
        ("name = 'x'\n[[step]]\nask = 'x'", "there is no key name.", "name belongs under [script]."),
        ("[[step]]\nask = 'x'\ncontains = 'y'", "in step 1, there is no key contains.", IN_EXPECT),
        (
            "[[step]]\nask = 'x'\nexpect = { max_seconds = -1 }",
            "step 1 expects max_seconds = -1, which must be a number of seconds above 0.",
            "",
        ),
        (
            "[[step]]\nask = 'x'\nexpect = { max_seconds = nan }",
            "step 1 expects max_seconds = nan, which must be a number of seconds above 0.",
            "",
        ),
        (
            "[[step]]\nask = 'x'\nexpect = { contains = '' }",
            "step 1 expects contains = '', which says nothing: name a text, or leave contains out.",
            "",
        ),
        (
            "[[step]]\nask = 'x'\nexpect = { matches = [] }",
            "step 1 expects matches = [], which says nothing",
            "",
        ),
        (
            "[[step]]\nask = 'x'\nexpect = { cites = ['a', ' '] }",
            "step 1 expects cites = ['a', ' '], which",
            "",
        ),
        ("", "it has no [[step]]", ""),
        ("[[step]]\n", "step 1 needs exactly one of inject, ask and query", ""),
        ("[[step]]\nask = 'x'\nquery = 'y'", "step 1 needs exactly one of inject, ask and query", ""),
        ("[[step]]\ninject = {}", "step 1 needs either a path or a text to inject", ""),
        (
            "[[step]]\ninject = { text = 'x' }\nexpect = { grounded = true }",
            "step 1 expects grounded, which inject has not",
            "",
        ),
        ("[[step]]\nask = 'x'\nexpect = { matches = '(' }", "step 1 has a bad regular expression '('", ""),
        ("[[step]", "it is not valid TOML", ""),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, reason: str, hint: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ScriptInvalid) as caught:
        load_script(path)
    assert str(caught.value).startswith(f"The script {path} cannot be used: {reason}")
    assert caught.value.hint == hint


def test_a_script_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ScriptInvalid, match="cannot be read: No such file"):
        load_script(tmp_path / "gone.toml")


OUTCOME = Outcome("The capital  of\nFrance is Paris.", ["file:///docs/france.md"], grounded=True)


@pytest.mark.parametrize(
    "expect",
    [
        Expectation(),
        Expectation(contains=["paris", "capital of france"], not_contains="Berlin"),
        Expectation(matches=["^France", "P.ris\\.$"]),
        Expectation(cites=["*/france.md", "docs/fr"]),
        Expectation(grounded=True, max_seconds=2),
    ],
)
def test_what_is_as_expected_gives_no_failure(expect: Expectation) -> None:
    assert check(expect, OUTCOME, 1.0) == []


@pytest.mark.parametrize(
    ("expect", "failure"),
    [
        (Expectation(contains=["Paris", "Berlin"]), "does not contain 'Berlin'"),
        (Expectation(not_contains="PARIS"), "contains 'PARIS'"),
        (Expectation(matches="^Paris"), "does not match '^Paris'"),
        (Expectation(cites="*/spain.md"), "does not cite '*/spain.md'"),
        (Expectation(cites="*france"), "does not cite '*france'"),
        (Expectation(grounded=False), "is grounded"),
        (Expectation(max_seconds=0.5), "took 1.00 s, more than 0.5 s"),
    ],
)
def test_what_is_not_as_expected_is_one_sentence(expect: Expectation, failure: str) -> None:
    assert check(expect, OUTCOME, 1.0) == [failure]
