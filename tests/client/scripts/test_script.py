"""The files of scripted sessions and their faults, and the expectations that `runner` checks."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest

from ragchat.errors import ScriptInvalid
from ragchat.scripts import runner as script_runner
from ragchat.scripts.runner import StepResult, unmet
from ragchat.scripts.script import Expectation, Header, as_list, load_script
from tests.support.processes import LONGEST_SECONDS


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "script.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_option_that_names_a_memory_leaves_that_of_the_script_with_its_index_out(tmp_path: Path) -> None:
    header = Header(memory="notes.db", model="offline")
    assert header.overrides(tmp_path, names_memory=False) == {"model.name": "offline"}
    assert header.overrides(tmp_path, names_memory=True) == {
        "model.name": "offline",
        "memory.path": str(tmp_path / "notes.db"),
        "memory_server.url": "",
        "index.url": "",
    }


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
def test_inject_takes_one_path_or_several(tmp_path: Path, inject: str, paths: str | list[str]) -> None:
    text = f"[variables]\nwho = 'Ada'\n[[step]]\ninject = {inject}"
    step = load_script(write(tmp_path, text)).step[0]
    assert step.inject is not None
    assert as_list(step.inject.path) == as_list(paths)
    assert step.title == ", ".join(as_list(paths))


IN_EXPECT = "contains belongs in expect = { … }."


@pytest.mark.parametrize(
    ("text", "reason", "hint"),
    [
        ("[[step]]\nakk = 'x'", "in step 1 (line 1), there is no key akk.", "Did you mean ask?"),
        (
            "[[step]]\nask = 'x'\nexpect = { containz = 'y' }",
            "in step 1 (line 1), there is no key containz in expect.",
            "Did you mean contains?",
        ),
        ("[scrpt]\nname = 'x'\n[[step]]\nask = 'x'", "there is no key scrpt.", "Did you mean script?"),
        (
            "[[step]]\nask = '${whom}'\n[variables]\nwho = 'x'",
            "there is no variable ${whom}",
            "Did you mean who?",
        ),
        ("[[step]]\nask = '${whom}'", "there is no variable ${whom}", ""),
        (
            "[[step]]\nask = '${zzz}'\n[variables]\nwho = 'x'\nwhy = 'y'",
            "there is no variable ${zzz}",
            "Known here: who, why.",
        ),
        ("[[step]]\nask = 2026-11-29", "in step 1 (line 1), ask must be a text, not a date.", ""),
        ("[[step]]\nask = 3", "in step 1 (line 1), ask must be a text, not a number.", ""),
        (
            "[[step]]\nask = 'x'\n[[step]]\ninject = 3",
            "in step 2 (line 3), inject must be a path, a list of paths, or a table, not a number.",
            "",
        ),
        (
            "[[step]]\ninject = ['a', 1]",
            "in step 1 (line 1), each of inject.path must be a text, not a number.",
            "",
        ),
        (
            "[[step]]\nask = 'x'\nexpect = { grounded = 'yes' }",
            "in step 1 (line 1), expect.grounded must be true or false, not a text.",
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
        ("[[step]]\nask = 'x'\ncontains = 'y'", "in step 1 (line 1), there is no key contains.", IN_EXPECT),
        (
            "[[step]]\nask = 'x'\nexpect = { max_seconds = -1 }",
            "step 1 (line 1) expects max_seconds = -1, which must be a number of seconds above 0.",
            "",
        ),
        (
            "[[step]]\nask = 'x'\nexpect = { max_seconds = nan }",
            "step 1 (line 1) expects max_seconds = nan, which must be a number of seconds above 0.",
            "",
        ),
        (
            "[[step]]\nask = 'x'\nexpect = { contains = '' }",
            "step 1 (line 1) expects contains = '', which is empty: name a text, or leave contains out.",
            "",
        ),
        (
            "[[step]]\nask = 'x'\nexpect = { matches = [] }",
            "step 1 (line 1) expects matches = [], which is empty",
            "",
        ),
        (
            "[[step]]\nask = 'x'\nexpect = { cites = ['a', ' '] }",
            "step 1 (line 1) expects cites = ['a', ' '], which",
            "",
        ),
        ("[[step]]\nask = ' '", "step 1 (line 1) has an empty question: ask = ' '.", ""),
        ("[[step]]\nquery = ''", "step 1 (line 1) has an empty question: query = ''.", ""),
        (
            "[[step]]\nask = 'x'\nafter = ['y', '']",
            "step 1 (line 1) has an empty question: after = ['y', '']",
            "",
        ),
        ("[[step]]\ninject = ['a', '']", "step 1 (line 1) has an empty path: inject = ['a', '']", ""),
        ("", "it has no [[step]]", ""),
        ("[[step]]\n", "step 1 (line 1) needs exactly one of inject, ask and query", ""),
        (
            "[[step]]\nask = 'x'\nquery = 'y'",
            "step 1 (line 1) needs exactly one of inject, ask and query",
            "",
        ),
        ("[[step]]\ninject = {}", "step 1 (line 1) needs either a path or a text to inject", ""),
        (
            "[[step]]\ninject = { text = 'x' }\nexpect = { grounded = true }",
            "step 1 (line 1) expects grounded, which only ask and query have",
            "",
        ),
        (
            "[[step]]\nask = 'x'\nexpect = { matches = '(' }",
            "step 1 (line 1) has a bad regular expression '('",
            "",
        ),
        (
            "[[step]]\nask = 'x'\nexpect = { matches = 'a{99999999999}' }",
            "step 1 (line 1) has a bad regular expression 'a{99999999999}': the repetition number is too",
            "",
        ),
        (
            f"[[step]]\nask = 'x'\nexpect = {{ matches = '{'(' * 5000}' }}",
            "step 1 (line 1) has a regular expression that is nested too deeply: '((((",
            "",
        ),
        (f"a = {'[' * 5000}", "it is not valid TOML: it is nested too deeply.", ""),
        ("a" + ".a" * 5000 + " = 1", "it is not valid TOML: a key has more than 16 parts (at line 1).", ""),
        ("[[step]", "it is not valid TOML", ""),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, reason: str, hint: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ScriptInvalid) as caught:
        load_script(path)
    assert str(caught.value).startswith(f"The script {path} cannot be used: {reason}")
    assert caught.value.hint == hint


def test_a_missing_script_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ScriptInvalid, match="cannot be used: no such file"):
        load_script(tmp_path / "gone.toml")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX file kinds")
def test_a_script_is_a_regular_file() -> None:
    with pytest.raises(ScriptInvalid, match="cannot be used: it is not a regular file"):
        load_script(Path("/dev/zero"))


RESULT = StepResult("The capital  of\nFrance is Paris.", ["file:///docs/france.md"], grounded=True)


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
async def test_a_met_expectation_gives_no_failure(expect: Expectation) -> None:
    assert await unmet(expect, RESULT, 1.0) == []


@pytest.mark.parametrize(
    ("expect", "failure"),
    [
        (Expectation(contains=["Paris", "Berlin"]), "does not contain 'Berlin'"),
        (Expectation(not_contains="PARIS"), "contains 'PARIS'"),
        (Expectation(matches="^Paris"), "does not match '^Paris'"),
        (Expectation(cites="*/spain.md"), "does not cite '*/spain.md', only /docs/france.md"),
        (Expectation(cites="*france"), "does not cite '*france', only /docs/france.md"),
        (Expectation(grounded=False), "is grounded"),
        (Expectation(max_seconds=0.5), "took 1.00 s, more than 0.5 s"),
    ],
)
async def test_an_unmet_expectation_gives_one_sentence(expect: Expectation, failure: str) -> None:
    assert await unmet(expect, RESULT, 1.0) == [failure]


async def test_what_is_cited_instead_is_named_once() -> None:
    expect, uris = Expectation(cites="spain"), ["note:1", "note:2", "note:1"]
    assert await unmet(expect, StepResult(""), 1.0) == ["does not cite 'spain', nor anything else"]
    assert await unmet(expect, StepResult("", uris), 1.0) == ["does not cite 'spain', only note:1, note:2"]


async def test_an_expression_that_would_take_years_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_runner, "SEARCH_SECONDS", 0.5)
    with anyio.fail_after(LONGEST_SECONDS):
        failures = await unmet(Expectation(matches=["(a+)+$", "^Paris"]), StepResult("a" * 60 + "!"), 1.0)
    assert failures[0] == "is not matched with '(a+)+$' within 0.5 s"
    assert len(failures) == 2


async def test_only_an_expression_that_may_take_long_is_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/python")
    assert await unmet(Expectation(matches=[r"^France is P.ris\.$", "[Cc]apital"]), RESULT, 1.0) == []
    (failure,) = await unmet(Expectation(matches=["Paris|Berlin"]), RESULT, 1.0)
    assert failure.startswith("cannot be matched with 'Paris|Berlin'")


async def test_any_text_can_be_matched() -> None:
    result = StepResult("caf\xe9 \U0001f600 \udcff\0")
    assert await unmet(Expectation(matches=["^café . \udcff\0$"]), result, 1.0) == []
