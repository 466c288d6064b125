"""Which tool calls run at once, which ask, and which are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from ragchat.servers.permissions import Permissions, Rule
from ragchat.servers.tools import OfferedTool
from ragchat.turn.approval import Decision, decide, untrusted_texts
from tests.client.ui.test_approval import nothing
from tests.support.turns import FORGET_TOOL, QUERY_TOOL, hit

PAGE = ["https://example.org/page"]


def offered(*, reads: bool, trusted: bool = False) -> OfferedTool:
    tool = QUERY_TOOL if reads else FORGET_TOOL
    return OfferedTool(f"files__{tool.name}", "files", "files", tool, trusted, nothing)


@pytest.mark.parametrize("untrusted", [[], PAGE])
def test_a_tool_that_only_reads_runs_if_its_server_is_trusted(tmp_path: Path, untrusted: list[str]) -> None:
    permissions = Permissions(tmp_path)
    assert decide(offered(reads=True, trusted=True), permissions, untrusted) is Decision.RUN
    assert decide(offered(reads=True), permissions, untrusted) is Decision.ASK
    assert decide(offered(reads=True), permissions, untrusted, trust_read_only_hints=True) is Decision.RUN
    assert decide(offered(reads=False, trusted=True), permissions, untrusted) is Decision.ASK
    assert decide(offered(reads=False), permissions, untrusted, trust_read_only_hints=True) is Decision.ASK


@pytest.mark.parametrize("rule", [Rule.ALWAYS, Rule.SESSION])
def test_an_allowed_tool_asks_nevertheless_once_foreign_text_was_read(tmp_path: Path, rule: Rule) -> None:
    permissions = Permissions(tmp_path)
    permissions.remember("files", [FORGET_TOOL, QUERY_TOOL], rule)
    assert decide(offered(reads=False), permissions, []) is Decision.RUN
    assert decide(offered(reads=False), permissions, PAGE) is Decision.ASK
    # That it only reads is the word of a server that is not trusted.
    assert decide(offered(reads=True), permissions, []) is Decision.RUN
    assert decide(offered(reads=True), permissions, PAGE) is Decision.ASK
    assert decide(offered(reads=True, trusted=True), permissions, PAGE) is Decision.RUN


def test_a_forbidden_tool_is_refused_even_if_it_only_reads(tmp_path: Path) -> None:
    permissions = Permissions(tmp_path)
    permissions.remember("files", [QUERY_TOOL, FORGET_TOOL], Rule.NEVER)
    assert decide(offered(reads=True, trusted=True), permissions, []) is Decision.REFUSE
    assert decide(offered(reads=False), permissions, []) is Decision.REFUSE


@pytest.mark.parametrize("rule", [Rule.ALWAYS, Rule.SESSION])
@pytest.mark.parametrize("change", [{"description": "Another."}, {"annotations": UNSET}])
def test_a_tool_that_changed_since_it_was_allowed_asks_again(
    tmp_path: Path, rule: Rule, change: dict[str, Any]
) -> None:
    permissions = Permissions(tmp_path)
    permissions.remember("files", [replace(QUERY_TOOL, **change)], rule)
    for trusted in (True, False):
        tool = offered(reads=True, trusted=trusted)
        assert decide(tool, permissions, []) is Decision.ASK
        assert decide(tool, permissions, [], trust_read_only_hints=True) is Decision.ASK


def test_only_the_users_own_files_and_texts_are_not_foreign() -> None:
    uris = ("file:///notes/a.md", "sha256:0123", "stdin", "https://example.org/page", "mailto:x")
    hits = [replace(hit("text"), uri=uri) for uri in uris]
    assert untrusted_texts(hits) == ["https://example.org/page", "mailto:x"]


@pytest.mark.parametrize(
    ("written_by", "is_own"),
    [("ragchat", True), ("ingestion", True), ("Claude Desktop", False), (None, False)],
)
@pytest.mark.parametrize("uri", ["file:///notes/a.md", "sha256:0123", "notes"])
def test_what_another_program_has_stored_is_foreign_whatever_its_uri(
    uri: str, written_by: str | None, is_own: bool
) -> None:
    found = untrusted_texts([replace(hit("text"), uri=uri, written_by=written_by)])
    assert (found == []) is is_own
