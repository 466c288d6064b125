"""The terminal: what a person types and sees. Answers are made in `turn`.

Start with `chat` (a terminal) or `piped` (no terminal): both build a `ChatContext` and pass what the user
sends to `messages.handle`.
"""
