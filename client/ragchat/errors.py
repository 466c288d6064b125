"""What can go wrong in the chat. `llm.errors` has what a model does, `web.errors` what the page does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from shlex import quote
from typing import ClassVar, Self, TypeVar

from ragcommon.errors import StructuredError

T = TypeVar("T")


class RagChatError(StructuredError):
    """The root of everything the chat raises on purpose.

    `chat_hint` replaces the hint in the chat, where slash commands are at hand: a template over the `error`.
    """

    code = "CHAT_FAILED"
    chat_hint: ClassVar[str] = ""


class UnknownName(RagChatError):
    """`near` are names that the user may have meant."""

    name: str
    near: Sequence[str] = ()
    mark: ClassVar[str] = ""

    @classmethod
    def with_nearest(cls, name: str, known: Iterable[str]) -> Self:
        """The error, with the nearest known name."""
        import difflib

        return cls(name, difflib.get_close_matches(name, known, n=1))

    @classmethod
    def look_up(cls, name: str, known: Mapping[str, T]) -> T:
        """What has this name. Raises the error if nothing has it."""
        if name not in known:
            raise cls.with_nearest(name, known)
        return known[name]

    @property
    def guess(self) -> str:
        return f"Did you mean {self.mark}{self.near[0]}? " if self.near else ""


class FileUnusable(RagChatError):
    """`reason` is the end of a sentence about the file."""

    path: str
    reason: str


class NotPossible(RagChatError):
    """`reason` is the end of a sentence about what has this name."""

    name: str
    reason: str


# The conversation


class EmptyQuestion(RagChatError):
    code = "QUESTION_EMPTY"
    sentence = "The question is empty."


class NothingToRetry(RagChatError):
    sentence = "There is no question to repeat."
    hint = "Ask something first."


class NothingToResume(RagChatError):
    sentence = "No research of these documents was stopped."
    hint = "Name a question."


# Sessions


class SessionError(RagChatError):
    """Stored sessions cannot be read or written."""

    code = "SESSION_FAILED"


class UnknownSession(SessionError):
    session_id: str
    code = "SESSION_NOT_FOUND"
    sentence = "There is no session {session_id}."
    hint = "`ragchat session ls` lists them."
    chat_hint = "/sessions lists them."


class NoSession(SessionError):
    code = "SESSION_NOT_FOUND"
    sentence = "There is no past session yet."
    hint = "Ask something first."


class OnlySingleQuestions(SessionError):
    """A conversation was to be continued, but so far there are only questions of `ragchat ask`."""

    code = "SESSION_NOT_FOUND"
    sentence = "There is no past conversation yet, only single questions."
    hint = "`ragchat ask -c` goes on with the last one, `ragchat --session ID` with any."


class AmbiguousSession(SessionError):
    prefix: str
    matches: Sequence[str]
    code = "SESSION_AMBIGUOUS"
    sentence = "{count} sessions begin with {prefix}."
    hint = "Say which one: {matches}."

    @property
    def count(self) -> int:
        return len(self.matches)


class UnknownTurn(SessionError):
    turn_id: str
    code = "TURN_NOT_FOUND"
    sentence = "There is no single turn {turn_id}."
    hint = "`ragchat session show ID --json` prints the ids of its turns."


class SessionDamaged(SessionError):
    session_id: str
    sentence = "A turn of the session {session_id} is damaged."
    hint = "Restore the sessions from a backup, or remove this one: `ragchat session rm {session_id}`."


class SessionsUnavailable(SessionError):
    path: str
    reason: str
    hint: str = "Check the setting sessions.path, and that the disk has room."
    sentence = "The sessions in {path} cannot be used: {reason}."


class NotInNotebook(SessionError):
    session_id: str
    name: str
    code = "SESSION_NOT_IN_NOTEBOOK"
    sentence = "The session {session_id} is not in the notebook {name}."
    hint = "`ragchat session ls` shows where it is; without --notebook, it is continued there."


# Cases


class NotRepeatable(RagChatError):
    turn_id: str
    code = "TURN_NOT_REPEATABLE"
    sentence = "The turn {turn_id} cannot be asked again: it is the report of a research."


class UnknownCase(RagChatError):
    case_id: str
    code = "CASE_NOT_FOUND"
    sentence = "There is no single case {case_id}."
    hint = "`ragchat case ls` lists them."


class PlaceUnusable(RagChatError):
    place: str
    reason: str
    sentence = "{place} cannot be the right place: {reason}."
    hint = "Name a source by its number, a document, lines of it as notes.md:3-5, or nowhere."


# Notebooks


class UnknownNotebook(UnknownName):
    code = "NOTEBOOK_NOT_FOUND"
    sentence = "There is no notebook {name}."
    hint = "{guess}`ragchat notebook ls` lists them."
    chat_hint = "{error.guess}/notebook lists them."


class NotebookNameRefused(RagChatError):
    name: str
    sentence = "{name} cannot be the name of a notebook."
    hint = "Names have up to 48 letters, digits, - and _; their files are named in lower case."


class NotebookExists(RagChatError):
    name: str
    hint: str = "Choose another name, or change it: `ragchat notebook edit {name}`."
    sentence = "There is a notebook {name} already."


class NotebookUnusable(FileUnusable):
    sentence = "The notebook {path} cannot be used: {reason}."


class NotANotebook(FileUnusable):
    """A file to import."""

    sentence = "{path} is not an exported notebook: {reason}."
    hint = "`ragchat notebook export NAME -o FILE` writes one."


class NotebookNotConfirmed(RagChatError):
    name: str
    code = "NOT_CONFIRMED"
    sentence = "The notebook {name} is not imported without confirmation."
    hint = "Read its instructions above; --yes imports it."


# Memory


class MemoryUnavailable(RagChatError):
    """The memory server could not be started, stopped for good, or sent an unusable answer."""

    reason: str
    sentence = "Memory is not available: {cause}."
    hint = "`ragchat doctor` says more."

    @property
    def cause(self) -> str:
        return self.reason.rstrip(".")


class MemoryTimedOut(RagChatError):
    tool: str
    seconds: float
    sentence = "Memory did not answer {tool} within {seconds:g} s."


class MemoryRefused(RagChatError):
    """The memory server answered with an error; `word` is its errorCode, `reason` its sentence."""

    word: str
    reason: str
    hint: str = ""
    sentence = "{reason}"


class DocumentUnknown(MemoryRefused):
    """The memory server has no such document, chunk, block or job."""

    chat_hint = "/memory lists the documents."


class FilesElsewhere(RagChatError):
    """A memory server that is not the user's own on this machine was to read or write files."""

    url: str
    sentence = "The memory server at {url} is not your own on this machine and cannot use files here."
    hint = "Run the command there. `ragchat inject` sends it files of this machine."


