"""The tasks extension: `tasks/get`, `tasks/update` and `tasks/cancel`. Source: SEP-2663."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Raw, UnsetType

from ragmcp.protocol.schema.base import ErrorObject, Params, Result
from ragmcp.protocol.schema.input import WireRequest

Status = Literal["working", "input_required", "completed", "cancelled", "failed"]


class TaskState(Result, frozen=True, kw_only=True):
    """A task with the fields of its status; `ttl_ms` counts from its creation."""

    task_id: str
    status: Status
    status_message: str | UnsetType = UNSET
    created_at: str
    last_updated_at: str
    ttl_ms: float | None
    poll_interval_ms: float | UnsetType = UNSET
    input_requests: dict[str, WireRequest] | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: ErrorObject | UnsetType = UNSET


class TaskParams(Params, frozen=True, kw_only=True):
    """Which task."""

    task_id: str


class UpdateTaskParams(TaskParams, frozen=True, kw_only=True):
    """Answers to the input requests of a task."""

    input_responses: dict[str, Raw]
