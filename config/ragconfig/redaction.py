"""Redacts the keys and tokens that this process has read, in logs and on the screen.

Servers often repeat a wrong key in their error messages.
"""

from __future__ import annotations

import logging
import re

from ragcommon.files.uris import HIDDEN, SECRET_VALUE, USERINFO

# Shorter values are placeholders for a key ("none", "ollama"), and occur in other text.
MIN_SECRET_CHARACTERS = 7

# A user name and password in an address in a text.
_PASSWORD = re.compile(r"(?<=://)[^/?#\s@:]*:[^/?#\s\"',<>]*(?=@)")

_secrets: set[str] = set()


def add_secret(secret: str) -> None:
    """Redact `secret` from now on."""
    if len(secret) >= MIN_SECRET_CHARACTERS:
        _secrets.add(secret)


def add_secrets_of(url: str) -> None:
    """Redact the user and password of an address, its query, and each secret in that."""
    add_secret(url.partition("?")[2])
    for _, value in SECRET_VALUE.findall(url):
        add_secret(value)
    if user := USERINFO.search(url):
        add_secret(user[0])


def redacted(text: str) -> str:
    """The text with every secret replaced, and those in addresses, however short."""
    for secret in sorted(_secrets, key=len, reverse=True):  # a secret may contain another
        text = text.replace(secret, HIDDEN)
    return SECRET_VALUE.sub(rf"\1{HIDDEN}", _PASSWORD.sub(HIDDEN, text))


class RedactingFormatter(logging.Formatter):
    """Redacts log lines with their tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))
