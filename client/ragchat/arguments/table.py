"""All commands, in the order of `ragchat --help`."""

from __future__ import annotations

from ragchat.arguments import mcp, memory, notebooks, program, questions, sessions, sources

GROUPS = {
    "source": "folders that memory stays in step with",
    "memory": "list, show, remove, check and restore what is stored",
    "session": "list, show, search, remove and inject past conversations",
    "notebook": "parts of memory with conversations, instructions and a model of their own",
    "mcp": "use other MCP servers here, and this memory in other programs",
    "config": "show and create settings",
}


COMMANDS = (
    questions.ASK,
    questions.RESEARCH,
    *sources.COMMANDS,
    questions.QUERY,
    questions.RUN,
    *memory.COMMANDS,
    *sessions.COMMANDS,
    *notebooks.COMMANDS,
    *mcp.COMMANDS,
    *program.COMMANDS,
)
