"""Key bindings that differ from those of prompt_toolkit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from prompt_toolkit.filters import is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

if TYPE_CHECKING:
    from ragchat.ui.prompt.toolbar import Status

# Shown by /help.
KEY_HELP = (
    ("Enter", "send"),
    ("Esc Enter, Alt-Enter", "new line; pasted text keeps its lines"),
    ("Tab", "complete commands, paths, documents, models, sessions, @files and @server:resources"),
    ("Up, Down, Ctrl-R", "earlier messages, search in them"),
    ("Ctrl-C", "stop the answer; at the prompt, clear the line"),
    ("Typing ahead", "keys during an answer wait for the next prompt, also Enter; Ctrl-C drops them"),
    ("Ctrl-X Ctrl-E", "write the message in $EDITOR, then send it"),
    ("Ctrl-L", "clear the screen"),
    ("Ctrl-D", "leave the chat"),
)

LEAVING_HINT = "Ctrl-D leaves the chat"


def common_keys() -> KeyBindings:
    """The bindings that every prompt needs."""
    keys = KeyBindings()

    # prompt_toolkit takes the colour codes of pasted text for a mouse, and fails to read where it points.
    @keys.add(Keys.Vt100MouseEvent)
    def _(_event: KeyPressEvent) -> None:
        """Leave them out."""

    return keys


def make_keys(status: Status, repeat_prompt: Callable[[], None]) -> KeyBindings:
    """`repeat_prompt` shows that the line is cleared where it cannot be drawn again."""
    keys = common_keys()

    # A search in the history has its own bindings: Enter accepts the match, Ctrl-C cancels the search.
    @keys.add("enter", filter=~is_searching)
    def _(event: KeyPressEvent) -> None:
        """Send the message, or accept the selected completion."""
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None
        elif buffer.text.strip():
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    # Eager, as on a dumb terminal prompt_toolkit prefers its own binding, which ends the chat.
    @keys.add("c-c", filter=~is_searching, eager=True)
    @keys.add("<sigint>", eager=True)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        empty = not buffer.text
        buffer.reset()
        repeat_prompt()
        if empty:
            status.hint = LEAVING_HINT

    return keys
