"""What the user sends: a slash command, a question, or a reply to the offer of the README."""

from __future__ import annotations

import logging
from functools import partial

from ragchat.conversation import Attached
from ragchat.errors import RagChatError
from ragchat.llm.types import OFFLINE
from ragchat.ui.attachments import attachments
from ragchat.ui.context import YES, ChatContext
from ragchat.ui.slash import table
from ragchat.ui.welcome import load_readme

log = logging.getLogger("ragchat")

NO = frozenset({"n", "no"})


async def handle(context: ChatContext, text: str) -> None:
    """Handle one message. A failure is shown and counted, not raised."""
    try:
        await _dispatch(context, text.strip())
    except BrokenPipeError:
        raise
    except Exception as error:
        context.failures += 1
        log.error("%r failed", text.split(maxsplit=1)[0], exc_info=error)
        if isinstance(error, RagChatError) and error.chat_hint:
            error.hint = error.chat_hint.format(error=error)
        context.screen.error(error)


async def _dispatch(context: ChatContext, text: str) -> None:
    last = context.conversation.last_turn
    # A model's question may be answered with yes or no, too.
    offered = not context.status.documents and (last is None or last.answer.model == OFFLINE)
    context.readme_offered = context.readme_offered and offered
    if context.readme_offered and text.lower() in YES:
        await load_readme(context)
    elif context.readme_offered and text.lower() in NO:
        context.readme_offered = False
        context.screen.note("Load your own documents with /inject PATH.")
    elif text.startswith("/") and not text.startswith("//"):
        await table.run(context, text)
    else:
        question = text.removeprefix("/")
        # Only what the user typed: the lines of a pipe may be written by others.
        documents = await attachments(context, question) if context.interactive and "@" in question else []
        ask, attached = context.conversation.ask, Attached.of(documents)
        await context.answer(partial(ask, question, approve=context.approve, attached=attached))
