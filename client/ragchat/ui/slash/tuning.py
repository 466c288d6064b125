"""/model, /system, /role: which model answers, and with which system prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragchat.errors import CommandNotPossible
from ragconfig.prompt_files import ROLES, role_files

if TYPE_CHECKING:
    from ragchat.ui.context import ChatContext


async def model(context: ChatContext, name: str) -> None:
    """Change the model; without a name, list the models and mark the one in use."""
    conversation, screen = context.conversation, context.screen
    if name:
        await conversation.model.select(name)
        screen.note(f"The model is now {conversation.model.name}.")
    else:
        for known in await conversation.model.choices():
            screen.show(f"{'*' if known == conversation.model.name else ' '} {known}")
    context.update_session_status()


async def system(context: ChatContext, argument: str) -> None:
    """Show or change the system prompt of this chat; the file it came from does not change."""
    conversation, screen = context.conversation, context.screen
    if not argument:
        screen.show(conversation.system_prompt.rstrip("\n"))
        return
    previous, conversation.system_prompt = conversation.system_prompt, await _new_prompt(context, argument)
    if conversation.system_prompt == previous:
        screen.note("The system prompt is unchanged. /system edit opens $VISUAL or $EDITOR.")
    elif conversation.system_prompt == context.first_system_prompt:
        screen.note("The system prompt is reset.")
    else:
        screen.note("The system prompt is changed for this chat. /system reset restores it.")


async def role(context: ChatContext, name: str) -> None:
    """Answer in a role from now on; without a name, list the roles and mark the one in use."""
    conversation, screen = context.conversation, context.screen
    if name:
        conversation.use_role("" if name == "reset" else name)
        screen.note(f"The role is now {conversation.role}." if conversation.role else "No role is in use.")
    else:
        for known in role_files(conversation.settings.home.config / ROLES):
            screen.show(f"{'*' if known == conversation.role else ' '} {known}")
        screen.note("/role NAME answers in that role; /role reset in none.")


async def _new_prompt(context: ChatContext, argument: str) -> str:
    if argument == "reset":
        return context.first_system_prompt
    if argument == "edit":
        if not context.interactive:
            raise CommandNotPossible("system edit", "it needs a terminal")
        return await _edit(context.conversation.system_prompt)
    return argument


async def _edit(text: str) -> str:
    """What the user makes of `text` in $VISUAL or $EDITOR; unchanged if no editor can be started."""
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.document import Document

    from ragchat.ui.interrupt import ignore_interrupts

    buffer = Buffer(document=Document(text), tempfile_suffix=".md")
    with ignore_interrupts():
        await buffer.open_in_editor()
    return buffer.text
