"""The host: terminal, conversation, model calls. It owns the memory server's process and speaks MCP to it."""

__version__ = "0.1.0"
# How we name ourselves to servers; memory's journal shows it.
CLIENT_NAME = "ragchat"
