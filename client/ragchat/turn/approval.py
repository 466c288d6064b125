"""Whether a tool may be called: at once, after asking the user, or not at all.

A tool that only reads runs if the server's word for that is trusted. Any other tool runs only if the user has
allowed it for all time. A tool that changes something asks even then, while the conversation holds text that
is not the user's own: such text may be written to make the model call it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from msgspec import UnsetType

from ragchat.servers.permissions import Permissions, Rule
from ragchat.types import Hit
from ragchat.uris import short_uri

if TYPE_CHECKING:
    from ragchat.memory.types import ToolResult
    from ragmcp.protocol.schema.tools import ToolInfo

# The URIs of documents that the user loaded from files, or typed.
OWN_SCHEMES = ("file:", "sha256:")


@dataclass(frozen=True)
class OfferedTool:
    """A tool under the name by which a model calls it; `trusted`: its server's word is believed."""

    name: str
    server: str
    info: ToolInfo
    trusted: bool
    call: Callable[[dict[str, Any]], Awaitable[ToolResult]]

    @property
    def only_reads(self) -> bool:
        """Whether its server says that it changes nothing."""
        hints = self.info.annotations
        return not isinstance(hints, UnsetType) and hints.read_only_hint is True


class Verdict(Enum):
    """What happens to a call."""

    RUN = auto()
    ASK = auto()
    REFUSE = auto()


@dataclass(frozen=True)
class Question:
    """What the user is asked; `foreign` names texts that are not the user's own, if that is why.

    `changes` is how the tool differs from the one that was allowed, as a diff.
    """

    tool: OfferedTool
    arguments: dict[str, Any]
    foreign: Sequence[str] = ()
    changes: str = ""


# Asks the user; returns the arguments to call the tool with, which may be edited, or None.
Approve = Callable[[Question], Awaitable[dict[str, Any] | None]]


def decide(
    tool: OfferedTool, permissions: Permissions, foreign: Sequence[str], *, believe_all: bool = False
) -> Verdict:
    """`foreign` are the texts in the conversation that are not the user's own.

    With `believe_all` every server's word that a tool only reads is believed. Raises PermissionsUnusable.
    """
    rule = permissions.rule(tool.server, tool.info)
    if rule is Rule.NEVER:
        return Verdict.REFUSE
    if permissions.changes(tool.server, tool.info):
        return Verdict.ASK
    if tool.only_reads and (tool.trusted or believe_all):
        return Verdict.RUN
    return Verdict.RUN if rule is Rule.ALWAYS and (tool.only_reads or not foreign) else Verdict.ASK


def foreign_texts(hits: Iterable[Hit]) -> list[str]:
    """The passages that are not from the user's own files, by their short names."""
    return [short_uri(hit.uri, hit.title) for hit in hits if not _is_own(hit.uri)]


def _is_own(uri: str) -> bool:
    return uri.startswith(OWN_SCHEMES) or ":" not in uri
