"""Whether a tool may be called: at once, after asking the user, or not at all.

A tool that only reads runs if the server's word for that is trusted. Any other tool runs only if the user has
allowed it, and asks even then while the conversation holds text that is not the user's own: such text may be
written to make the model call it. A tool that has changed since it was allowed asks again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from msgspec import UnsetType

from ragchat import CLIENT_NAME
from ragchat.servers.permissions import Permissions, Rule
from ragchat.uris import short_uri
from ragcommon.contract.search import Hit

if TYPE_CHECKING:
    from ragchat.memory.types import ToolResult
    from ragmcp.protocol.schema.tools import ToolInfo

# The URIs of documents that the user loaded from files, or typed. Other programs, or their models, may have
# stored some, too: what stored the user's own is this program, or memory when it resumed a load of files.
OWN_SCHEMES = ("file:", "sha256:")
OWN_WRITERS = (CLIENT_NAME, "ingestion")


@dataclass(frozen=True)
class OfferedTool:
    """A tool under the name by which a model calls it; `trusted`: its server's hints are."""

    name: str
    server: str
    info: ToolInfo
    trusted: bool
    call: Callable[[dict[str, Any]], Awaitable[ToolResult]]

    @property
    def only_reads(self) -> bool:
        """Whether its server says that it changes nothing, which may be a lie."""
        hints = self.info.annotations
        return not isinstance(hints, UnsetType) and hints.read_only_hint is True


class Verdict(Enum):
    """What happens to a call."""

    RUN = auto()
    ASK = auto()
    REFUSE = auto()


@dataclass(frozen=True)
class Question:
    """What the user is asked; `untrusted` names texts that are not the user's own, if that is why.

    `changes` is how the tool differs from the one that was allowed, as a diff.
    """

    tool: OfferedTool
    arguments: dict[str, Any]
    untrusted: Sequence[str] = ()
    changes: str = ""


# Asks the user; returns the arguments to call the tool with, which may be edited, or None.
Approve = Callable[[Question], Awaitable[dict[str, Any] | None]]


def decide(
    tool: OfferedTool,
    permissions: Permissions,
    untrusted: Sequence[str],
    *,
    trust_read_only_hints: bool = False,
) -> Verdict:
    """`untrusted` are the texts in the conversation that are not the user's own.

    With `trust_read_only_hints` every server is trusted where it says that a tool only reads.
    Raises PermissionsUnusable.
    """
    rule = permissions.rule(tool.server, tool.info)
    if rule is Rule.NEVER:
        return Verdict.REFUSE
    if permissions.has_changed(tool.server, tool.info):
        return Verdict.ASK
    if tool.only_reads and (tool.trusted or trust_read_only_hints):
        return Verdict.RUN
    return Verdict.RUN if rule is not None and not untrusted else Verdict.ASK


def untrusted_texts(hits: Iterable[Hit]) -> list[str]:
    """The passages that the user has neither typed nor loaded from files, by their short names."""
    return [short_uri(hit.uri, hit.title) for hit in hits if not _is_own(hit)]


def _is_own(hit: Hit) -> bool:
    return hit.written_by in OWN_WRITERS and (hit.uri.startswith(OWN_SCHEMES) or ":" not in hit.uri)
