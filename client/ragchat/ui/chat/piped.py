"""The chat without a terminal: one question a line, one answer each. No prompt, no colours.

Slash commands work unless they need a terminal. A question that fails does not end the chat.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

from ragchat.errors import StdinUnusable
from ragchat.sanitize import one_line
from ragchat.ui.chat.background import OpenConversation
from ragchat.ui.chat.messages import handle
from ragchat.ui.context import ChatContext
from ragchat.ui.prompt.toolbar import Status
from ragchat.ui.render.screen import Screen
from ragcommon.concurrency import in_daemon_thread
from ragcommon.errors import os_reason

_READ_BYTES = 1 << 16
MAX_LINE = 1_000_000  # characters; more than any model reads at once
MAX_SHOWN = 200  # characters of a line that failed


async def run(open_conversation: OpenConversation) -> int:
    """Answer until stdin ends. Returns 1 if a line failed, else 0.

    Raises StdinUnusable, and what entering `open_conversation` raises.
    """
    async with open_conversation() as conversation:
        context = ChatContext(conversation, Screen.open(), Status())
        number = 0
        async with aclosing(read_lines(sys.stdin.fileno())) as lines:
            async for line in lines:
                number, failures = number + 1, context.failures
                if line.strip():
                    await handle(context, line)
                    if context.failures > failures:
                        context.screen.note(f"This was line {number:,}: {one_line(line, MAX_SHOWN)}")
                    # A blank line ends each answer, so that a reader can tell them apart.
                    context.screen.show("")
                if context.leaving:
                    break
    return 1 if context.failures else 0


async def read_lines(fd: int) -> AsyncGenerator[str, None]:
    """The lines of `fd` without their ends, decoded as UTF-8; invalid bytes become U+FFFD.

    A thread reads, as asyncio's pipe reader takes no regular files and Windows has no other way. It is a
    daemon and holds no lock of a file object: a pipe that never ends must not delay Ctrl-C or the exit.
    Raises StdinUnusable if `fd` cannot be read, or for a line of more than MAX_LINE characters.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    rest = ""
    while chunk := await _read(fd):
        *lines, rest = (rest + decoder.decode(chunk)).split("\n")
        for line in lines:
            yield line.removesuffix("\r")
        if len(rest) > MAX_LINE:
            raise StdinUnusable(f"has a line of more than {MAX_LINE:,} characters")
    if rest:
        yield rest


async def _read(fd: int) -> bytes:
    try:
        return await in_daemon_thread(partial(os.read, fd, _READ_BYTES))
    except OSError as error:
        raise StdinUnusable(f"cannot be read: {os_reason(error)}") from error
