"""The client's half of tasks: a call that goes on at the server is asked about until it has ended.

Source: SEP-2663.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
import msgspec
from msgspec import UNSET, Raw

from ragmcp.client.rounds import answers
from ragmcp.errors import RagMcpError, TaskCancelled, UnreadableAnswer
from ragmcp.protocol.decoding import DECODE_ERRORS
from ragmcp.protocol.schema.base import EmptyResult
from ragmcp.protocol.schema.tasks import TaskParams, TaskState, UpdateTaskParams

if TYPE_CHECKING:
    from ragmcp.client.client import Client

# What a server wants us to pause between two questions is kept to within these; one of hours helps nobody.
LEAST_SECONDS = 0.05
MOST_SECONDS = 30.0
# Where a server names no pause: as often as a person would look.
USUAL_SECONDS = 0.5
CANCEL_SECONDS = 1.0


async def followed(client: Client, method: str, answer: Raw, timeout: float | None) -> Raw:
    """The result of the task that `answer` speaks of. Cancelling the wait cancels the task.

    `timeout` in seconds is for each question about it. Raises WireError where the task failed, TaskCancelled.
    """
    try:
        task = msgspec.json.decode(answer, type=TaskState)
    except DECODE_ERRORS as error:
        raise UnreadableAnswer(method, str(error)) from None
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
                    await _give_input(client, method, task, answered, timeout)
            await anyio.sleep(_pause(task))
            params = TaskParams(meta=client.meta(), task_id=task.task_id)
            task = await client.request("tasks/get", params, TaskState, timeout)
    except BaseException:
        if task.ended:
            raise
        # Nobody follows it any more. Whatever becomes of this, the wait ended as it did.
        with anyio.move_on_after(CANCEL_SECONDS, shield=True), suppress(RagMcpError):
            params = TaskParams(meta=client.meta(), task_id=task.task_id)
            await client.request("tasks/cancel", params, EmptyResult, timeout=None)
        raise


def _pause(task: TaskState) -> float:
    if task.poll_interval_ms is UNSET:
        return USUAL_SECONDS
    return min(max(task.poll_interval_ms / 1000, LEAST_SECONDS), MOST_SECONDS)


async def _give_input(
    client: Client, method: str, task: TaskState, answered: set[str], timeout: float | None
) -> None:
    """Answer what was not answered before: a key is asked once, but shown until the task goes on."""
    asked = {key: request for key, request in (task.input_requests or {}).items() if key not in answered}
    if asked:
        given = await answers(client.handlers, method, asked)
        answered |= asked.keys()
        params = UpdateTaskParams(meta=client.meta(), task_id=task.task_id, input_responses=given)
        await client.request("tasks/update", params, EmptyResult, timeout)
