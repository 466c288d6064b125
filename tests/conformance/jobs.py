"""Tools that go on as tasks, for the referee's tasks-* scenarios."""

from __future__ import annotations

import anyio

from ragmcp.errors import InvalidRequest, ToolError
from ragmcp.protocol.schema.base import TASKS_EXTENSION
from ragmcp.server.call import Call
from ragmcp.server.tools import tool
from tests.conformance.questions import form


@tool(read_only=True)
async def greet(call: Call, name: str) -> str:
    """Is done at once, and never a task."""
    return f"Hello, {name}!"


@tool(read_only=True, background=True)
async def slow_compute(call: Call, seconds: float = 1, label: str = "") -> str:
    """Takes as long as it is told."""
    if seconds:
        await call.background()
        await anyio.sleep(seconds)  # sleep: the suite asks for it
    return f"{label}: done after {seconds:g} s"


@tool(read_only=True, background=True)
async def failing_job(call: Call) -> str:
    """Is a task or nothing, and fails in the way tools fail."""
    call.require_extension(TASKS_EXTENSION)
    await call.background()
    raise ToolError("TEST_ERROR", "This job always fails")


@tool(read_only=True, background=True)
async def protocol_error_job(call: Call) -> str:
    """Fails in a way that is no tool's result."""
    await call.background()
    raise InvalidRequest("this job cannot be done")


@tool(background=True)
async def confirm_delete(call: Call, filename: str) -> str:
    """Asks while it is a task."""
    await call.background()
    answers = await call.ask(confirm=form(f"Delete {filename}?", confirm="boolean"))
    return f"{filename} was {'deleted' if answers['confirm'].content.get('confirm') else 'kept'}"


@tool(background=True)
async def multi_input(call: Call) -> str:
    """Asks two things at once while it is a task."""
    await call.background()
    answers = await call.ask(
        name=form("What is your name?", name="string"), confirm=form("Are you sure?", confirm="boolean")
    )
    return f"{answers['name'].content.get('name')}: {answers['confirm'].content.get('confirm')}"


@tool(background=True)
async def test_tool_with_task(call: Call) -> str:
    """Asks first, and is a task then."""
    answers = await call.ask(user_name=form("What is your name?", name="string"))
    call.require_extension(TASKS_EXTENSION)
    await call.background()
    return f"Hello, {answers['user_name'].content.get('name')}!"


TOOLS = [
    greet,
    slow_compute,
    failing_job,
    protocol_error_job,
    confirm_delete,
    multi_input,
    test_tool_with_task,
]