class UploadsRefused(RagChatError):
    """The memory server lacks tools that uploading files needs."""

    url: str
    tools: Sequence[str]
    sentence = "The memory server at {url} takes no files from this machine: it does not offer {tools}."
    hint = (
        'Its setting memory.toolsets must have "documents" and "maintenance", it must not be read-only, and '
        "the token must allow these tools."
    )


class NotInARepository(RagChatError):
    folder: str
    sentence = "{folder} is not in a git repository."
    hint = "Name a folder: /index PATH."


class NotAnExport(FileUnusable):
    """A file to import."""

    sentence = "{path} is not an export of a memory: {reason}."
    hint = "`ragchat memory export FILE` writes one."


class NoDocumentMatches(RagChatError):
    words: str
    code = "DOCUMENT_NOT_FOUND"
    sentence = "No document in memory matches {words}."
    hint = "`ragchat memory ls` lists them; a folder, a glob, a tag or a part of a name will do."
    chat_hint = "/memory lists the documents; /in * asks all of them."


class FolderNamed(RagChatError):
    """A folder was to be removed, which takes a glob."""

    words: str
    documents: int
    glob: str
    sentence = "{words} is a folder, not a document. Documents in it: {documents:,}."
    hint = "`ragchat memory rm {quoted}` removes them."
    chat_hint = "/forget {error.glob} removes them."

    @property
    def quoted(self) -> str:
        return quote(self.glob)


class SeveralDocumentsMatch(RagChatError):
    words: str
    document_ids: Sequence[str]
    code = "DOCUMENT_AMBIGUOUS"
    sentence = (
        "The titles of {count} documents without a URI match {words}, but only one of them can be asked."
    )
    hint = "Say which one: {document_ids}."

    @property
    def count(self) -> int:
        return len(self.document_ids)


