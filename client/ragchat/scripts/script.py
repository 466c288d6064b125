"""Scripted sessions: questions with expected answers, for regression tests of a memory.

A script is a TOML file:

    [script]
    name = "First steps"
    memory = "fresh"              # the default: a memory of its own, deleted afterwards; else a path
    model = "offline"             # the default is the one of the settings

    [variables]
    country = "France"

    [[step]]
    inject = "documents"                     # or a list of paths, or { text = "…", uri = "note:1" }

    [[step]]
    ask = "What is the capital of ${country}?"
    expect = { contains = "Paris", cites = "*/france.md", grounded = true, max_seconds = 5 }

    [[step]]
    query = "capital"
    expect = { not_contains = ["Berlin"], matches = "(?i)seine" }

All steps share one session. Paths are relative to the script. The session is stored apart from those of the
user. The expectations apply to the answer and citations of `ask`, to the passages of `query`, and for
`inject` to a line `status uri` for each document.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from ragchat.errors import ScriptInvalid
from ragcommon.errors import TYPES, os_reason
from ragcommon.files.safe_open import read_regular
from ragcommon.text.rules import STEP
from ragconfig.home import user_path
from ragconfig.settings import is_database
from ragconfig.toml_files import NotToml, decode_toml

FRESH = "fresh"
MAX_BYTES = 1 << 22
VARIABLE = re.compile(r"\$\{([^}]*)\}")
UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*?)`")
WRONG_TYPE = re.compile(r"Expected `(.*?)`, got `(.*?)`")
# No number of a script must be whole.
NAMES = {**TYPES, "int": "a number", "date": "a date", "datetime": "a date", "time": "a time"}

OneOrMore = str | list[str]


class Header(Struct, forbid_unknown_fields=True):
    name: str = ""
    memory: str = FRESH
    model: str = ""

    def overrides(self, folder: Path, *, names_memory: bool) -> dict[str, str]:
        """The settings that it makes; the path of a memory is relative to `folder`. Raises UnknownHome.

        Without `names_memory` an option of the command does that.
        """
        model = {"model.name": self.model} if self.model else {}
        if self.memory == FRESH or not names_memory:
            return model
        if is_database(self.memory):
            return {**model, "memory.path": self.memory, "memory_server.url": ""}
        is_own = self.memory.startswith("~")
        place = str(user_path(self.memory if is_own else folder / self.memory))
        return {**model, "memory.path": place, "memory_server.url": "", "index.url": ""}


class InjectStep(Struct, forbid_unknown_fields=True):
    """A path or several, or a text with an optional URI."""

    path: OneOrMore = ""
    text: str = ""
    uri: str = ""


class Expectation(Struct, forbid_unknown_fields=True):
    """The checks of a step; those left out are not made.

    `contains` and `not_contains` ignore case and line breaks. `matches` are regular expressions, found
    anywhere. `cites` are URIs: globs if they contain `*`, else parts of a URI.
    """

    contains: OneOrMore | None = None
    not_contains: OneOrMore | None = None
    matches: OneOrMore | None = None
    cites: OneOrMore | None = None
    grounded: bool | None = None
    max_seconds: float | None = None


class Step(Struct, forbid_unknown_fields=True):
    """Exactly one of `inject`, `ask` and `query`. The questions `after` are asked before `ask`."""

    inject: InjectStep | None = None
    ask: str | None = None
    after: OneOrMore | None = None
    query: str | None = None
    expect: Expectation = field(default_factory=Expectation)

    @property
    def kind(self) -> str:
        return next(name for name in ("inject", "ask", "query") if getattr(self, name) is not None)

    @property
    def title(self) -> str:
        if self.inject is not None:
            return ", ".join(as_list(self.inject.path)) or self.inject.uri or self.inject.text
        return self.ask or self.query or ""


class Script(Struct, forbid_unknown_fields=True):
    step: list[Step]
    script: Header = field(default_factory=Header)
    variables: dict[str, str | int | float] = field(default_factory=dict)


def load_script(path: Path) -> Script:
    """Read and validate a script. Raises ScriptInvalid, which names the step and the key."""
    try:
        content = read_regular(path, MAX_BYTES)
        tree = decode_toml(content)
    except OSError as error:
        raise ScriptInvalid(str(path), os_reason(error)) from None
    except NotToml as error:
        raise ScriptInvalid(str(path), f"it is not valid TOML: {error}") from None
    lines = _lines(content, tree.get("step"))
    try:
        tree["step"] = _with_paths(tree.get("step", []))
        script = msgspec.convert(tree, Script)
        script.step = msgspec.convert(_substitute(tree["step"], script.variables, path), list[Step])
    except msgspec.ValidationError as error:
        raise _invalid(path, str(error), lines) from None
    if not script.step:
        raise ScriptInvalid(str(path), "it has no [[step]]")
    for number, step in enumerate(script.step, 1):
        if reason := _fault(step):
            raise ScriptInvalid(str(path), f"{_name(number, lines)} {reason}")
    return script


def _lines(content: bytes, steps: object) -> list[int]:
    """The lines at which the steps begin; empty if the steps are not written in the usual way."""
    text = content.decode("utf-8-sig").split("\n")
    lines = [number for number, line in enumerate(text, 1) if STEP.match(line)]
    return lines if isinstance(steps, list) and len(lines) == len(steps) else []


def _name(number: int, lines: Sequence[int]) -> str:
    """A step, as in `step 2 (line 7)`."""
    return f"step {number} (line {lines[number - 1]:,})" if lines else f"step {number}"


def _with_paths(steps: Any) -> Any:
    """Expand `inject = "x.md"` and `inject = ["x.md", "y"]` to tables."""
    for step in steps if isinstance(steps, list) else []:
        if isinstance(step, dict) and isinstance(step.get("inject"), str | list):
            step["inject"] = {"path": step["inject"]}
    return steps


def _substitute(value: Any, variables: dict[str, str | int | float], path: Path) -> Any:
    """Replace `${name}` in every string of a tree."""
    if isinstance(value, dict):
        return {key: _substitute(item, variables, path) for key, item in value.items()}
    if isinstance(value, list):
        return [_substitute(item, variables, path) for item in value]
    if not isinstance(value, str):
        return value

    def replacement(match: re.Match[str]) -> str:
        name = match[1]
        if name not in variables:
            raise ScriptInvalid(
                str(path), f"there is no variable ${{{name}}}", _nearest(name, list(variables))
            )
        return str(variables[name])

    return VARIABLE.sub(replacement, value)


def _invalid(path: Path, message: str, lines: Sequence[int]) -> ScriptInvalid:
    """msgspec's message as a sentence: the step, the key, and what is expected."""
    reason, _, place = message.partition(" - at `$.")
    step, key = _step_and_key(place.rstrip("`"), lines)
    if unknown := UNKNOWN_FIELD.match(reason):
        inside = f" in {key}" if key else ""
        hint = _hint_for_unknown_key(unknown[1], key, step)
        return ScriptInvalid(str(path), f"{step}there is no key {unknown[1]}{inside}", hint)
    if wrong := WRONG_TYPE.match(reason):
        got = NAMES.get(wrong[2], wrong[2])
        hint = "Each step begins with the line [[step]]." if key == "step" else ""
        return ScriptInvalid(
            str(path), f"{step}{key or 'it'} must be {_expected(key, wrong[1])}, not {got}", hint
        )
    return ScriptInvalid(str(path), f"{step}{reason}")


