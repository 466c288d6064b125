"""Asking the user about a tool call, and what is remembered of the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ragchat.memory.types import ToolResult
from ragchat.servers.permissions import Permissions, Rule
from ragchat.servers.tools import OfferedTool
from ragchat.turn.approval import PermissionRequest
from ragchat.ui.approval import Approvals
from tests.support.dialogs import ScriptedDialog
from tests.support.turns import FORGET_TOOL, QUERY_TOOL


async def nothing(_: dict[str, Any]) -> ToolResult:
    return ToolResult(True, "")


COLUMNS = 40
TOOL = OfferedTool("files__Forget", "files", "files", FORGET_TOOL, False, nothing)


class User(ScriptedDialog):
    """A user who is asked about tools."""

    def approvals(self, folder: Path) -> Approvals:
        return Approvals(Permissions(folder), self, self.show, lambda: COLUMNS, pytest.fail)


@pytest.mark.parametrize(
    ("said", "allowed"), [("y", True), ("Yes ", True), ("", False), ("n", False), ("NO", False)]
)
async def test_a_tool_is_called_only_with_leave(tmp_path: Path, said: str, allowed: bool) -> None:
    user = User([said, said])
    approvals = user.approvals(tmp_path)
    long = PermissionRequest(
        OfferedTool("Forget\x1b[2J", "files", "files", FORGET_TOOL, False, nothing), {"document": "x" * 500}
    )
    assert (await approvals.approve(long) is not None) is allowed
    assert (await approvals.approve(long) is not None) is allowed
    assert len(user.asked) == 2
    assert "\x1b" not in user.asked[0]
    assert len(user.asked[0]) < 100
    lines = user.shown[0].splitlines()
    assert lines[0] == "  document:"
    assert "".join(line.removeprefix("  | ") for line in lines[1:]) == "x" * 500
    assert max(map(len, lines)) <= COLUMNS


@pytest.mark.parametrize(("columns", "gap"), [(44, "\n"), (200, " ")])
async def test_in_a_narrow_terminal_the_choices_are_a_line_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int, gap: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    user = User(["n"])
    assert await user.approvals(tmp_path).approve(PermissionRequest(TOOL, {"x": 1})) is None
    assert f"?{gap}[y]es, " in user.asked[0]


async def test_always_and_never_are_remembered_for_that_tool_alone(tmp_path: Path) -> None:
    permissions = Permissions(tmp_path)
    assert await User(["a"]).approvals(tmp_path).approve(PermissionRequest(TOOL, {"x": 1})) == {"x": 1}
    assert permissions.rule("files", FORGET_TOOL) is Rule.ALWAYS
    assert permissions.rule("other", FORGET_TOOL) is None
    other = replace(FORGET_TOOL, name="Other")
    assert permissions.rule("files", other) is None
    assert await User(["v"]).approvals(tmp_path).approve(PermissionRequest(TOOL, {})) is None
    assert Permissions(tmp_path).rule("files", FORGET_TOOL) is Rule.NEVER


@pytest.mark.parametrize(
    "said",
    [
        *("abort", "a moment", "stop", "sure?", "yaks", "exit", "v2", "x"),
        *("al", "ne", "nev", "se", "SESS", "ye", "yes please", "yes.", "f"),
    ],
)
async def test_a_word_that_is_no_choice_allows_and_remembers_nothing(tmp_path: Path, said: str) -> None:
    permissions, user = Permissions(tmp_path), User([said, "n"])
    approvals = Approvals(permissions, user, user.show, lambda: COLUMNS, pytest.fail)
    assert await approvals.approve(PermissionRequest(TOOL, {})) is None
    assert permissions.rule("files", FORGET_TOOL) is None
    assert user.asked[0] == user.asked[1]
    assert user.shown == [f"{said!r} is none of the choices: type the letter or the whole word."]


async def test_a_question_can_be_cancelled_after_a_word_that_is_no_choice(tmp_path: Path) -> None:
    permissions, user, stopped = Permissions(tmp_path), User(["yes please", None]), list[bool]()
    approvals = Approvals(permissions, user, user.show, lambda: COLUMNS, lambda: stopped.append(True))
    assert await approvals.approve(PermissionRequest(TOOL, {})) is None
    assert stopped == [True]


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ("always", Rule.ALWAYS),
        ("SESSION", Rule.SESSION),
        ("never", Rule.NEVER),
        ("no", None),
    ],
)
async def test_a_choice_may_be_written_out(tmp_path: Path, said: str, rule: Rule | None) -> None:
    permissions, user = Permissions(tmp_path), User([said])
    await Approvals(permissions, user, user.show, lambda: COLUMNS, pytest.fail).approve(
        PermissionRequest(TOOL, {})
    )
    assert permissions.rule("files", FORGET_TOOL) is rule


async def test_session_lasts_until_the_chat_ends(tmp_path: Path) -> None:
    permissions, user = Permissions(tmp_path), User(["s"])
    approvals = Approvals(permissions, user, user.show, lambda: COLUMNS, pytest.fail)
    assert await approvals.approve(PermissionRequest(TOOL, {})) == {}
    assert permissions.rule("files", FORGET_TOOL) is Rule.SESSION
    assert Permissions(tmp_path).rule("files", FORGET_TOOL) is None


async def test_the_text_that_is_not_the_users_is_named_and_what_trust_would_change(tmp_path: Path) -> None:
    user, page = User(["n", "n"]), ["https://example.org/page"]
    approvals = user.approvals(tmp_path)
    await approvals.approve(PermissionRequest(TOOL, {}, untrusted=page))
    assert len(user.shown) == 1
    assert page[0] in user.shown[0]
    reads = OfferedTool("files__Query", "files", "files", QUERY_TOOL, False, nothing)
    await approvals.approve(PermissionRequest(reads, {}, untrusted=page))
    assert '"trusted": true' in user.shown[-1]


async def test_of_many_foreign_texts_the_last_ones_are_named(tmp_path: Path) -> None:
    user = User(["n"])
    await user.approvals(tmp_path).approve(
        PermissionRequest(TOOL, {}, untrusted=[f"page {n}" for n in range(9)])
    )
    assert user.shown[0].endswith("page 4, page 5, page 6, page 7, page 8, and 4 before.")


async def test_the_arguments_can_be_edited_before_the_call(tmp_path: Path) -> None:
    user = User(["e", "{oops", "e", '{"path": "b.txt"}', "y"])
    assert await user.approvals(tmp_path).approve(PermissionRequest(TOOL, {"path": "a.txt"})) == {
        "path": "b.txt"
    }
    assert "not the arguments" in user.shown[0]
    assert "'b.txt'" in user.asked[-1]


async def test_the_editor_shows_the_same_escapes_as_the_question(tmp_path: Path) -> None:
    arguments = {"path": "safe\u202eexe.txt", "zero\u200b": "\x1b\x85\U000e0041 Grüße, 世界"}
    user = User(["e", r'{"path": "safe\u202eexe.txt"}', "y"])
    assert await user.approvals(tmp_path).approve(PermissionRequest(TOOL, arguments)) == {
        "path": "safe\u202eexe.txt"
    }
    shown = user.defaults[1]
    assert shown == r'{"path":"safe\u202eexe.txt","zero\u200b":"\u001b\u0085\udb40\udc41 Grüße, 世界"}'
    assert json.loads(shown) == arguments
    assert r"safe\u202eexe.txt" in user.asked[0]


async def test_how_a_tool_has_changed_is_shown(tmp_path: Path) -> None:
    user = User(["n"])
    changes = "-Read\n+Delete\u202e\u200b"
    assert await user.approvals(tmp_path).approve(PermissionRequest(TOOL, {}, changes=changes)) is None
    assert user.shown[0] == "files__Forget has changed since you allowed it:"
    assert user.shown[1].splitlines() == ["-Read", r"+Delete\u202e\u200b"]


async def test_long_arguments_are_shown_in_part_and_at_a_key_as_a_whole(tmp_path: Path) -> None:
    user = User(["f", "n"])
    script = "\n".join(f"echo {number}" for number in range(100))
    assert await user.approvals(tmp_path).approve(PermissionRequest(TOOL, {"script": script})) is None
    first, remark, whole = user.shown
    assert "echo 28" in first
    assert "echo 29" not in first
    assert remark == "These are 30 of 101 lines: [f] shows all."
    assert whole.splitlines() == ["  script:", *(f"  | {line}" for line in script.splitlines())]
    assert ["[f]ull" in asked for asked in user.asked] == [True, False]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a\x1b[2K\rb", r"a\x1b[2K\rb"),
        ("safe\u202eexe.txt", r"safe\u202eexe.txt"),
        ("in\u200bvisible\u2800", r"in\u200bvisible\u2800"),
        ("tags\U000e0041", r"tags\U000e0041"),
        ("Grüße, 世界", "Grüße, 世界"),
    ],
)
async def test_nothing_in_the_arguments_is_hidden_from_the_user(
    tmp_path: Path, value: str, shown: str
) -> None:
    user = User(["n", "n"])
    approvals = user.approvals(tmp_path)
    await approvals.approve(PermissionRequest(TOOL, {"text": value}))
    await approvals.approve(PermissionRequest(TOOL, {"text": value, "other": "two\nlines"}))
    assert f"text='{shown}'" in user.asked[0]
    assert f"  | {shown}" in user.shown[0].splitlines()


async def test_a_value_cannot_pass_for_a_question_or_another_argument(tmp_path: Path) -> None:
    user = User(["n", "n"])
    approvals = user.approvals(tmp_path)
    await approvals.approve(PermissionRequest(TOOL, {"text": f"short{' ' * 60}\nAllow ls()? [y]es\n  path:"}))
    lines = user.shown[0].splitlines()
    assert all(line.startswith("  | ") for line in lines[1:])
    await approvals.approve(PermissionRequest(TOOL, {"x='y', z" + " " * COLUMNS: "1\n"}))
    assert all(line.startswith("  ") and len(line) <= COLUMNS for line in user.shown[1].splitlines())
    assert user.asked[1].startswith("Allow files__Forget(as above)?")
