"""A call that the server runs as a task: the client polls it until it ends. Source: SEP-2663."""

from __future__ import annotations

from contextlib import suppress

import anyio
from msgspec import UNSET, Raw

from ragmcp.client.core import Core
from ragmcp.client.input_required import input_responses
from ragmcp.errors import RagMcpError, TaskCancelled, UnreadableAnswer
from ragmcp.protocol.results import decode_answer
from ragmcp.protocol.schema.base import EmptyResult
from ragmcp.protocol.schema.tasks import TaskParams, TaskState, UpdateTaskParams

# The bounds of the pause between two polls, whatever the server asks for.
LEAST_SECONDS = 0.05
MOST_SECONDS = 30.0
# The pause if the server names none: about as often as a person would look.
USUAL_SECONDS = 0.5
CANCEL_SECONDS = 1.0


async def follow_task(core: Core, method: str, answer: Raw, timeout: float | None) -> Raw:
    """The result of the task in `answer`. Cancelling the wait cancels the task.

    `timeout` (seconds) is for each poll. Raises WireError if the task failed, and TaskCancelled.
    """
    task = decode_answer(method, answer, TaskState)
    answered: set[str] = set()
    try:
        while True:
            match task.status:
                case "completed" if task.result is not UNSET:
                    return task.result
                case "failed" if task.error is not UNSET:
                    raise task.error.as_error()
                case "cancelled":
                    raise TaskCancelled(method, task.status_message or "")
                case "completed" | "failed":
                    raise UnreadableAnswer(method, f"its task is {task.status} without saying how")
                case "input_required":
                    await _give_input(core, method, task, answered, timeout)
            await anyio.sleep(_pause(task))
            params = TaskParams(meta=core.meta(), task_id=task.task_id)
            task = await core.request("tasks/get", params, TaskState, timeout)
    except BaseException:
        if task.ended:
            raise
        # Its result is no longer wanted. A failure to cancel it must not replace the first error.
        with anyio.move_on_after(CANCEL_SECONDS, shield=True), suppress(RagMcpError):
            params = TaskParams(meta=core.meta(), task_id=task.task_id)
            await core.request("tasks/cancel", params, EmptyResult, timeout=None)
        raise


def _pause(task: TaskState) -> float:
    if task.poll_interval_ms is UNSET:
        return USUAL_SECONDS
    return min(max(task.poll_interval_ms / 1000, LEAST_SECONDS), MOST_SECONDS)


async def _give_input(
    core: Core, method: str, task: TaskState, answered: set[str], timeout: float | None
) -> None:
    """Answer the requests not answered yet: the server lists a request until the task continues."""
    asked = {key: request for key, request in (task.input_requests or {}).items() if key not in answered}
    if asked:
        responses = await input_responses(core.handlers, method, asked)
        answered |= asked.keys()
        params = UpdateTaskParams(meta=core.meta(), task_id=task.task_id, input_responses=responses)
        await core.request("tasks/update", params, EmptyResult, timeout)
