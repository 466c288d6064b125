"""Keys that differ from an ordinary line editor's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.filters import is_searching
from prompt_toolkit.key_binding import KeyBindings

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyPressEvent

    from ragchat.ui.prompt.toolbar import Status

# For /help: what a person may press, and what happens.
KEY_HELP = (
    ("Enter", "send"),
    ("Esc Enter, Alt-Enter", "new line; pasted text keeps its lines"),
    ("Tab", "complete commands, paths, documents, models, sessions"),
    ("Up, Down, Ctrl-R", "earlier messages, search in them"),
    ("Ctrl-C", "stop the answer; at the prompt, clear the line"),
    ("Ctrl-X Ctrl-E", "write the message in $EDITOR"),
    ("Ctrl-L", "clear the screen"),
    ("Ctrl-D", "leave"),
)

LEAVING_HINT = "Ctrl-D leaves the chat"


def make_keys(status: Status) -> KeyBindings:
    keys = KeyBindings()

    # A search in the history has keys of its own: Enter takes what was found, Ctrl-C gives up.
    @keys.add("enter", filter=~is_searching)
    def _(event: KeyPressEvent) -> None:
        """Send; in the open menu, only take the choice."""
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None
        elif buffer.text.strip():
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c", filter=~is_searching)
    @keys.add("<sigint>")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        empty = not buffer.text
        buffer.reset()
        if empty:
            status.hint = LEAVING_HINT

    return keys
