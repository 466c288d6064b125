"""The slash commands of the chat as a table. What they do stands in `ui/actions/`.

Completion needs the names as soon as somebody types, so nothing heavy is imported here.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from ragchat.ui.prompt import completions
from ragchat.ui.slash import answers, documents, program, sessions, tuning

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completion

    from ragchat.ui.context import ChatContext

Run = Callable[["ChatContext", str], Awaitable[None]]
# Why not, as the end of a sentence; "" when it may run.
Allowed = Callable[["ChatContext"], str]
# What an argument may be; None: the chat is still starting.
Complete = Callable[["ChatContext | None", str], AsyncIterable["Completion"]]


def always(_: ChatContext) -> str:
    return ""


def with_an_answer(context: ChatContext) -> str:
    return "" if context.app.last_turn is not None else "there is no answer yet"


def at_a_terminal(context: ChatContext) -> str:
    return "" if context.interactive else "it needs a terminal"


class SlashCommand(NamedTuple):
    """One line of the table. `run` gets the text behind the name, stripped."""

    name: str
    arguments: str
    help: str
    run: Run
    allowed: Allowed = always
    complete: Complete | None = None
    aliases: tuple[str, ...] = ()


COMMANDS = (
    SlashCommand(
        "help", "[COMMAND]", "what you can do here", program.show_help, always, completions.commands, ("?",)
    ),
    SlashCommand(
        "inject", "PATH…|readme", "load files and folders", documents.inject, always, completions.paths
    ),
    SlashCommand("query", "TEXT", "search memory, without an answer", documents.query),
    SlashCommand("sources", "[N]", "the cited passages in full", answers.show_sources, with_an_answer),
    SlashCommand("why", "", "how the last answer came about", answers.show_why, with_an_answer),
    SlashCommand("memory", "[GLOB]", "what memory holds", documents.show_memory),
    SlashCommand(
        "forget", "DOCUMENT", "take a document out of memory", documents.forget, always, completions.documents
    ),
    SlashCommand("undo", "", "take the last change of memory back", documents.undo),
    SlashCommand(
        "model", "[NAME]", "show or change the language model", tuning.model, always, completions.models
    ),
    SlashCommand(
        "system",
        "[TEXT|edit|reset]",
        "show or change the system prompt",
        tuning.system,
        always,
        completions.system_words,
    ),
    SlashCommand("new", "", "begin a new conversation", sessions.new),
    SlashCommand(
        "sessions", "[WORDS]", "past conversations, or those with these words", sessions.show_sessions
    ),
    SlashCommand(
        "resume", "[ID]", "go on with a past one, or the last", sessions.resume, always, completions.sessions
    ),
    SlashCommand(
        "export",
        "[PATH]",
        "write this one as .md or .json",
        sessions.export,
        with_an_answer,
        completions.paths,
    ),
    SlashCommand("retry", "", "ask the last question again", answers.retry),
    SlashCommand(
        "copy",
        "",
        "the last answer to the clipboard",
        answers.copy,
        lambda c: at_a_terminal(c) or with_an_answer(c),
    ),
    SlashCommand("clear", "", "clear the screen", program.clear, at_a_terminal),
    SlashCommand("quit", "", "leave", program.leave, aliases=("exit", "q")),
)

BY_NAME = {name: command for command in COMMANDS for name in (command.name, *command.aliases)}


def parse(line: str) -> tuple[str, str]:
    """`/inject a b` as ("inject", "a b")."""
    name, *rest = line.removeprefix("/").split(maxsplit=1) or [""]
    return name, rest[0].strip() if rest else ""


async def run(context: ChatContext, line: str) -> None:
    """Run the command that `line` names. Raises UnknownCommand, CommandNotPossible, and what it raises."""
    from ragchat.errors import CommandNotPossible, UnknownCommand

    name, argument = parse(line)
    command = BY_NAME.get(name.lower())
    if command is None:
        import difflib

        raise UnknownCommand(name, difflib.get_close_matches(name.lower(), BY_NAME, n=1))
    if reason := command.allowed(context):
        raise CommandNotPossible(command.name, reason)
    await command.run(context, argument)
