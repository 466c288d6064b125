"""The tasks extension: a tool call that continues after its answer, and that the client polls by its id.

A tool made with `background=True` calls `await call.background()`; the code after that line is the task.
Source: SEP-2663, `io.modelcontextprotocol/tasks`.
"""

from __future__ import annotations

import itertools
import logging
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec import UNSET, Raw, Struct, UnsetType

from ragmcp.concurrency import Pulse, contain_cancellation
from ragmcp.errors import ConnectionClosed, InvalidParams, NotEncodable, RemoteProtocolError
from ragmcp.protocol.eras import Era
from ragmcp.protocol.jsonrpc import encode, error_object
from ragmcp.protocol.schema.base import TASKS_EXTENSION, EmptyResult, ErrorObject, ProgressParams, Result
from ragmcp.protocol.schema.input import InputRequest
from ragmcp.protocol.schema.subscriptions import TASK_CHANGED, Change
from ragmcp.protocol.schema.tasks import Status, TaskParams, TaskState, UpdateTaskParams
from ragmcp.server.call import Call, Methods, Work, method
from ragmcp.server.input_required import decode_response, wire_requests

log = logging.getLogger(__name__)

# How long a task is kept, from its creation; one that still runs then is kept until it ends.
TTL = timedelta(hours=1)
POLL_MS = 500
# With this many tasks, further calls do not become tasks.
MAX_TASKS = 1000


class Task:
    """A call of a background tool. Once it is a task, it is also the channel and the asker of the call."""

    def __init__(self, call: Call, tasks: Tasks) -> None:
        now = _iso(datetime.now(UTC))
        self.state = TaskState(
            task_id=secrets.token_urlsafe(24),
            status="working",
            created_at=now,
            last_updated_at=now,
            ttl_ms=int(TTL.total_seconds() * 1000),
            poll_interval_ms=POLL_MS,
        )
        self.closed = anyio.Event()
        self.scope = anyio.CancelScope()
        self.answered = anyio.Event()
        self.answer: Result | Exception = ConnectionClosed(call.method)
        """The answer to the call: its result, or the task."""
        self._call = call
        self._tasks = tasks
        self._requests: dict[str, InputRequest] = {}
        self._answers: dict[str, Any] = {}
        self._numbers = itertools.count(1)
        self._input = Pulse()
        call.go_to_background = self._go_to_background

    # Its work

    async def run(self, work: Work) -> None:
        """Run the work until it ends or is cancelled."""
        outcome: Result | Exception | None = None
        try:
            with self.scope:
                try:
                    outcome = await contain_cancellation(work())
                except Exception as error:
                    outcome = error
        finally:
            if self.answered.is_set():
                self._end(outcome)
            else:
                self._answer_call(outcome or self.answer)

    def cancel(self) -> None:
        """End the work, as the client asks."""
        self._call.is_cancelled = True
        self.scope.cancel()

    async def _go_to_background(self) -> None:
        if self.answered.is_set() or not self._tasks.register(self):
            return
        self._call.channel = self
        self._call.asker = self.ask
        self._answer_call(msgspec.structs.replace(self.state, result_type="task"))

    def _answer_call(self, answer: Result | Exception) -> None:
        self.answer = answer
        self.answered.set()

    def _end(self, outcome: Result | Exception | None) -> None:
        self._requests.clear()
        self.closed.set()
        if outcome is None:
            self._update("cancelled")
        elif isinstance(outcome, Exception):
            self._fail(outcome)
        else:
            try:
                result = encode("The result", msgspec.structs.replace(outcome, result_type="complete"))
                self._update("completed", result=Raw(result))
            except NotEncodable as error:
                self._fail(error)

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, RemoteProtocolError | NotEncodable):
            log.error("A task failed", exc_info=error)
        failure = error_object(error, None)
        self._update("failed", failure.message, error=failure)

    def _update(
        self, status: Status | None = None, message: str | UnsetType = UNSET, **ending: Raw | ErrorObject
    ) -> None:
        self.state = msgspec.structs.replace(
            self.state,
            status=status or ("input_required" if self._requests else "working"),
            status_message=message,
            last_updated_at=_iso(datetime.now(UTC)),
            input_requests=wire_requests(self._requests) or UNSET,
            **ending,
        )
        params = msgspec.json.decode(msgspec.json.encode(self.state))
        self._tasks.publish(Change(TASK_CHANGED, self.state.task_id, params))

    # The way back to the client

    async def notify(self, _: str, params: Any) -> None:
        """Make progress the status message; tasks have no other notifications."""
        if isinstance(params, ProgressParams):
            of = f" of {params.total:g}" if params.total else ""
            self._update(message=params.message or f"{params.progress:g}{of}")

    async def request(self, method: str, *_: Any, **__: Any) -> Raw:
        """Raises: no client is connected to a task. `ask` waits until one polls it."""
        raise ConnectionClosed(method)

    async def ask(self, requests: Mapping[str, InputRequest]) -> dict[str, Any]:
        """Wait for the client's answers, which come through `tasks/update`."""
        # A task uses no key twice.
        keys = {name: f"{name}-{next(self._numbers)}" for name in requests}
        self._requests |= {keys[name]: request for name, request in requests.items()}
        self._update()
        try:
            while self._requests.keys() & keys.values():
                await self._input.wait()
        except anyio.get_cancelled_exc_class():
            # The handler no longer waits; the task may continue.
            for key in keys.values():
                self._requests.pop(key, None)
            self._update()
            raise
        return {name: self._answers.pop(key) for name, key in keys.items()}

    def take_input(self, responses: Mapping[str, Raw]) -> None:
        """Take the answers to its requests; ignores other keys. Raises InvalidParams for unusable answers."""
        answers = {
            key: decode_response(key, self._requests[key], response)
            for key, response in responses.items()
            if key in self._requests
        }
        for key in answers:
            del self._requests[key]
        self._answers |= answers
        if answers:
            self._update()
            self._input.set()


