"""The memory: takes text, embeds it, stores it, finds it again. Never talks to a chat model."""

__version__ = "0.1.0"