def _expected(key: str, types: str) -> str:
    """The types that a key may have, from msgspec's names, such as `str | array | null`."""
    if key == "inject":
        return "a path, a list of paths, or a table"
    names = dict.fromkeys(NAMES.get(name, name) for name in types.split(" | ") if name != "null")
    return " or ".join(names)


def _step_and_key(place: str, lines: Sequence[int]) -> tuple[str, str]:
    """`step[0].expect.contains` as ("in step 1 (line 1), ", "expect.contains")."""
    step, key = "", place
    if match := re.fullmatch(r"step\[(\d+)\]\.?(.*)", place):
        step, key = f"in {_name(int(match[1]) + 1, lines)}, ", match[2]
    return step, re.sub(r"(.*)\[.*\]", r"each of \1", key)


def _hint_for_unknown_key(unknown: str, place: str, step: str) -> str:
    """The table where an unknown key belongs, or else the nearest key of its own table."""
    shapes: dict[str, tuple[type[Struct], str]] = {
        "script": (Header, "under [script]"),
        "step": (Step, "in a [[step]]"),
        "inject": (InjectStep, "in inject = { … }"),
        "expect": (Expectation, "in expect = { … }"),
        "": (Script, "at the top"),
    }
    for shape, belongs in shapes.values():
        if unknown in shape.__struct_fields__:
            return f"{unknown} belongs {belongs}."
    shape, _ = shapes[place or ("step" if step else "")]
    return _nearest(unknown, list(shape.__struct_fields__))


def _nearest(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    if near:
        return f"Did you mean {near[0]}?"
    return f"Known here: {', '.join(known)}." if known else ""


def _fault(step: Step) -> str:
    """The first fault of a step, "" if it has none."""
    kinds = [name for name in ("inject", "ask", "query") if getattr(step, name) is not None]
    if len(kinds) != 1:
        return "needs exactly one of inject, ask and query"
    if step.after is not None and step.ask is None:
        return "has `after`, which is for steps with ask"
    if step.inject is not None and bool(step.inject.path) == bool(step.inject.text):
        return "needs either a path or a text to inject"
    if step.inject is not None and step.expect.grounded is not None:
        return "expects grounded, which only ask and query have"
    for name in ("ask", "query", "after"):
        asked = getattr(step, name)
        if asked is not None and not all(text.strip() for text in as_list(asked)):
            return f"has an empty question: {name} = {asked!r}"
    if step.inject is not None and not all(path.strip() for path in as_list(step.inject.path or "-")):
        return f"has an empty path: inject = {step.inject.path!r}"
    for name in ("contains", "not_contains", "matches", "cites"):
        wanted = getattr(step.expect, name)
        if wanted is not None and not all(part.strip() for part in as_list(wanted) or [""]):
            return f"expects {name} = {wanted!r}, which is empty: name a text, or leave {name} out"
    limit = step.expect.max_seconds
    if limit is not None and not 0 < limit < math.inf:
        return f"expects max_seconds = {limit:g}, which must be a number of seconds above 0"
    for pattern in as_list(step.expect.matches):
        try:
            re.compile(pattern)
        except (re.error, OverflowError) as error:
            return f"has a bad regular expression {pattern!r}: {error}"
        except RecursionError:
            return f"has a regular expression that is nested too deeply: {pattern[:40]!r} …"
    return ""


def as_list(value: OneOrMore | None) -> list[str]:
    return [value] if isinstance(value, str) else value or []