class NotOneDocument(RagChatError):
    """Words name several documents where one is needed."""

    words: str
    names: Sequence[str]  # the first of them
    count: int
    code = "DOCUMENT_AMBIGUOUS"
    sentence = "{words} matches {count} documents: {names}."
    hint = "Name one by its path or its id; `ragchat memory ls` lists both."


class NotConfirmed(RagChatError):
    number: int
    words: str
    sentence = "{number:,} documents match {words}. They are not removed without confirmation."
    hint = "`ragchat memory rm --yes` removes them."


class NothingToAskAbout(RagChatError):
    reason: str
    sentence = "There is no text to ask about: {reason}"


# Settings that commands change


class NotAgreed(RagChatError):
    what: str
    code = "NOT_CONFIRMED"
    sentence = "{what} That is not done without your consent."
    hint = "`--yes` agrees."


class NothingBefore(RagChatError):
    what: str
    sentence = "No earlier {what} was replaced by this command, so there is none to go back to."


class NotOurEmbedder(RagChatError):
    url: str
    code = "EMBEDDER_ELSEWHERE"
    sentence = "The memory server at {url} chooses its embedder itself."
    hint = "Run the command on its machine, without --server."


class UnknownEmbedder(UnknownName):
    code = "EMBEDDER_UNKNOWN"
    sentence = "There is no embedder {name} here."
    hint = (
        "{guess}`ragchat embedder ls` lists them; `ollama:NAME` pulls one, a path uses a folder with a model."
    )


class ModelNotFound(RagChatError):
    name: str
    code = "MODEL_UNKNOWN"
    sentence = "No server that was found here has the model {name}."
    hint = "`ragchat model setup` lists what was found. With Ollama running, this command pulls a model."


class ModelFailed(RagChatError):
    """`problem` is the sentence of the failure."""

    problem: str
    sentence = "{problem} The settings are unchanged."
    hint = "`ragchat model setup` lists what answers."


# Other servers


class ServerFileUnreadable(FileUnusable):
    sentence = "The file of servers {path} cannot be read: {reason}."


class ServerFileNotWritten(FileUnusable):
    code = "SERVER_FILE_UNREADABLE"
    sentence = "The file of servers {path} cannot be written: {reason}."
    hint = "It is as it was."


class ServerConfigInvalid(RagChatError):
    path: str
    name: str
    reason: str
    sentence = "{path} cannot be used: {name}: {reason}."
    hint = "Correct it, then try again."


class VariableMissing(RagChatError):
    server: str
    variable: str
    path: str
    sentence = "The server {server} needs the environment variable {variable}, which is not set."
    hint = "Set it, or write ${{{variable}:-default}} in {path}."


class UnknownServer(UnknownName):
    code = "SERVER_UNKNOWN"
    sentence = "There is no server {name}."
    hint = "{guess}`ragchat mcp ls` shows them."


class ServerNotReady(NotPossible):
    """A server cannot be called now; `reason` is the end of a sentence about it."""

    hint: str = ""
    sentence = "The server {name} cannot be used: {reason}."


class CredentialsUnusable(FileUnusable):
    sentence = "The file of credentials {path} cannot be used: {reason}."
    hint = "Correct or remove it; then log in again."


class ToolChanged(RagChatError):
    server: str
    tool: str
    sentence = "The tool {tool} of the server {server} was not called: it has changed, or is gone."
    hint = "Call it again, as it is described now, if you still need it."


class ServerNameReserved(RagChatError):
    name: str
    sentence = "{name} is the name of ragchat's own memory server."
    hint = "Choose another name."


class MemoryNotConfigurable(RagChatError):
    name: str
    sentence = "{name} is the memory of this chat: it is not disabled and needs no login."
    hint = "/mcp start {name} starts it again."


class ServerExists(RagChatError):
    name: str
    path: str
    sentence = "{path} has a server {name} already."
    hint = "`ragchat mcp rm {name}` removes it."


class RecipeUnknown(UnknownName):
    sentence = "There is no recipe {name}."
    hint = "{guess}`ragchat mcp add --recipe` lists them."


class RecipeFolders(NotPossible):
    """`reason` is the end of a sentence about the recipe and its folders."""

    sentence = "The recipe {name} cannot be used: {reason}."
    hint = "Folders are named after the recipe: `ragchat mcp add --recipe files ~/notes`."


class PermissionsUnusable(FileUnusable):
    sentence = "The file of permissions {path} cannot be used: {reason}."
    hint = "Correct or remove it; then you are asked again."


