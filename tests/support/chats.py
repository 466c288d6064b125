"""A chat in a real terminal, with a scripted model and MCP servers. POSIX."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.openai_server import OpenAIServer
from tests.support.program import Program, program_in
from tests.support.servers import write
from tests.support.terminal import Terminal

CTRL_C, CTRL_D, ESCAPE = "\x03", "\x04", "\x1b"


def with_model(folder: Path, model: OpenAIServer, servers: dict[str, dict[str, Any]]) -> Program:
    """`ragchat` with everything of its own in `folder`."""
    program = program_in(
        folder, OPENAI_BASE_URL=model.base_url, OPENAI_API_KEY="k", RAGCHAT_MODEL_NAME="test-model"
    )
    write(program.home, **servers)
    return program


def started(program: Program) -> Terminal:
    """The chat; nothing is waited for."""
    variables = {**program.variables, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    return Terminal([sys.executable, "-m", "ragchat"], variables, program.folder, 200)


@contextmanager
def chatting(program: Program, *ready: str) -> Iterator[Terminal]:
    """The chat, once the servers named are ready."""
    with started(program) as chat:
        chat.wait_for("Your memory is empty")
        if ready:
            chat.enter("/mcp")
        for server in ready:
            chat.wait_for(f"^{server}: ready")
        yield chat
