"""`ragchat ask --prompt NAME`, and `ragchat prompt`: list and show prompts and roles."""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from msgspec import structs

from ragchat.commands.invocation import Invocation
from ragchat.conversation import Attached, Conversation
from ragchat.errors import PromptArgumentRefused, PromptIncomplete, UnknownPrompt, UnknownPromptArgument
from ragchat.servers.prompts import as_word, chosen, of_memory, of_servers
from ragchat.turn.events import Emit
from ragchat.turn.prompt import text_of
from ragchat.turn.types import Turn
from ragcommon.text.rules import counted
from ragconfig.prompt_files import (
    FOLDER,
    ROLES,
    Head,
    Template,
    all_templates,
    broken_in,
    of_kind,
    role_files,
)

_NAMED = re.compile(r"([\w-]+)=(.*)", re.DOTALL)


def ls(run: Invocation) -> None:
    prompts = {name: template.head for name, (_, template) in templates(run).items()}
    roles = {name: _beginning(path) for name, path in _roles(run).items()}
    document = {
        "prompts": [
            {
                "name": name,
                "description": head.description,
                "arguments": [{"name": key, **structs.asdict(one)} for key, one in head.arguments.items()],
            }
            for name, head in prompts.items()
        ],
        "roles": [{"name": name, "description": beginning} for name, beginning in roles.items()],
    }
    rows = [
        *((name, _usage(head), head.description) for name, head in prompts.items()),
        *((name, "(role)", beginning) for name, beginning in roles.items()),
    ]
    run.console.listing(document, ("name", "values", "does"), rows)
    for problem in broken_in(run.home.config / FOLDER):
        run.console.note(problem)


def show(run: Invocation) -> None:
    name = run.arguments.name
    files = _roles(run) | {name: path for name, (path, _) in templates(run).items()}
    path = str(UnknownPrompt.look_up(name, files))
    text = text_of(path, f"the prompt {name}")
    run.console.result({"name": name, "path": path, "text": text}, text, notes=[f"This is the file {path}"])


def templates(run: Invocation) -> dict[str, tuple[Path, Template]]:
    """The prompts that are files by their names: the packaged ones, and the user's own."""
    return {
        as_word(path.stem): (path, found)
        for path, found in all_templates(run.home.config / FOLDER)
        if isinstance(found, Template)
    }


def _roles(run: Invocation) -> dict[str, Path]:
    return role_files(run.home.config / ROLES)


def _usage(head: Head) -> str:
    return " ".join(name if one.default is None else f"[{name}]" for name, one in head.arguments.items())


def _beginning(path: Path) -> str:
    """The first sentence of a role."""
    return re.split(r"(?<=\.)\s|\n", text_of(str(path), f"the role {path.stem}"), maxsplit=1)[0]


# A prompt as the question of `ragchat ask`


def names_documents(run: Invocation) -> bool:
    """Whether the words name all documents of the prompt, so that none is on stdin."""
    if (found := templates(run).get(run.arguments.prompt)) is None:
        return False
    arguments = found[1].head.arguments
    documents = of_kind(arguments, "document")
    values = values_of(run.arguments.prompt, run.arguments.question, [*arguments])
    return bool(documents) and values.keys() >= set(documents)


async def filled_in(
    run: Invocation, conversation: Conversation, given: Sequence[str]
) -> Callable[[Emit], Awaitable[Turn]]:
    """Fill in the prompt; the function that asks it is returned.

    `given` are ids of documents in the conversation's memory: the text on stdin and the files of `-f`. They
    are the documents that the words do not name, or attached to a prompt that is not about documents.
    Raises UnknownPrompt, PromptNeedsModel, PromptIncomplete, PromptArgumentRefused and the like.
    """

    name, memory = run.arguments.prompt, conversation.memory
    offline = await conversation.ready_model(run.note_event) is None
    of_own = [] if ":" in name else await of_memory(memory)
    try:
        prompt = chosen(name, [*of_own, *await of_servers(conversation.servers)], offline=offline)
    except UnknownPrompt:
        run.note_servers(conversation.servers)  # Its server may not have started.
        raise
    values = values_of(name, run.arguments.question, [one.name for one in prompt.arguments])
    file = templates(run).get(name)
    documents = of_kind(file[1].head.arguments, "document") if file else []
    open_ones = [argument for argument in documents if argument not in values]
    if documents and len(given) > len(open_ones):
        reason = f"{counted(len(given), 'text')} given with -f or on stdin, and it takes {len(open_ones)}"
        raise PromptArgumentRefused(name, "its documents", reason, "Ask once for each file.")
    values |= dict(zip(open_ones, given, strict=False))
    if missing := prompt.missing(values):
        no_document = len(given) < len(open_ones)
        hint = "Name a document of memory, name a file with -f, or pipe a text." if no_document else ""
        raise PromptIncomplete(name, missing, hint)
    try:
        filled = await prompt.fill_in(values, memory, offline=offline)
    except PromptArgumentRefused as error:
        if error.argument in documents:
            error.hint = _where_documents_are(values[error.argument], only_given=bool(given))
        raise
    if prompt.server:  # Show what the server asks in the user's name.
        run.console.note(filled.question)
    others = [] if documents or offline else [await memory.show(one) for one in given]
    untrusted = [f"the prompt {name}"] if prompt.server else []
    attached = Attached.of([*filled.attached, *others], untrusted)
    return partial(conversation.ask, filled.question, attached=attached)


def _where_documents_are(name: str, *, only_given: bool) -> str:
    if only_given:
        return "With -f or text on stdin, all documents are given in this way."
    if Path(name).is_file():
        return f"To ask about the file, use -f {name}"
    return "`ragchat memory ls` lists the documents; -f names a file."


def values_of(prompt: str, words: Sequence[str], arguments: Sequence[str]) -> dict[str, str]:
    """The words as values: `name=value`, or else in the order of the arguments. `-` stands for stdin.

    Raises UnknownPromptArgument, PromptArgumentRefused.
    """
    values: dict[str, str] = {}
    plain: list[str] = []
    for word in words:
        if (named := _NAMED.fullmatch(word)) is None:
            plain += [word] if word != "-" else []
        elif named[1] not in arguments:
            near = difflib.get_close_matches(named[1], arguments, n=1)
            raise UnknownPromptArgument(named[1], near, prompt, arguments)
        elif named[1] in values:
            reason = f"it has two values, {values[named[1]]} and {named[2]}"
            raise PromptArgumentRefused(prompt, named[1], reason)
        else:
            values[named[1]] = named[2]
    free: Iterator[str] = (one for one in arguments if one not in values)
    ordered = dict(zip(free, plain, strict=False))
    if len(plain) > len(ordered):
        hint = f"It takes {', '.join(arguments) or 'no values'}. A value with spaces needs quotation marks."
        raise PromptArgumentRefused(prompt, plain[len(ordered)], "it has no further argument", hint)
    return values | ordered