# Prompts and roles


class PromptUnreadable(RagChatError):
    """`check` is what names the file."""

    check: str
    path: str
    reason: str
    sentence = "The prompt file {path} cannot be read: {reason}."
    hint = "Check {check}."


class UnknownRole(UnknownName):
    code = "ROLE_UNKNOWN"
    sentence = "There is no role {name}."
    hint = "{guess}`ragchat prompt ls` lists them."
    chat_hint = "{error.guess}/role lists them."


class UnknownPrompt(UnknownName):
    code = "PROMPT_UNKNOWN"
    sentence = "There is no prompt {name}."
    hint = "{guess}`ragchat prompt ls` and /prompt list them."


class PromptNeedsModel(RagChatError):
    name: str
    sentence = "The prompt {name} needs a language model, and none is in use."
    hint = (
        "Leave out --offline, start Ollama, set OPENAI_API_KEY, or name a model in the settings; "
        "summarize-document needs none."
    )


class PromptNotFilledIn(NotPossible):
    sentence = "The server of the prompt {name} did not fill it in: {reason}."


class PromptIncomplete(RagChatError):
    prompt: str
    missing: Sequence[str]
    hint: str = ""
    code = "ARGUMENT_MISSING"
    sentence = "The prompt {prompt} needs {values}."

    @property
    def values(self) -> str:
        return " and ".join(f"{name}=…" for name in self.missing)


class UnknownPromptArgument(UnknownName):
    prompt: str = ""
    known: Sequence[str] = ()
    code = "PROMPT_ARGUMENT_UNKNOWN"
    sentence = "The prompt {prompt} has no argument {name}."
    hint = "{guess}It takes {names}."

    @property
    def names(self) -> str:
        return ", ".join(self.known) or "no arguments"


class PromptArgumentRefused(RagChatError):
    prompt: str
    argument: str
    reason: str
    hint: str = ""
    sentence = "The prompt {prompt} cannot take this for {argument}: {reason}."


# Scripts


class ScriptInvalid(FileUnusable):
    hint: str = ""
    sentence = "The script {path} cannot be used: {reason}."


# Commands


class UnknownCommand(UnknownName):
    mark = "/"
    code = "COMMAND_UNKNOWN"
    sentence = "There is no command /{name}."
    hint = "{guess}/help lists the commands; //{name} sends it as text."


class CommandNotPossible(NotPossible):
    sentence = "/{name} is not possible now: {reason}."


class AttachmentUnusable(NotPossible):
    """`reason` is the end of a sentence about it."""

    sentence = "@{name} cannot be attached: it {reason}."


class ArgumentMissing(RagChatError):
    name: str
    argument: str
    sentence = "/{name} needs {argument}."


class UnexpectedArgument(RagChatError):
    name: str
    takes: str = "no argument"
    code = "ARGUMENT_UNEXPECTED"
    sentence = "/{name} takes {takes}."


class FileAlreadyExists(RagChatError):
    path: str
    hint: str = "Choose another name; nothing is overwritten."
    code = "FILE_EXISTS"
    sentence = "{path} already exists."


class NotWritable(RagChatError):
    """The format of a conversation's file, by its extension; `instead` is a path that can be written."""

    extension: str
    instead: str
    code = "FORMAT_NOT_WRITTEN"
    sentence = "A conversation is written as Markdown (.md, .txt) or JSON (.json), not as {extension}."
    hint = "/export {instead}"


class ServiceRefused(RagChatError):
    """A program of the system failed; `done` is a sentence about what was done by then."""

    command: str
    reason: str
    done: str
    sentence = "`{command}` failed: {reason}. {done}"
    hint = "Run it yourself, or start `ragchat watch` in another way."


class NoService(RagChatError):
    path: str
    sentence = "No service is installed: there is no {path}."


class PathNotFound(RagChatError):
    path: str
    sentence = "{path} does not exist."


class AddressesUnusable(RagChatError):
    """A file with the addresses of web pages; `reason` is a clause."""

    file: str
    reason: str
    sentence = "The addresses in {file} cannot be loaded: {reason}."
    hint = (
        "It has one address a line, such as https://example.org/page; lines that begin with # are comments."
    )


class StdinUnusable(RagChatError):
    reason: str
    sentence = "The input from stdin {reason}."