class Tasks(Struct):
    """The tasks of one server, which run in a group; their changes are published."""

    _group: TaskGroup
    publish: Callable[[Change], None]
    _tasks: dict[str, Task] = {}

    async def run(self, call: Call, work: Work) -> Result:
        """The result of `work`, or the task that it became when it called `call.background()`."""
        task = Task(call, self)
        self._group.start_soon(task.run, work)
        try:
            await task.answered.wait()
        finally:
            # The client has cancelled a call that is not a task yet: stop its work.
            if not task.answered.is_set():
                task.scope.cancel()
        if isinstance(task.answer, Exception):
            raise task.answer
        return task.answer

    def register(self, task: Task) -> bool:
        """Make a task known to clients; False if there are too many."""
        self._forget_old()
        if len(self._tasks) >= MAX_TASKS:
            return False
        self._tasks[task.state.task_id] = task
        return True

    def _forget_old(self) -> None:
        oldest = _iso(datetime.now(UTC) - TTL)
        for id, task in [*self._tasks.items()]:
            if task.closed.is_set() and task.state.created_at <= oldest:
                del self._tasks[id]

    def knows(self, id: str) -> bool:
        """Whether there is such a task."""
        return id in self._tasks

    def methods(self) -> Methods:
        """`tasks/get`, `tasks/update` and `tasks/cancel`."""
        return {
            "tasks/get": method(TaskParams, self._get, Era.MODERN),
            "tasks/update": method(UpdateTaskParams, self._update, Era.MODERN),
            "tasks/cancel": method(TaskParams, self._cancel, Era.MODERN),
        }

    async def _get(self, call: Call, params: TaskParams) -> Result:
        return self._find(call, params).state

    async def _update(self, call: Call, params: UpdateTaskParams) -> Result:
        self._find(call, params).take_input(params.input_responses)
        return EmptyResult()

    async def _cancel(self, call: Call, params: TaskParams) -> Result:
        self._find(call, params).cancel()
        return EmptyResult()

    def _find(self, call: Call, params: TaskParams) -> Task:
        call.require_extension(TASKS_EXTENSION)
        self._forget_old()
        if params.task_id not in self._tasks:
            raise InvalidParams("$.taskId", f"there is no task {params.task_id!r}, or it has expired")
        return self._tasks[params.task_id]


def _iso(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
