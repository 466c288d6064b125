"""What this process knows and must not tell: no key or token gets into a log or onto a screen.

Servers like to repeat a wrong key in an answer.
"""

from __future__ import annotations

import logging

# What is shorter is a word that stands in for a secret ("none", "ollama"), and would blot out others like it.
LEAST_CHARACTERS = 7
HIDDEN = "…"

_secrets: set[str] = set()


def keep(secret: str) -> None:
    """From now on, do not tell it."""
    if len(secret) >= LEAST_CHARACTERS:
        _secrets.add(secret)


def discreet(text: str) -> str:
    """The text without the secrets in it."""
    for secret in sorted(_secrets, key=len, reverse=True):  # one may hold another
        text = text.replace(secret, HIDDEN)
    return text


class DiscreetFormatter(logging.Formatter):
    """Log lines without secrets, their tracebacks too."""

    def format(self, record: logging.LogRecord) -> str:
        return discreet(super().format(record))
