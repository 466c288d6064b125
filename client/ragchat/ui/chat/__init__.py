"""The chat itself: it reads what the user sends, and handles it.

Start with `interactive` (a terminal) or `piped` (no terminal): both build a `ChatContext` and pass what the
user sends to `messages.handle`. `background` opens everything while the user types. Imports the rest of `ui`;
only `ragchat.commands` imports this folder.
"""
