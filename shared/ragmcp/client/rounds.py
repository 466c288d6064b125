"""Calls that end after several rounds: the server needs input first, or runs the call as a task.

The call is repeated with the input; a task is polled until it ends.
Source: basic/patterns/mrtr, SEP-2663.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TypeVar

import anyio
import msgspec
from msgspec import UNSET, Raw

from ragmcp.client.core import Core
from ragmcp.errors import RagMcpError, RemoteProtocolError, TaskCancelled, UnreadableAnswer
from ragmcp.protocol.results import TASK, complete, decode_answer, kind_of
from ragmcp.protocol.schema.base import EmptyResult, Params, Result, RetryableParams
from ragmcp.protocol.schema.input import InputRequiredResult, WireRequest
from ragmcp.protocol.schema.tasks import TaskParams, TaskState, UpdateTaskParams

R = TypeVar("R", bound=Result)

# A server that wants more input than this will not stop by itself.
MAX_ROUNDS = 20

# The bounds of the pause between two polls of a task, whatever the server asks for.
LEAST_SECONDS = 0.05
MOST_SECONDS = 30.0
# The pause if the server names none: about as often as a person would look.
USUAL_SECONDS = 0.5
CANCEL_SECONDS = 1.0


async def finish(
    core: Core, method: str, params: Params, type: type[R], timeout: float | None, answer: Raw
) -> R:
    """The result of a call that began with `answer`. Raises UnreadableAnswer, and as `_follow_task`."""
    for _ in range(MAX_ROUNDS):
        if kind_of(answer) == TASK:
            if not core.handlers.tasks:
                raise UnreadableAnswer(method, "it is a task, which this client does not declare")
            answer = await _follow_task(core, method, answer, timeout)
        elif isinstance(params, RetryableParams):
            needed = decode_answer(method, answer, InputRequiredResult)
            responses = await _responses(core, method, needed.input_requests)
            params = msgspec.structs.replace(
                params, input_responses=responses, request_state=needed.request_state
            )
            answer = await core.channel.request(method, params, timeout)
        else:
            raise UnreadableAnswer(method, "it wants input, which this method does not allow")
        if (result := complete(method, answer, type)) is not None:
            return result
    raise UnreadableAnswer(method, f"it still wants input after {MAX_ROUNDS} rounds")


async def _responses(core: Core, method: str, requests: Mapping[str, WireRequest]) -> dict[str, Raw]:
    """The answers to a server's requests, by its keys. Raises UnreadableAnswer for a forbidden request."""
    responses: dict[str, Raw] = {}
    # In sequence: a person answers one form at a time.
    for key, request in requests.items():
        try:
            response = await core.handlers.answer(request.method, request.params)
        except RemoteProtocolError as error:
            raise UnreadableAnswer(method, f"its input request is not allowed: {error}") from None
        responses[key] = Raw(msgspec.json.encode(response))
    return responses


async def _follow_task(core: Core, method: str, answer: Raw, timeout: float | None) -> Raw:
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
                    await _update(core, method, task, answered, timeout)
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


async def _update(
    core: Core, method: str, task: TaskState, answered: set[str], timeout: float | None
) -> None:
    """Answer the requests not answered yet: the server lists a request until the task continues."""
    asked = {key: request for key, request in (task.input_requests or {}).items() if key not in answered}
    if asked:
        responses = await _responses(core, method, asked)
        answered |= asked.keys()
        params = UpdateTaskParams(meta=core.meta(), task_id=task.task_id, input_responses=responses)
        await core.request("tasks/update", params, EmptyResult, timeout)
