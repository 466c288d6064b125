"""The slash commands of the chat as a table.

Completion needs the table as soon as the user types a slash, so this module imports nothing heavy.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from ragchat.errors import CommandNotPossible, UnexpectedArgument, UnknownCommand
from ragchat.sanitize import one_line
from ragchat.ui.prompt.keys import KEY_HELP
from ragchat.ui.slash import (
    answers,
    code,
    completions,
    documents,
    indexing,
    notebooks,
    opening,
    prompts,
    servers,
    sessions,
    tuning,
)
from ragchat.ui.slash.command import SlashCommand

if TYPE_CHECKING:
    from collections.abc import AsyncIterable

    from prompt_toolkit.completion import Completion

    from ragchat.ui.context import ChatContext


async def _show_help(context: ChatContext, argument: str) -> None:
    name = argument.removeprefix("/").lower()
    commands = [command for command in COMMANDS if not name or name in command.names]
    if not commands:
        raise UnknownCommand(name)
    context.screen.listing((_usage(command), command.help) for command in commands)
    if not name:
        context.screen.show("", "Anything else is a question; //text sends text that begins with a slash.")
    if not name and context.interactive:
        context.screen.show("")
        context.screen.listing(KEY_HELP)


def _usage(command: SlashCommand) -> str:
    names = "".join(f", /{alias}" for alias in command.aliases)
    return f"/{command.name}{names} {command.arguments}".strip()


async def _clear(context: ChatContext, _: str) -> None:
    context.screen.out.clear()


async def _leave(context: ChatContext, _: str) -> None:
    context.leaving = True


def _complete_name(_: ChatContext | None, argument: str) -> AsyncIterable[Completion]:
    return completions.matching(argument, ((command.name, command.help) for command in COMMANDS))


def _no_answer(context: ChatContext) -> str:
    return "" if context.conversation.last_turn is not None else "there is no answer yet"


def _no_terminal(context: ChatContext) -> str:
    return "" if context.interactive else "it needs a terminal"


COMMANDS = (
    SlashCommand(
        "help", "[COMMAND]", "list the commands and keys", _show_help, complete=_complete_name, aliases=("?",)
    ),
    SlashCommand(
        "inject",
        "[--prune] PATH…|readme",
        "load files and folders; --prune removes documents whose files are gone",
        documents.inject,
        complete=completions.paths,
    ),
    SlashCommand(
        "index",
        "[PATH…]",
        "load the repository you are in, or a folder, while the chat goes on",
        indexing.index,
        _no_terminal,
        completions.paths,
    ),
    SlashCommand(
        "sync",
        "[PATH…]",
        "bring memory in step with the folders of `ragchat source`",
        documents.sync,
        complete=completions.paths,
    ),
    SlashCommand(
        "research", "QUESTION", "write a cited report from memory and the other servers", answers.research
    ),
    SlashCommand("query", "TEXT", "search memory without asking a question", documents.query),
    SlashCommand(
        "trace", "NAME", "show where source code defines, calls, uses and imports a name", code.trace
    ),
    SlashCommand(
        "in",
        "[DOCUMENTS]",
        "ask only a folder, glob, tag or document; * asks all",
        documents.narrow,
        complete=completions.documents,
    ),
    SlashCommand(
        "notebook",
        "[NAME|-]",
        "list the notebooks, go to one, or leave it",
        notebooks.notebook,
        complete=notebooks.complete,
    ),
    SlashCommand(
        "prompt",
        "[NAME [VALUES]]",
        "list the prompts, or ask the model one of them about a document",
        prompts.prompt,
        complete=prompts.complete,
    ),
    SlashCommand("sources", "[N]", "show the cited passages in full", answers.show_sources, _no_answer),
    SlashCommand(
        "open",
        "[N] [--original]",
        "open the place of a citation in your editor or pager; or the file in its viewer",
        opening.open_source,
        lambda context: _no_terminal(context) or _no_answer(context),
    ),
    SlashCommand("more", "", "show further cards of the last answer", answers.show_more, _no_answer),
    SlashCommand(
        "good",
        "[N]",
        "save the last answer as a case for `ragchat eval`; N is the source that has it",
        answers.good,
        _no_answer,
    ),
    SlashCommand(
        "bad",
        "[PLACE]",
        "save it as a bad one; the right place is a number, notes.md:3-5, or nowhere",
        answers.bad,
        _no_answer,
        completions.documents,
    ),
    SlashCommand("stale", "", "list past answers whose documents have changed since", answers.stale),
    SlashCommand("why", "", "show how the last answer was made", answers.show_why, _no_answer),
    SlashCommand(
        "reasoning",
        "[on|off]",
        "show the model's reasoning: of the last answer, or from now on",
        answers.reasoning,
        complete=completions.one_of(("on", "show it as it arrives"), ("off", "do not show it")),
    ),
    SlashCommand(
        "memory",
        "[DOCUMENTS]",
        "list the documents in memory",
        documents.show_memory,
        complete=completions.documents,
    ),
    SlashCommand(
        "forget",
        "DOCUMENT",
        "remove a document from memory, or all that a glob matches",
        documents.forget,
        complete=completions.documents,
    ),
    SlashCommand("undo", "", "undo the last change of memory, such as a whole load", documents.undo),
    SlashCommand(
        "model", "[NAME]", "show or change the language model", tuning.model, complete=completions.models
    ),
    SlashCommand(
        "mcp",
        "[ACTION] [SERVER]",
        "show the servers; start, disable, log in, show a log …",
        servers.mcp,
        complete=servers.complete,
    ),
    SlashCommand("tools", "", "show what the tools of each server cost", servers.tools),
    SlashCommand(
        "system",
        "[TEXT|edit|reset]",
        "show or change the system prompt",
        tuning.system,
        complete=completions.one_of(("edit", "in your editor"), ("reset", "restore the configured prompt")),
    ),
    SlashCommand(
        "role",
        "[NAME|reset]",
        "list the roles, or answer in one of them",
        tuning.role,
        complete=completions.roles,
    ),
    SlashCommand("new", "", "start a new conversation", sessions.new),
    SlashCommand("sessions", "[WORDS]", "list or search past conversations", sessions.show_sessions),
    SlashCommand(
        "resume", "[ID]", "continue a past conversation", sessions.resume, complete=completions.sessions
    ),
    SlashCommand(
        "export",
        "[PATH]",
        "write this conversation to a .md or .json file",
        sessions.export,
        _no_answer,
        completions.paths,
    ),
    SlashCommand("retry", "", "ask the last question again", answers.retry),
    SlashCommand(
        "copy",
        "",
        "copy the last answer to the clipboard",
        answers.copy,
        lambda context: _no_terminal(context) or _no_answer(context),
    ),
    SlashCommand("clear", "", "clear the screen", _clear, _no_terminal),
    SlashCommand("quit", "", "leave the chat", _leave, aliases=("exit", "q")),
)

# Characters of a question that tell which one is meant.
MAX_QUESTION = 60
# They show, judge or copy the last answer.
_OF_ANSWER = frozenset({"sources", "open", "more", "good", "bad", "why", "copy"})
# What users of other programs type for the name of a command.
OTHER_WORDS = {
    "add": "inject",
    "load": "inject",
    "search": "query",
    "find": "query",
    "list": "memory",
    "ls": "memory",
    "delete": "forget",
    "remove": "forget",
    "rm": "forget",
    "history": "sessions",
    "reset": "new",
    "save": "export",
}
BY_NAME = {name: command for command in COMMANDS for name in command.names}


def parse(line: str) -> tuple[str, str]:
    """`/inject a b` as ("inject", "a b")."""
    name, *rest = line.removeprefix("/").split(maxsplit=1) or [""]
    return name, rest[0].strip() if rest else ""


async def run(context: ChatContext, line: str) -> None:
    """Run the command in `line`. Raises UnknownCommand and the like, and what the command raises."""
    name, argument = parse(line)
    if ":" in name:  # the prompt of a server
        await prompts.prompt(context, f"{name} {argument}".rstrip())
        return
    word = name.lower()
    command = BY_NAME.get(word or "help")
    if command is None:
        meant = OTHER_WORDS.get(word)
        raise UnknownCommand(name, [meant] if meant else difflib.get_close_matches(word, BY_NAME, n=1))
    if argument and not command.arguments:
        raise UnexpectedArgument(command.name)
    if reason := command.obstacle(context):
        raise CommandNotPossible(command.name, reason)
    conversation = context.conversation
    if command.name in _OF_ANSWER and conversation.unanswered and conversation.last_turn is not None:
        answered = one_line(conversation.last_turn.question, MAX_QUESTION)
        context.screen.note(f"The last question has no answer. This is about: {answered}")
    await command.run(context, argument)
