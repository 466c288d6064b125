"""The tasks extension: a tool call that goes on after its answer, and is asked about by its id.

A tool made with `background=True` calls `await call.background()`; what stands after that line is the task.
Source: SEP-2663, `io.modelcontextprotocol/tasks`.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec import UNSET, Raw, UnsetType

from ragmcp.concurrency import confined
from ragmcp.errors import ConnectionClosed, InvalidParams, NotEncodable, RemoteProtocolError
from ragmcp.protocol.connection import error_object
from ragmcp.protocol.eras import Era
from ragmcp.protocol.jsonrpc import ErrorObject, encode
from ragmcp.protocol.schema.base import TASKS_EXTENSION, EmptyResult, Params, ProgressParams, Result
from ragmcp.protocol.schema.input import InputRequest
from ragmcp.protocol.schema.subscriptions import TASK_CHANGED, Change
from ragmcp.protocol.schema.tasks import TERMINAL, Status, TaskParams, TaskState, UpdateTaskParams
from ragmcp.server.call import Call, Method, method
from ragmcp.server.input_required import decoded, on_the_wire

if TYPE_CHECKING:
    from ragmcp.server.server import Server

log = logging.getLogger(__name__)

# How long a task can be asked about, from its creation; one that still runs then stays until it ends.
TTL = timedelta(hours=1)
POLL_MS = 500
# Beyond this a call simply takes as long as it takes.
MOST_TASKS = 1000


class Task:
    """One call that goes on by itself. It is the call's channel and asker from then on."""

    def __init__(self, id: str, on_change: Callable[[Task], None]) -> None:
        self.id = id
        self.created_at = self._updated_at = datetime.now(UTC)
        self.closed = anyio.Event()
        self.scope = anyio.CancelScope()
        self._on_change = on_change
        self._status: Status = "working"
        self._message: str | UnsetType = UNSET
        self._result: Raw | UnsetType = UNSET
        self._error: ErrorObject | UnsetType = UNSET
        self._asked: dict[str, InputRequest] = {}
        self._answers: dict[str, Any] = {}
        self._used: set[str] = set()
        self._answered = anyio.Event()

    @property
    def over(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self._status in TERMINAL

    def state(self) -> TaskState:
        """What there is to tell about it."""
        return TaskState(
            task_id=self.id,
            status=self._status,
            status_message=self._message,
            created_at=_iso(self.created_at),
            last_updated_at=_iso(self._updated_at),
            ttl_ms=int(TTL.total_seconds() * 1000),
            poll_interval_ms=POLL_MS,
            input_requests=on_the_wire(self._asked) if self._asked else UNSET,
            result=self._result,
            error=self._error,
        )

    # The way back to the client

    async def notify(self, _: str, params: Any) -> None:
        """Progress becomes the status message; other notifications do not exist for tasks."""
        if isinstance(params, ProgressParams):
            of = f" of {params.total:g}" if params.total else ""
            self._go_on(params.message or f"{params.progress:g}{of}")

    async def request(self, method: str, *_: Any, **__: Any) -> Raw:
        """Nobody is there to be asked; `ask` waits until somebody is."""
        raise ConnectionClosed(method)

    async def ask(self, requests: Mapping[str, InputRequest]) -> dict[str, Any]:
        """Wait for the client's answers, which come through `tasks/update`."""
        keys = {name: self._fresh(name) for name in requests}
        self._asked |= {keys[name]: request for name, request in requests.items()}
        self._go_on()
        try:
            while self._asked.keys() & keys.values():
                await self._answered.wait()
        except anyio.get_cancelled_exc_class():
            self._withdraw(keys.values())
            raise
        return {name: self._answers.pop(key) for name, key in keys.items()}

    def _withdraw(self, keys: Collection[str]) -> None:
        """Who asked waits no longer, though the task may go on."""
        for key in keys:
            self._asked.pop(key, None)
            self._answers.pop(key, None)
        if not self.over:
            self._go_on()

    def _fresh(self, name: str) -> str:
        """A key is used once in a task's life."""
        key, count = name, 1
        while key in self._used:
            count += 1
            key = f"{name}-{count}"
        self._used.add(key)
        return key

    def answer(self, responses: Mapping[str, Raw]) -> None:
        """Take what was asked for; other keys are ignored. Raises InvalidParams for an unusable answer."""
        answers = {
            key: decoded(key, self._asked[key], answer)
            for key, answer in responses.items()
            if key in self._asked
        }
        for key in answers:
            del self._asked[key]
        self._answers |= answers
        if answers:
            self._go_on()
            self._answered.set()
            self._answered = anyio.Event()

    def _go_on(self, message: str | UnsetType = UNSET) -> None:
        self._turn("input_required" if self._asked else "working", message)

    # Its end

    def complete(self, result: Raw) -> None:
        """It has its result."""
        self._result = result
        self._end("completed")

    def fail(self, error: Exception) -> None:
        """It ended with a JSON-RPC error."""
        self._error = error_object(error, None)
        self._end("failed", self._error.message)

    def cancelled(self) -> None:
        """It was called off."""
        self._end("cancelled")

    def _end(self, status: Status, message: str | UnsetType = UNSET) -> None:
        self._asked.clear()
        self.closed.set()
        self._turn(status, message)

    def _turn(self, status: Status, message: str | UnsetType = UNSET) -> None:
        self._status = status
        self._message = message
        self._updated_at = datetime.now(UTC)
        self._on_change(self)


class Tasks:
    """The tasks of one server, which run in `group`."""

    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self._tasks: dict[str, Task] = {}

    def find(self, id: str) -> Task:
        """Raises InvalidParams."""
        self._forget_old()
        if id not in self._tasks:
            raise InvalidParams("$.taskId", f"there is no task {id!r}, or none any more")
        return self._tasks[id]

    def knows(self, id: str) -> bool:
        """Whether there is such a task."""
        return id in self._tasks

    async def run(self, call: Call, server: Server, work: Callable[[], Awaitable[Result]]) -> Result:
        """The result of `work`, or the task it has become when it called `call.background()`."""
        running = _Running(call, server, self)
        self._group.start_soon(running.run, work)
        try:
            await running.answered.wait()
        finally:
            # Who asked has gone away, and the work is no task yet: nobody will ever see its result.
            if not running.answered.is_set():
                running.scope.cancel()
        if running.result is None:
            raise running.failure
        return running.result

    def make(self, server: Server) -> Task | None:
        """A new task; None where there are too many."""
        self._forget_old()
        if len(self._tasks) >= MOST_TASKS:
            return None
        id = secrets.token_urlsafe(24)
        self._tasks[id] = Task(id, lambda task: server.announce(_changed(task.state())))
        return self._tasks[id]

    def _forget_old(self) -> None:
        limit = datetime.now(UTC) - TTL
        self._tasks = {
            id: task for id, task in self._tasks.items() if task.created_at > limit or not task.over
        }


class _Running:
    """A call whose work may become a task."""

    def __init__(self, call: Call, server: Server, tasks: Tasks) -> None:
        self.answered = anyio.Event()
        self.scope = anyio.CancelScope()
        self.result: Result | None = None
        self.failure: Exception = ConnectionClosed(call.method)
        self._call = call
        self._server = server
        self._tasks = tasks
        self._task: Task | None = None
        call.go_to_background = self._go_to_background

    async def _go_to_background(self) -> None:
        if self._task is not None or (task := self._tasks.make(self._server)) is None:
            return
        task.scope = self.scope
        self._task = self._call.channel = task
        self._call.asker = task.ask
        self.result = msgspec.structs.replace(task.state(), result_type="task")
        self.answered.set()

    async def run(self, work: Callable[[], Awaitable[Result]]) -> None:
        try:
            with self.scope:
                try:
                    result = await confined(work())
                except Exception as error:
                    self._fail(error)
                else:
                    self._succeed(result)
        finally:
            if self._task is None:
                self.answered.set()
            elif not self._task.over:
                self._task.cancelled()

    def _succeed(self, result: Result) -> None:
        if self._task is None:
            self.result = result
            self.answered.set()
            return
        try:
            encoded = encode("The result", msgspec.structs.replace(result, result_type="complete"))
        except NotEncodable as error:
            self._task.fail(error)
        else:
            self._task.complete(Raw(encoded))

    def _fail(self, error: Exception) -> None:
        if self._task is None:
            self.failure = error
            self.answered.set()
        else:
            if not isinstance(error, RemoteProtocolError):
                log.error("A task failed", exc_info=error)
            self._task.fail(error)


def _changed(state: TaskState) -> Change:
    return Change(TASK_CHANGED, state.task_id, msgspec.json.decode(msgspec.json.encode(state)))


def _iso(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def _get(server: Server, call: Call) -> Result:
    assert isinstance(call.params, TaskParams)
    call.require_extension(TASKS_EXTENSION)
    return server.tasks.find(call.params.task_id).state()


async def _update(server: Server, call: Call) -> Result:
    assert isinstance(call.params, UpdateTaskParams)
    call.require_extension(TASKS_EXTENSION)
    server.tasks.find(call.params.task_id).answer(call.params.input_responses)
    return EmptyResult()


async def _cancel(server: Server, call: Call) -> Result:
    assert isinstance(call.params, TaskParams)
    call.require_extension(TASKS_EXTENSION)
    server.tasks.find(call.params.task_id).scope.cancel()
    return EmptyResult()


def _tasks(params: type[Params], answer: Any) -> Method:
    return method(params, answer, Era.MODERN, capability="extensions")


METHODS: dict[str, Method] = {
    "tasks/get": _tasks(TaskParams, _get),
    "tasks/update": _tasks(UpdateTaskParams, _update),
    "tasks/cancel": _tasks(TaskParams, _cancel),
}
