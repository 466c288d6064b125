"""/model, /system: what answers, and by which rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragchat.ui.context import ChatContext


async def model(context: ChatContext, name: str) -> None:
    """Without a name: the model in use and the others there are."""
    app, screen = context.app, context.screen
    if name:
        await app.set_model(name)
        screen.note(f"The model is {app.model_name} now.")
    else:
        for known in await app.models():
            screen.show(f"{'*' if known == app.model_name else ' '} {known}")
    context.follow_session()


async def system(context: ChatContext, argument: str) -> None:
    """The system prompt of this chat; the file it comes from stays as it is."""
    app, screen = context.app, context.screen
    if not argument:
        screen.show(app.system_prompt.rstrip("\n"))
        return
    app.system_prompt = await _new_prompt(context, argument)
    if app.system_prompt == context.first_system_prompt:
        screen.note("The system prompt is the usual one again.")
    else:
        screen.note(
            "The system prompt is changed for this chat. /system shows it, /system reset takes it back."
        )


async def _new_prompt(context: ChatContext, argument: str) -> str:
    if argument == "reset":
        return context.first_system_prompt
    if argument == "edit":
        from ragchat.ui.editor import edit

        return await edit(context.app.system_prompt)
    return argument
