"""Every error of the chat but those of the model and the page: the sentence and the hint that users read."""

from __future__ import annotations

import pytest

from ragchat import errors
from ragchat.errors import RagChatError, SessionError, UnknownName
from ragchat.llm.errors import ModelError
from ragchat.web.errors import WebError

TABLE: list[tuple[RagChatError, str, str]] = [
    (errors.EmptyQuestion(), "The question is empty.", ""),
    (
        errors.NotAgreed("x is downloaded."),
        "x is downloaded. That is not done without your consent.",
        "`--yes` agrees.",
    ),
    (
        errors.NothingBefore("model"),
        "No earlier model was replaced by this command, so there is none to go back to.",
        "",
    ),
    (
        errors.NotOurEmbedder("http://nas:8765"),
        "The memory server at http://nas:8765 chooses its embedder itself.",
        "Run the command on its machine, without --server.",
    ),
    (
        errors.UnknownEmbedder("bge-smal", ["bge-small"]),
        "There is no embedder bge-smal here.",
        "Did you mean bge-small? `ragchat embedder ls` lists them; `ollama:NAME` pulls one, a path uses a "
        "folder with a model.",
    ),
    (
        errors.ModelNotFound("qwen3:8b"),
        "No server that was found here has the model qwen3:8b.",
        "`ragchat model setup` lists what was found. With Ollama running, this command pulls a model.",
    ),
    (
        errors.ModelFailed("It did not answer."),
        "It did not answer. The settings are unchanged.",
        "`ragchat model setup` lists what answers.",
    ),
    (errors.NothingToRetry(), "There is no question to repeat.", "Ask something first."),
    (errors.NothingToResume(), "No research of these documents was stopped.", "Name a question."),
    (
        errors.PromptUnreadable("the setting prompts.system", "x.md", "gone"),
        "The prompt file x.md cannot be read: gone.",
        "Check the setting prompts.system.",
    ),
    (errors.UnknownSession("ab"), "There is no session ab.", "`ragchat session ls` lists them."),
    (
        errors.NotInNotebook("ab", "hive"),
        "The session ab is not in the notebook hive.",
        "`ragchat session ls` shows where it is; without --notebook, it is continued there.",
    ),
    (
        errors.UnknownNotebook("hove", ["hive"]),
        "There is no notebook hove.",
        "Did you mean hive? `ragchat notebook ls` lists them.",
    ),
    (
        errors.NotebookNameRefused("a/b"),
        "a/b cannot be the name of a notebook.",
        "Names have up to 48 letters, digits, - and _; their files are named in lower case.",
    ),
    (
        errors.NotebookExists("hive"),
        "There is a notebook hive already.",
        "Choose another name, or change it: `ragchat notebook edit hive`.",
    ),
    (
        errors.NotebookUnusable("x.toml", "it is empty"),
        "The notebook x.toml cannot be used: it is empty.",
        "",
    ),
    (
        errors.NotANotebook("x.jsonl", "it is empty"),
        "x.jsonl is not an exported notebook: it is empty.",
        "`ragchat notebook export NAME -o FILE` writes one.",
    ),
    (
        errors.NotebookNotConfirmed("hive"),
        "The notebook hive is not imported without confirmation.",
        "Read its instructions above; --yes imports it.",
    ),
    (errors.NoSession(), "There is no past session yet.", "Ask something first."),
    (
        errors.OnlySingleQuestions(),
        "There is no past conversation yet, only single questions.",
        "`ragchat ask -c` goes on with the last one, `ragchat --session ID` with any.",
    ),
    (errors.AmbiguousSession("a", ["ab", "ac"]), "2 sessions begin with a.", "Say which one: ab, ac."),
    (
        errors.UnknownTurn("ab"),
        "There is no single turn ab.",
        "`ragchat session show ID --json` prints the ids of its turns.",
    ),
    (
        errors.NotRepeatable("ab"),
        "The turn ab cannot be asked again: it is the report of a research.",
        "",
    ),
    (errors.UnknownCase("ab"), "There is no single case ab.", "`ragchat case ls` lists them."),
    (
        errors.PlaceUnusable("9", "the answer has no source of this number"),
        "9 cannot be the right place: the answer has no source of this number.",
        "Name a source by its number, a document, lines of it as notes.md:3-5, or nowhere.",
    ),
    (
        errors.SessionDamaged("ab"),
        "A turn of the session ab is damaged.",
        "Restore the sessions from a backup, or remove this one: `ragchat session rm ab`.",
    ),
    (
        errors.SessionsUnavailable("s.db", "disk full"),
        "The sessions in s.db cannot be used: disk full.",
        "Check the setting sessions.path, and that the disk has room.",
    ),
    (
        errors.MemoryUnavailable("it has ended."),
        "Memory is not available: it has ended.",
        "`ragchat doctor` says more.",
    ),
    (errors.MemoryTimedOut("Query", 2.0), "Memory did not answer Query within 2 s.", ""),
    (errors.MemoryRefused("NOT_STORED", "No room.", "Make some."), "No room.", "Make some."),
    (
        errors.FilesElsewhere("http://nas:8765"),
        "The memory server at http://nas:8765 is not your own on this machine and cannot use files here.",
        "Run the command there. `ragchat inject` sends it files of this machine.",
    ),
    (
        errors.UploadsRefused("http://nas:8765", ["delete_document", "import_documents"]),
        "The memory server at http://nas:8765 takes no files from this machine: it does not offer "
        "delete_document, import_documents.",
        'Its setting memory.toolsets must have "documents" and "maintenance", it must not be read-only, and '
        "the token must allow these tools.",
    ),
    (
        errors.NotInARepository("/notes"),
        "/notes is not in a git repository.",
        "Name a folder: /index PATH.",
    ),
    (
        errors.NotAnExport("x.jsonl", "it is empty"),
        "x.jsonl is not an export of a memory: it is empty.",
        "`ragchat memory export FILE` writes one.",
    ),
    (
        errors.FolderNamed("my teas", 1_200, "my teas/*"),
        "my teas is a folder, not a document. Documents in it: 1,200.",
        "`ragchat memory rm 'my teas/*'` removes them.",
    ),
    (
        errors.NoDocumentMatches("tea"),
        "No document in memory matches tea.",
        "`ragchat memory ls` lists them; a folder, a glob, a tag or a part of a name will do.",
    ),
    (
        errors.SeveralDocumentsMatch("tea", ["12", "34"]),
        "The titles of 2 documents without a URI match tea, but only one of them can be asked.",
        "Say which one: 12, 34.",
    ),
    (
        errors.NotOneDocument("tea", ["green tea.md", "tea.md"], 2),
        "tea matches 2 documents: green tea.md, tea.md.",
        "Name one by its path or its id; `ragchat memory ls` lists both.",
    ),
    (
        errors.NotConfirmed(1204, "*.md"),
        "1,204 documents match *.md. They are not removed without confirmation.",
        "`ragchat memory rm --yes` removes them.",
    ),
    (
        errors.ServiceRefused("systemctl --user daemon-reload", "no bus", "unit is written."),
        "`systemctl --user daemon-reload` failed: no bus. unit is written.",
        "Run it yourself, or start `ragchat watch` in another way.",
    ),
    (errors.NoService("a.plist"), "No service is installed: there is no a.plist.", ""),
    (errors.PathNotFound("notes"), "notes does not exist.", ""),
    (
        errors.AddressesUnusable("list.txt", "line 2 is not an address: 'tea'"),
        "The addresses in list.txt cannot be loaded: line 2 is not an address: 'tea'.",
        "It has one address a line, such as https://example.org/page; lines that begin with # are comments.",
    ),
    (
        errors.NotWritable(".pdf", "talk.md"),
        "A conversation is written as Markdown (.md, .txt) or JSON (.json), not as .pdf.",
        "/export talk.md",
    ),
    (errors.NothingToAskAbout("a.md is empty."), "There is no text to ask about: a.md is empty.", ""),
    (
        errors.ServerFileUnreadable("mcp.json", "permission denied"),
        "The file of servers mcp.json cannot be read: permission denied.",
        "",
    ),
    (
        errors.ServerFileNotWritten("mcp.json", "no space left on device"),
        "The file of servers mcp.json cannot be written: no space left on device.",
        "It is as it was.",
    ),
    (
        errors.ServerConfigInvalid("mcp.json", "git", "it needs either a command or a url"),
        "mcp.json cannot be used: git: it needs either a command or a url.",
        "Correct it, then try again.",
    ),
    (
        errors.VariableMissing("git", "TOKEN", "mcp.json"),
        "The server git needs the environment variable TOKEN, which is not set.",
        "Set it, or write ${TOKEN:-default} in mcp.json.",
    ),
    (
        errors.UnknownServer("gti", ["git"]),
        "There is no server gti.",
        "Did you mean git? `ragchat mcp ls` shows them.",
    ),
    (errors.ServerNotReady("git", "it is disabled"), "The server git cannot be used: it is disabled.", ""),
    (
        errors.CredentialsUnusable("credentials.json", "permission denied"),
        "The file of credentials credentials.json cannot be used: permission denied.",
        "Correct or remove it; then log in again.",
    ),
    (
        errors.ToolChanged("git", "commit"),
        "The tool commit of the server git was not called: it has changed, or is gone.",
        "Call it again, as it is described now, if you still need it.",
    ),
    (
        errors.ServerNameReserved("ragmemory"),
        "ragmemory is the name of ragchat's own memory server.",
        "Choose another name.",
    ),
    (
        errors.MemoryNotConfigurable("ragmemory"),
        "ragmemory is the memory of this chat: it is not disabled and needs no login.",
        "/mcp start ragmemory starts it again.",
    ),
    (
        errors.ServerExists("git", "mcp.json"),
        "mcp.json has a server git already.",
        "`ragchat mcp rm git` removes it.",
    ),
    (
        errors.RecipeUnknown("gitt", ["git"]),
        "There is no recipe gitt.",
        "Did you mean git? `ragchat mcp add --recipe` lists them.",
    ),
    (
        errors.RecipeFolders("git", "it takes no folders"),
        "The recipe git cannot be used: it takes no folders.",
        "Folders are named after the recipe: `ragchat mcp add --recipe files ~/notes`.",
    ),
    (
        errors.PermissionsUnusable("permissions.json", "permission denied"),
        "The file of permissions permissions.json cannot be used: permission denied.",
        "Correct or remove it; then you are asked again.",
    ),
    (errors.ScriptInvalid("a.toml", "it is empty"), "The script a.toml cannot be used: it is empty.", ""),
    (
        errors.UnknownCommand("hepl", ["help"]),
        "There is no command /hepl.",
        "Did you mean /help? /help lists the commands; //hepl sends it as text.",
    ),
    (
        errors.UnknownCommand("x{y}"),
        "There is no command /x{y}.",
        "/help lists the commands; //x{y} sends it as text.",
    ),
    (
        errors.CommandNotPossible("undo", "memory is read-only"),
        "/undo is not possible now: memory is read-only.",
        "",
    ),
    (
        errors.AttachmentUnusable("a.png", "is not text"),
        "@a.png cannot be attached: it is not text.",
        "",
    ),
    (
        errors.UnknownPrompt("outlin", ["create-outline"]),
        "There is no prompt outlin.",
        "Did you mean create-outline? `ragchat prompt ls` and /prompt list them.",
    ),
    (
        errors.PromptArgumentRefused("create-outline", "document", "there is no document 'a'", "Look."),
        "The prompt create-outline cannot take this for document: there is no document 'a'.",
        "Look.",
    ),
    (
        errors.PromptNeedsModel("extract-facts"),
        "The prompt extract-facts needs a language model, and none is in use.",
        "Leave out --offline, start Ollama, set OPENAI_API_KEY, or name a model in the settings; "
        "summarize-document needs none.",
    ),
    (
        errors.PromptNotFilledIn("git:log", "it is down"),
        "The server of the prompt git:log did not fill it in: it is down.",
        "",
    ),
    (
        errors.PromptIncomplete("create-section", ["document", "topic"], "Look."),
        "The prompt create-section needs document=… and topic=….",
        "Look.",
    ),
    (
        errors.UnknownPromptArgument("dpth", ["depth"], "create-outline", ["document", "depth"]),
        "The prompt create-outline has no argument dpth.",
        "Did you mean depth? It takes document, depth.",
    ),
    (
        errors.UnknownRole("reviwer", ["reviewer"]),
        "There is no role reviwer.",
        "Did you mean reviewer? `ragchat prompt ls` lists them.",
    ),
    (errors.ArgumentMissing("inject", "files or folders"), "/inject needs files or folders.", ""),
    (errors.UnexpectedArgument("undo"), "/undo takes no argument.", ""),
    (errors.UnexpectedArgument("sync", "no option -x"), "/sync takes no option -x.", ""),
    (
        errors.FileAlreadyExists("a.md"),
        "a.md already exists.",
        "Choose another name; nothing is overwritten.",
    ),
    (errors.StdinUnusable("is not text"), "The input from stdin is not text.", ""),
]


@pytest.mark.parametrize(("error", "sentence", "hint"), TABLE, ids=lambda value: type(value).__name__)
def test_an_error_says_what_happened_and_what_to_do(error: RagChatError, sentence: str, hint: str) -> None:
    assert (str(error), error.hint) == (sentence, hint)
    assert error.code == error.code.upper()
    assert error.code != RagChatError.code


def test_the_table_holds_every_error() -> None:
    roots = (RagChatError, SessionError, UnknownName, errors.FileUnusable, errors.NotPossible)
    leaves = {leaf for root in roots for leaf in root.__subclasses__()} - {*roots, ModelError, WebError}
    assert {type(error) for error, _, _ in TABLE} == leaves
