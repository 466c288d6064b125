"""What a server may ask of its client: its user (elicitation), its model (sampling), its host (roots).

Source: basic/patterns/mrtr, client/elicitation, client/sampling, client/roots.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from msgspec import UNSET, Raw, UnsetType

from ragmcp.protocol.schema.base import Result, Wire

# URLElicitationRequiredError of 2025-11-25; the modern era asks with an InputRequiredResult.
PAGES_REQUIRED = -32042


class ElicitResult(Wire, frozen=True, kw_only=True):
    """What the user did with a form; `content` holds its fields where they accepted."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] = {}


class SamplingResult(Wire, frozen=True, kw_only=True):
    """What the client's model said."""

    role: Literal["user", "assistant"]
    content: Any
    model: str
    stop_reason: str | UnsetType = UNSET


class Root(Wire, frozen=True, kw_only=True):
    """A folder the server may work in."""

    uri: str
    name: str | UnsetType = UNSET


class RootsResult(Wire, frozen=True, kw_only=True):
    """The client's roots."""

    roots: list[Root]


class InputRequest(Wire, frozen=True, kw_only=True):
    """The parameters of one request to the client."""

    method: ClassVar[str]
    capability: ClassVar[str]
    answer: ClassVar[type[Wire]]

    @property
    def part(self) -> str:
        """The part of the capability that is needed; "" for none in particular."""
        return ""


class Elicit(InputRequest, frozen=True, kw_only=True):
    """Ask the user to fill in a form (`requested_schema`, flat) or to visit a URL. Gives ElicitResult.

    With a URL the legacy era needs an `elicitation_id`, unique in the server.
    """

    method: ClassVar[str] = "elicitation/create"
    capability: ClassVar[str] = "elicitation"
    answer: ClassVar[type[Wire]] = ElicitResult

    message: str
    requested_schema: dict[str, Any] | UnsetType = UNSET
    mode: Literal["form", "url"] | UnsetType = UNSET
    url: str | UnsetType = UNSET
    elicitation_id: str | UnsetType = UNSET

    @property
    def part(self) -> str:
        return "url" if self.mode == "url" else "form"


class PagesRequired(Wire, frozen=True, kw_only=True):
    """The data of the error PAGES_REQUIRED: pages that the user must visit before the request is repeated."""

    elicitations: list[Elicit]


class ElicitationComplete(Wire, frozen=True, kw_only=True):
    """The parameters of `notifications/elicitation/complete`: the user is done with a page."""

    elicitation_id: str


class Sample(InputRequest, frozen=True, kw_only=True):
    """Ask the client's model; `messages` as in sampling/createMessage. Gives SamplingResult."""

    method: ClassVar[str] = "sampling/createMessage"
    capability: ClassVar[str] = "sampling"
    answer: ClassVar[type[Wire]] = SamplingResult

    messages: list[dict[str, Any]]
    max_tokens: int
    system_prompt: str | UnsetType = UNSET
    tools: list[dict[str, Any]] | UnsetType = UNSET

    @property
    def part(self) -> str:
        return "tools" if self.tools else ""


class ListRoots(InputRequest, frozen=True, kw_only=True):
    """Ask which folders the user opened for us. Gives RootsResult."""

    method: ClassVar[str] = "roots/list"
    capability: ClassVar[str] = "roots"
    answer: ClassVar[type[Wire]] = RootsResult


class WireRequest(Wire, frozen=True, kw_only=True):
    """A request within `inputRequests`."""

    method: str
    params: Raw = Raw(b"{}")


class InputRequiredResult(Result, frozen=True, kw_only=True):
    """The call cannot go on without the client's answers."""

    input_requests: dict[str, WireRequest] = {}
    request_state: str | UnsetType = UNSET
