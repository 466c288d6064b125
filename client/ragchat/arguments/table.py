"""All commands, in the order of `ragchat --help`."""

from __future__ import annotations

from ragchat.arguments import evaluation, mcp, memory, notebooks, program, questions, sessions, sources

GROUPS = {
    "source": "folders and web pages that memory stays in step with",
    "prompt": "list and show prompts and roles",
    "memory": "list, show, remove, check and restore what is stored",
    "session": "list, show, search, remove and inject past conversations",
    "case": "list and remove the questions that `ragchat eval` asks",
    "notebook": "parts of memory with conversations, instructions and a model of their own",
    "mcp": "use other MCP servers here, and this memory in other programs",
    "model": "set up the language model",
    "embedder": "list embedders, and change to another one",
    "config": "show and create settings",
}


COMMANDS = (
    questions.ASK,
    questions.RESEARCH,
    *sources.COMMANDS,
    questions.QUERY,
    questions.RUN,
    *evaluation.COMMANDS,
    *questions.PROMPTS,
    *memory.COMMANDS,
    *sessions.COMMANDS,
    *notebooks.COMMANDS,
    *mcp.COMMANDS,
    *program.COMMANDS,
)
