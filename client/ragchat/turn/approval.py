"""Whether a tool may be called: at once, after asking the user, or not at all.

A read-only tool runs if its server's annotations are trusted. Any other tool runs if the user has allowed it,
but the user is still asked while the conversation contains text from others, which may be a prompt injection.
A tool that has changed since it was allowed needs a new permission.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from ragchat import CLIENT_NAME
from ragchat.sanitize import one_line, visible
from ragchat.servers.permissions import Permissions, Rule
from ragchat.servers.tools import OfferedTool
from ragchat.uris import short_uri
from ragcommon.contract.search import Hit

# Documents that the user typed or loaded from files have these URIs. Other programs can store such URIs too,
# so the writer must also be this program, or memory itself when it resumed loading files.
OWN_SCHEMES = ("file:", "sha256:")
OWN_WRITERS = (CLIENT_NAME, "ingestion")
# At most this many untrusted texts are named.
MAX_NAMED = 5
NOT_TRUSTED = '{server} says that this tool only reads. "trusted": true in mcp.json makes that count.'


class Decision(Enum):
    """What happens to a call."""

    RUN = auto()
    ASK = auto()
    REFUSE = auto()


@dataclass(frozen=True)
class PermissionRequest:
    """A request for permission. `untrusted` names the texts from others that are the reason for asking.

    `changes` is a diff against the tool that was allowed.
    """

    tool: OfferedTool
    arguments: dict[str, Any]
    untrusted: Sequence[str] = ()
    changes: str = ""

    @property
    def reasons(self) -> Iterator[str]:
        """Why the user is asked, as texts that can be shown."""
        if self.changes:
            yield f"{one_line(self.tool.name)} has changed since you allowed it:"
            yield visible(self.changes)
        if self.untrusted:
            yield f"The model has read text that is not yours: {_newest(self.untrusted)}."
            if self.tool.only_reads:
                yield NOT_TRUSTED.format(server=one_line(self.tool.server))


def _newest(untrusted: Sequence[str]) -> str:
    """The names of the texts that the model read last."""
    older = len(untrusted) - MAX_NAMED
    return one_line(", ".join(untrusted[-MAX_NAMED:])) + (f", and {older} before" if older > 0 else "")


# Asks the user; returns the arguments to call the tool with, which may be edited, or None.
Approve = Callable[[PermissionRequest], Awaitable[dict[str, Any] | None]]


def decide(
    tool: OfferedTool,
    permissions: Permissions,
    untrusted: Sequence[str],
    *,
    trust_read_only_hints: bool = False,
) -> Decision:
    """`untrusted` are the texts in the conversation that are not the user's own.

    `trust_read_only_hints` trusts the read-only annotations of every server. Raises PermissionsUnusable.
    """
    rule = permissions.rule(tool.identity, tool.info)
    if rule is Rule.NEVER:
        return Decision.REFUSE
    if permissions.has_changed(tool.identity, tool.info):
        return Decision.ASK
    if tool.only_reads and (tool.trusted or trust_read_only_hints):
        return Decision.RUN
    return Decision.RUN if rule is not None and not untrusted else Decision.ASK


def untrusted_texts(hits: Iterable[Hit]) -> list[str]:
    """The short names of the passages that the user has neither typed nor loaded from files."""
    return [short_uri(hit.uri, hit.title) for hit in hits if not _is_own(hit)]


def _is_own(hit: Hit) -> bool:
    return hit.written_by in OWN_WRITERS and (hit.uri.startswith(OWN_SCHEMES) or ":" not in hit.uri)
