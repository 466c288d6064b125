"""`inject`, `query`, `ask`, `memory …` and `session …` as a user types them, against a real server.

Covers `ragchat.commands.ask`, `ragchat.commands.inject`,
`ragchat.commands.memory`, `ragchat.commands.query`, `ragchat.commands.removal`,
`ragchat.commands.session`, `ragchat.commands.transfer`, `ragchat.memory.transfer` and
`ragmemory.maintenance.copying`.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.pages import page_server
from tests.support.program import Program, program_in

HIT = {
    "rank",
    "score",
    "chunk_id",
    "document_id",
    "uri",
    "title",
    "heading",
    "start_line",
    "end_line",
    "text",
    "metadata",
}
CITATION = {
    "n",
    "chunk_id",
    "document_id",
    "uri",
    "title",
    "heading",
    "start_line",
    "end_line",
    "quote",
    "quote_start_line",
    "quote_end_line",
    "verified",
}
TURN = {
    "question",
    "answer",
    "grounded",
    "citations",
    "model",
    "usage",
    "timings",
    "session_id",
    "turn_id",
}


@pytest.fixture
def ragchat(tmp_path: Path) -> Program:
    ragchat = program_in(tmp_path)
    (ragchat.folder / "tea.md").write_text(
        "# Tea\n\nGreen tea is brewed at 75 degrees for two minutes.\n", encoding="utf-8"
    )
    (ragchat.folder / "coffee.md").write_text(
        "# Coffee\n\nEspresso is pressed at nine bar for 25 seconds.\n", encoding="utf-8"
    )
    return ragchat


def test_a_found_passage_has_its_own_lines_only(ragchat: Program) -> None:
    (ragchat.folder / "ferry.md").write_text("The ferry\u2028sails at\x0bseven.\nDaily.\n", "utf-8")
    ragchat("inject", "ferry.md")
    assert "    The ferry\u2028sails at␋seven.\n    Daily.\n" in ragchat("query", "ferry").out


@pytest.mark.smoke
def test_a_document_from_its_loading_to_its_removal(ragchat: Program) -> None:
    loaded = ragchat("inject", "tea.md", "coffee.md", "gone.md", "--json")
    assert loaded.code == 1
    counts = {name: loaded.json[name] for name in ("added", "updated", "unchanged", "failed")}
    assert counts == {"added": 2, "updated": 0, "unchanged": 0, "failed": 1}
    failed = next(document for document in loaded.json["documents"] if document["status"] == "failed")
    assert failed["document_id"] is None
    assert failed["error"] == "gone.md does not exist."
    assert failed["uri"] == (ragchat.folder / "gone.md").as_uri()

    found = ragchat("query", "green", "tea", "-k", "1", "--json").json
    assert set(found) == {"query", "hits", "notices", "corrections"}
    assert (found["query"], len(found["hits"])) == ("green tea", 1)
    assert set(found["hits"][0]) >= HIT
    assert found["hits"][0]["uri"] == (ragchat.folder / "tea.md").as_uri()

    listed = ragchat("memory", "ls", "--json").json
    assert listed["total"] == len(listed["documents"]) == 2
    assert ragchat("memory", "show", "tea.md").out.startswith("# Tea\n")

    removed = ragchat("memory", "rm", "tea.md", "nothing.md")
    assert (removed.code, removed.out) == (1, "Removed tea.md (1 chunk).\n")
    assert "There is no document nothing.md in memory." in removed.err
    assert "tea.md" in ragchat("memory", "undo").out
    assert ragchat("memory", "stats", "--json").json["documents"] == 2
    assert [entry["action"] for entry in ragchat("memory", "log", "--json").json["entries"]][-1] == "added"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("inject", "gone.md"), "INJECT_FAILED", "gone.md does not exist."),
        (
            ("inject", "gone.md", "lost.md", "away.md"),
            "INJECT_FAILED",
            "gone.md does not exist. 2 other documents failed as well.",
        ),
        (("memory", "rm", "gone.md"), "RESOURCE_NOT_FOUND", "There is no document gone.md in memory."),
        (("memory", "show", "gone.md"), "RESOURCE_NOT_FOUND", "There is no document gone.md in memory."),
        (("memory", "undo"), "NOTHING_TO_UNDO", "There is nothing to undo."),
        (("session", "rm", "abc"), "SESSION_NOT_FOUND", "There is no session abc."),
        (("session", "inject", "abc"), "INJECT_FAILED", "There is no session abc."),
    ],
)
def test_every_failing_command_prints_an_error_document(
    ragchat: Program, words: tuple[str, ...], code: str, message: str
) -> None:
    failed = ragchat(*words, "--json")
    assert failed.code == 1
    error = failed.json["error"]
    assert set(error) == {"code", "message", "hint"}
    assert (error["code"], error["message"]) == (code, message)


def test_only_some_documents_are_asked_searched_and_listed(ragchat: Program) -> None:
    ragchat("inject", ".")
    hits = ragchat("query", "nine bar or green tea", "--in", "coffee.md", "--json").json["hits"]
    assert {Path(hit["uri"]).name for hit in hits} == {"coffee.md"}
    answer = ragchat("ask", "How hot is green tea brewed?", "--in", "coff", "--json").json
    assert "75" not in answer["answer"]
    assert "75" in ragchat("ask", "How hot is green tea brewed?", "--in", ".", "--json").json["answer"]
    assert "75" in ragchat("--in", "*.md", stdin="How hot is green tea brewed?\n").out
    failed = ragchat("ask", "How hot is green tea brewed?", "--in", "milk")
    assert (failed.code, failed.out) == (1, "")
    assert failed.err.startswith("ragchat: No document in memory matches milk.\n")
    assert "tea.md" not in ragchat("memory", "ls", "COFFEE").out
    assert "coffee.md" in ragchat("memory", "ls", "COFFEE").out
    assert ragchat("memory", "ls", "milk").err == "No document matches.\n"


LOG = "12:00 start\n12:01 the backup of the photos failed: disk full\n12:02 stop\n"


def test_a_question_about_text_on_stdin_or_in_a_file_is_answered_from_it(ragchat: Program) -> None:
    ragchat("inject", ".")
    (ragchat.folder / "backup.log").write_text(LOG, encoding="utf-8")
    piped = ragchat("ask", "What failed?", "--json", stdin=LOG).json
    assert "backup of the photos failed" in piped["answer"]
    assert {citation["uri"] for citation in piped["citations"]} == {"stdin"}
    assert "backup of the photos failed" in ragchat("ask", "-f", "backup.log", "What failed?").out
    named = ragchat("ask", "-f", "-", "What failed?", "-f", "backup.log", stdin="Nothing failed.")
    assert "Nothing failed." in named.out
    assert "Answering from the text on stdin" not in named.err
    assert (
        ragchat("ask", "-f", "-", "What failed?", stdin="").err == "ragchat: The input from stdin is empty.\n"
    )
    for question in ("What failed?", "Who composed Tosca?", "Which disk is the fastest one?"):
        assert "memory" not in ragchat("ask", "-f", "backup.log", question).out
    assert "75" in ragchat("ask", "How hot is green tea brewed?", stdin=" \n").out
    assert "75" in ragchat("ask", "--in", ".", "How hot is green tea brewed?", stdin=LOG).out
    assert ragchat("memory", "stats", "--json").json["documents"] == 2
    failed = ragchat("ask", "What failed?", "-f", "gone.log")
    assert (failed.code, failed.out) == (1, "")
    assert failed.err.startswith("ragchat: There is no text to ask about: gone.log does not exist.\n")
    (ragchat.folder / "empty.log").touch()
    failed = ragchat("ask", "What failed?", "-f", "empty.log", "--json")
    assert (failed.code, failed.json["error"]["code"]) == (1, "NOTHING_TO_ASK_ABOUT")


def test_a_question_about_text_on_stdin_says_so_on_stderr(ragchat: Program) -> None:
    ragchat("inject", ".")
    for words in ((), ("--json",)):
        about_text = ragchat("ask", "What failed?", *words, stdin=LOG)
        assert "Answering from the text on stdin, not from memory." in about_text.err
    assert "stdin" not in ragchat("ask", "How hot is green tea brewed?").err


@pytest.mark.skipif(sys.platform == "win32", reason="the shell is a POSIX one")
def test_a_loop_over_the_lines_of_a_file_asks_each_of_memory(ragchat: Program) -> None:
    ragchat("inject", ".")
    (ragchat.folder / "questions").write_text("How hot is green tea brewed?\n" * 2, "utf-8")
    (ragchat.folder / "backup.log").write_text(LOG, "utf-8")
    ask = f"{sys.executable} -m ragchat ask"
    done = subprocess.run(
        [
            "/bin/sh",
            "-c",
            f'while read -r q; do {ask} "$q"; done < questions; {ask} "What failed?" < backup.log',
        ],
        capture_output=True,
        text=True,
        cwd=ragchat.folder,
        env=ragchat.variables,
        check=True,
    )
    assert done.stdout.count("75 degrees") == 2
    assert "backup of the photos failed" in done.stdout
    assert done.stderr.count("Answering from the text on stdin") == 1


def test_an_open_stdin_without_text_does_not_hold_a_question_up(ragchat: Program) -> None:
    ragchat("inject", ".")
    with ragchat.started("ask", "How hot is green tea brewed?") as held:
        assert held.stdout is not None
        assert b"75" in held.stdout.read()


def test_a_one_shot_question_is_continued_by_ask_but_not_by_the_chat(ragchat: Program) -> None:
    ragchat("inject", ".")
    first = ragchat(stdin="How hot is green tea brewed?\n")
    assert first.code == 0
    [conversation] = ragchat("session", "ls", "--json").json["sessions"]
    once = ragchat("ask", "How is espresso pressed?", "--json").json["session_id"]
    ragchat("ask", "How is espresso pressed?", "--no-session")
    assert len(ragchat("session", "ls", "--json").json["sessions"]) == 2
    assert "How is espresso pressed?" not in ragchat(stdin="/sessions\n").out
    assert ragchat("-c", stdin="and for how long?\n").code == 0
    assert len(ragchat("session", "show", conversation["session_id"], "--json").json["turns"]) == 2
    assert ragchat("ask", "-c", "and for how long?", "--json").json["session_id"] != once
    assert ragchat("ask", "--session", once, "and for how long?", "--json").json["session_id"] == once


def test_a_glob_removes_several_documents_if_that_is_confirmed(ragchat: Program) -> None:
    ragchat("inject", ".")
    refused = ragchat("memory", "rm", "*.md", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, "NOT_CONFIRMED")
    assert ragchat("memory", "stats", "--json").json["documents"] == 2
    assert ragchat("memory", "rm", "t*.md").out == "Removed tea.md (1 chunk).\n"
    ragchat("memory", "undo")
    removed = ragchat("memory", "rm", "*.md", "tea.md", "--yes", "--json").json["removed"]
    assert {Path(document["uri"]).name for document in removed} == {"tea.md", "coffee.md"}
    failed = ragchat("memory", "rm", "*.md", "--yes")
    assert (failed.code, failed.err.splitlines()[0]) == (1, "ragchat: No document in memory matches *.md.")


def test_a_folder_is_not_removed_without_a_glob_which_the_error_names(ragchat: Program) -> None:
    (ragchat.folder / "my teas").mkdir()
    (ragchat.folder / "my teas" / "mint.md").write_text("Mint tea is sweet.\n", "utf-8")
    ragchat("inject", ".")
    refused = ragchat("memory", "rm", "tea.md", "my teas/")
    assert (refused.code, refused.err) == (
        1,
        "ragchat: my teas/ is a folder, not a document. Documents in it: 1.\n"
        "  `ragchat memory rm 'my teas/*'` removes them.\n",
    )
    assert ragchat("memory", "rm", "my teas/*").code == 0
    assert ragchat("memory", "stats", "--json").json["documents"] == 2


def test_documents_of_files_that_are_gone_can_be_pruned(ragchat: Program) -> None:
    ragchat("inject", ".")
    (ragchat.folder / "tea.md").unlink()
    kept = ragchat("inject", ".")
    assert "--prune removes it." in kept.err
    pruned = ragchat("inject", ".", "--prune", "--json").json
    assert [Path(uri).name for uri in pruned["pruned"]] == ["tea.md"]
    assert pruned["gone"] == []
    assert "coffee.md" in ragchat("memory", "ls").out
    assert "tea.md" not in ragchat("memory", "ls").out
    (ragchat.folder / "coffee.md").unlink()
    empty = ragchat("inject", ".", "--prune")
    assert "Is the disk mounted?" in empty.err
    assert "coffee.md" in ragchat("memory", "ls").out


def test_memory_can_be_given_to_another_embedder(ragchat: Program) -> None:
    ragchat("inject", ".")
    path = ragchat("memory", "stats", "--json").json["path"]
    with closing(sqlite3.connect(path)) as memory, memory:
        memory.execute("UPDATE meta SET value = 'some:other' WHERE key = 'embedder'")
    refused = ragchat("query", "green tea")
    assert refused.code == 1
    assert "ragchat memory reembed" in refused.err
    done = ragchat("memory", "reembed", "--json").json
    assert done == {
        "chunks": 2,
        "embedder": "local:wordllama-l2-256",
        "computed": 2,
        "kept_embedder": "some:other",
        "kept_bytes": 1024,
    }
    assert ragchat("query", "green tea", "--json").json["hits"]
    assert "embeddings kept" in ragchat("memory", "stats").out
    assert ragchat("memory", "reembed", "--discard").out == (
        "Only the embeddings of local:wordllama-l2-256 are left.\n"
    )
    assert "embeddings kept" not in ragchat("memory", "stats").out
    again = ragchat("memory", "reembed")  # With the same embedder there is nothing to go back to.
    assert (again.out, again.err) == ("Embedded 2 chunks with local:wordllama-l2-256.\n", "")
    assert "embeddings kept" not in ragchat("memory", "stats").out
    assert ragchat("query", "green tea", "--json").json["hits"]


def test_every_skipped_file_can_be_listed(ragchat: Program) -> None:
    for number in range(30):
        (ragchat.folder / f"empty{number}.md").touch()
    shortened, whole = ragchat("inject", "."), ragchat("inject", ".", "-v")
    assert "skipped: 10 more\nThe option -v lists them all.\n" in shortened.err
    assert whole.err.count("skipped: ") == 30
    assert "more" not in whole.err


@pytest.mark.full
def test_web_pages_are_loaded_beside_files_and_kept_in_step(ragchat: Program) -> None:
    with page_server() as pages:
        tea = pages.add("/tea", "<h1>Tea</h1><p>Oolong takes three minutes.", etag='"1"')
        (ragchat.folder / "list.txt").write_text(
            f"# my pages\n{tea}\n\n{pages.url}/none\nftp://a.example/b\n"
        )
        done = ragchat("inject", "--addresses", "list.txt", "--allow-private")
        assert done.out == "1 added, 2 failed (1 chunk).\n"
        assert f"{pages.url}/none answers 404 Not Found." in done.err
        assert "ftp://a.example/b is not loaded: only http and https addresses are." in done.err
        assert ragchat("source", "add", tea, "--allow-private").out.startswith(f"Added {tea}.\n1 unchanged")
        del pages.pages["/tea"]
        gone = ragchat("sync", "--allow-private")
        assert (gone.out, gone.code) == ("1 missing.\n", 0)
        assert gone.err == f"missing: {tea} answers 404 Not Found; memory keeps what it has of it\n"
    bad = ragchat("inject", "--addresses", "-", stdin="tea.md\n")
    assert "The addresses in - cannot be loaded: line 1 is not an address: 'tea.md'." in bad.err
    bad = ragchat("inject", "--addresses", "tea.md")
    assert (bad.code, "is not an address" in bad.err) == (1, True)


@pytest.mark.full
def test_addresses_are_read_with_the_same_limit_and_remarks_from_stdin_and_a_file(ragchat: Program) -> None:
    long = b"#" * (1 + 2**20)
    old = "# Das Café öffnet größer als früher\nftp://a.example/b\n".encode("cp1252")
    for data, remark in (
        (long, "is larger than 1 MiB"),
        (old, "is not UTF-8; it was read as cp1252."),
    ):
        (ragchat.folder / "list.lst").write_bytes(data)
        file, piped = (ragchat("inject", "--addresses", name, stdin=data) for name in ("list.lst", "-"))
        assert (file.code, piped.code) == (1, 1)
        assert remark in file.err
        assert f"The input from stdin {remark}" in piped.err


def test_what_stands_on_stdin_is_loaded_under_the_given_name(ragchat: Program) -> None:
    text = "The garden gate code is 4711."
    assert ragchat("inject", "-", "--uri", "note:gate", "--json", stdin=text).json["added"] == 1
    again = ragchat("inject", "-", "--uri", "note:gate", stdin=text)
    assert (again.code, again.out) == (0, "1 unchanged (1 chunk).\n")
    old = ragchat("inject", "-", stdin="Das Café öffnet um sieben, größer als früher.\n".encode("cp1252"))
    assert "The input from stdin is not UTF-8; it was read as cp1252." in old.err
    empty = ragchat("inject", "-", "--uri", "note:gate", "--json", stdin=" \n")
    assert (empty.code, empty.json["documents"][0]["error"]) == (1, "The input from stdin is empty.")


def test_questions_share_a_session_that_is_kept_and_found_again(ragchat: Program) -> None:
    ragchat("inject", ".")
    first = ragchat("ask", "How long is green tea brewed?", "--json").json
    assert set(first) >= TURN
    assert first["grounded"] is True
    assert "two minutes" in first["answer"]
    assert set(first["citations"][0]) >= CITATION

    second = ragchat("ask", "-", "-c", "--json", stdin="At which pressure is espresso made?\n").json
    assert second["session_id"] == first["session_id"]
    assert "nine bar" in second["answer"]

    [session] = ragchat("session", "ls", "--json").json["sessions"]
    assert (session["session_id"], session["turns"]) == (first["session_id"], 2)
    shown = ragchat("session", "show", first["session_id"][:6])
    assert "> How long is green tea brewed?" in shown.out
    assert "nine bar" in shown.out
    assert "two minutes" in ragchat("session", "export", first["session_id"]).out
    [match] = ragchat("session", "search", "espresso", "--json").json["matches"]
    assert match["turn_id"] == second["turn_id"]
    ragchat("notebook", "new", "thesis")
    assert "The notebook thesis has no past" in ragchat("session", "ls", "--notebook", "thesis").err
    assert ragchat("session", "rm", first["session_id"], first["session_id"]).code == 0
    assert ragchat("session", "ls", "--json").json == {"sessions": []}
    gone = ragchat("ask", "x", "--session", first["session_id"], "--json")
    assert (gone.code, gone.json["error"]["code"]) == (1, "SESSION_NOT_FOUND")


def test_conversations_are_found_by_later_questions_once_they_are_injected(ragchat: Program) -> None:
    ragchat("inject", ".")
    first = ragchat("ask", "How long is green tea brewed for my aunt Rosalind?", "--json").json["session_id"]
    ragchat("ask", "At which pressure is espresso made?", "--session", first)
    once = ragchat("ask", "How is espresso pressed?", "--json").json["session_id"]
    asked = ("ask", "--offline", "--no-session", "--json", "Which aunt did I mention, Rosalind?")
    assert "Rosalind" not in "".join(found["quote"] for found in ragchat(*asked).json["citations"])

    injected = ragchat("session", "inject", first[:6], "--json").json
    [document] = injected["documents"]
    assert (document["uri"], document["status"], injected["added"]) == (
        f"ragchat:session/{first}",
        "added",
        1,
    )
    answered = ragchat(*asked).json
    cited = [*answered["citations"], *answered["nearest"]]
    assert cited[0]["uri"] == document["uri"]
    hit = ragchat("query", "aunt Rosalind", "--json").json["hits"][0]
    assert (hit["uri"], "my aunt Rosalind?" in hit["text"]) == (document["uri"], True)
    shown = ragchat("memory", "show", document["uri"]).out
    assert "At which pressure is espresso made?" in shown
    assert "No language model" not in shown

    ragchat("ask", "Is it hot?", "--session", first)
    again = ragchat("session", "inject", "--all", "--json").json
    assert {one["uri"]: one["status"] for one in again["documents"]} == {
        f"ragchat:session/{first}": "updated",
        f"ragchat:session/{once}": "added",
    }
    assert ragchat("ask", "Hello!").out
    left_out = ragchat("session", "inject", "--all")
    assert left_out.out.startswith("2 unchanged")
    assert "note: 1 conversation without an answer left out." in left_out.err
    assert ragchat("session", "inject", "--all", first).code == 2
    assert ragchat("session", "inject").code == 2


def test_an_answer_on_a_pipe_is_plain_text_with_its_sources(ragchat: Program) -> None:
    ragchat("inject", ".")
    answer = ragchat("ask", "How long is green tea brewed?")
    assert answer.code == 0
    assert "two minutes" in answer.out
    assert "tea.md:" in answer.out
    assert "\x1b" not in answer.out + answer.err


def test_an_empty_memory_is_said_and_is_no_failure(ragchat: Program) -> None:
    assert ragchat("query", "anything", "--json").json["hits"] == []
    assert ragchat("query", "anything").err.startswith("Memory is empty. Load documents with")
    answer = ragchat("ask", "anything at all?", "--json")
    assert (answer.code, answer.json["grounded"]) == (0, False)
    assert ragchat("memory", "ls").err == "Memory is empty.\n"


@pytest.mark.parametrize("command", ["ask", "query"])
def test_an_empty_question_is_one_sentence(ragchat: Program, command: str) -> None:
    run = ragchat(command, " ")
    assert (run.code, run.out, run.err) == (1, "", "ragchat: The question is empty.\n")


def test_a_home_that_cannot_be_made_is_one_sentence_with_a_hint(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path)
    ragchat.home.write_text("in the way", encoding="utf-8")
    run = ragchat("query", "tea")
    assert run.code == 1
    assert run.err.startswith(f"ragchat: The memory {ragchat.home / 'data' / 'memory.db'} cannot be used:")
    assert "Traceback" not in run.err


def test_memory_is_where_the_flag_before_or_after_the_command_says(ragchat: Program, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    assert ragchat("--memory", str(other), "inject", "tea.md").code == 0
    assert ragchat("memory", "stats", "--memory", str(other), "--json").json["documents"] == 1
    assert ragchat("memory", "stats", "--json").json["documents"] == 0
    moved = Program(ragchat.home, ragchat.folder, {"RAGCHAT_MEMORY": str(other)})
    assert moved("memory", "stats", "--json").json["path"] == str(other)


def test_a_file_that_is_no_memory_is_told_in_one_sentence_and_left_alone(
    ragchat: Program, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.db"
    wrong.write_text("this is no database, and long enough to be sure of it" * 40, encoding="utf-8")
    before = wrong.read_bytes()
    for words in (["query", "x"], ["inject", "tea.md"], ["memory", "ls"]):
        failed = ragchat(*words, "--memory", str(wrong))
        assert failed.code == 1
        assert "wrong.db" in failed.err
        assert "Traceback" not in failed.out + failed.err
    failed = ragchat("query", "x", "--memory", str(wrong), "--json")
    assert set(failed.json["error"]) == {"code", "message", "hint"}
    assert wrong.read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="file modes")
def test_memory_and_its_folder_are_their_owners_only(ragchat: Program) -> None:
    ragchat("inject", "tea.md")
    path = ragchat.home / "data" / "memory.db"
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    db.close()


def test_the_versions_of_a_document_are_listed_compared_and_restored(ragchat: Program) -> None:
    tea = ragchat.folder / "tea.md"
    first = tea.read_text(encoding="utf-8")
    ragchat("inject", "tea.md")
    tea.write_text(first.replace("75", "80"), encoding="utf-8")
    ragchat("inject", "tea.md")

    listed = ragchat("memory", "versions", "tea.md", "--json").json["versions"]
    assert [(one["action"], one["current"]) for one in listed] == [("updated", True), ("added", False)]
    assert "updated (current)" in ragchat("memory", "versions", "tea.md").out
    diff = ragchat("memory", "diff", "tea.md")
    assert "-Green tea is brewed at 75 degrees" in diff.out
    assert "+Green tea is brewed at 80 degrees" in diff.out
    assert "\x1b" not in diff.out
    newest = str(listed[0]["number"])
    assert ragchat("memory", "diff", "tea.md", newest, newest).err == "The two versions are equal.\n"

    restored = ragchat("memory", "restore", "tea.md")
    assert restored.out == "Restored version 1 of tea.md (1 chunk).\n"
    assert ragchat("memory", "show", "tea.md").out == first
    ragchat("memory", "rm", "tea.md")
    assert ragchat("memory", "restore", "tea.md", "--json").json["status"] == "added"
    assert ragchat("memory", "show", "tea.md").out == first

    for words, sentence in (
        (("restore", "cake.md"), "There is no document cake.md in memory."),
        (("restore", "tea.md", "99"), "has no version 99 with a text."),
    ):
        refused = ragchat("memory", *words)
        assert (refused.code, refused.out) == (1, "")
        assert sentence in refused.err


def test_chosen_writes_are_undone(ragchat: Program) -> None:
    for name in ("tea.md", "coffee.md"):
        ragchat("inject", name)
    assert ragchat("memory", "undo", "1").out == "Undone: tea.md was added.\n"
    assert "  undone  " in ragchat("memory", "log").out
    refused = ragchat("memory", "undo", "99", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, "NOT_UNDOABLE")
    assert ragchat("memory", "undo", "1", "--since", "1h").code == 2
    assert ragchat("memory", "undo", "last", "2").code == 2
    assert "neither a time in ISO 8601" in ragchat("memory", "undo", "--since", "soon").err
    undone = ragchat("memory", "undo", "--origin", "ragchat", "--since", "1h", "--json").json
    assert (undone["entry"]["seq"], undone["writes"]) == (2, {"added": 1})
    ragchat("inject", "tea.md")
    assert ragchat("memory", "undo", "last").out == "Undone: tea.md was added.\n"
    assert ragchat("memory", "ls", "--json").json["total"] == 0


def test_a_backup_is_a_memory_of_its_own(ragchat: Program) -> None:
    ragchat("inject", "tea.md", "coffee.md")
    made = ragchat("memory", "backup", "copy.db", "--json")
    assert (made.code, made.json["documents"]) == (0, 2)
    refused = ragchat("memory", "backup", "copy.db")
    assert (refused.code, refused.out) == (1, "")
    assert "it already exists." in refused.err
    assert "--force replaces a memory." in refused.err
    assert ragchat("memory", "backup", "copy.db", "--force").out.startswith("Copied the memory to ")

    listed = ragchat("memory", "ls", "--json").json
    assert ragchat("--memory", "copy.db", "memory", "ls", "--json").json == listed
    assert ragchat("--memory", "copy.db", "memory", "verify").code == 0


def test_a_copy_of_a_memory_has_its_history_too(ragchat: Program) -> None:
    ragchat("--memory", "first.db", "inject", "tea.md", "coffee.md")
    ragchat("--memory", "first.db", "memory", "rm", "tea.md")
    copied = ragchat("memory", "copy", "first.db", "second.db", "--json")
    assert (copied.code, copied.json["documents"], copied.json["replaced"]) == (0, 1, 0)
    assert copied.json["target"] == str(ragchat.folder / "second.db")
    said = ragchat("memory", "copy", "first.db", "third.db").out
    assert said == f"Copied 1 document (1 chunk) to {ragchat.folder / 'third.db'}.\n"

    assert ragchat("--memory", "second.db", "memory", "undo").code == 0
    assert len(ragchat("--memory", "second.db", "memory", "ls", "--json").json["documents"]) == 2
    assert ragchat("--memory", "second.db", "memory", "verify").code == 0


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("no.db", "copy.db", "there is no memory {folder}/no.db."),
        ("tea.md", "coffee.md", "The memory cannot be copied to {folder}/coffee.md: it already exists."),
        ("postgresql://me:secret@localhost/x", "copy.db", "it has a password"),
    ],
)
def test_what_cannot_be_copied_is_one_sentence(
    ragchat: Program, source: str, target: str, reason: str
) -> None:
    failed = ragchat("memory", "copy", source, target)
    assert (failed.code, failed.out) == (1, "")
    assert reason.format(folder=ragchat.folder) in failed.err
    assert "secret" not in failed.err
    assert not (ragchat.folder / "copy.db").exists()


def test_an_export_is_imported_elsewhere_and_undone_as_one(ragchat: Program) -> None:
    ragchat("inject", "tea.md", "coffee.md")
    exported = ragchat("memory", "export", "all.jsonl", "--json")
    assert (exported.code, exported.json["documents"]) == (0, 2)
    lines = (ragchat.folder / "all.jsonl").read_text(encoding="utf-8")
    assert lines.startswith('{"format":"ragchat-memory","version":1}\n')
    assert ragchat("memory", "export").out == lines
    assert ragchat("memory", "export", "--json").code == 2
    refused = ragchat("memory", "export", "all.jsonl")
    assert (refused.code, "all.jsonl already exists." in refused.err) == (1, True)

    other = "--memory", "other.db"
    done = ragchat(*other, "memory", "import", "-", stdin=lines + "{nonsense\n\n" + '{"text": 5}\n')
    assert (done.code, done.out) == (1, "Imported 2 documents: 2 added, 0 updated, 0 unchanged.\n")
    assert "Line 4 was refused: it is not valid JSON: " in done.err
    assert "Line 6 was refused: text must be a text, not a whole number." in done.err
    query = "query", "How long does tea steep?", "--json"
    for command in (("memory", "ls", "--json"), query):
        assert ragchat(*other, *command).json == ragchat(*command).json
    again = ragchat(*other, "memory", "import", "all.jsonl", "--json")
    assert (again.code, again.json) == (0, {"added": 0, "updated": 0, "unchanged": 2, "failed": []})
    assert ragchat(*other, "memory", "undo", "--json").json["writes"] == {"added": 2}


def test_an_export_with_vectors_spares_a_memory_of_the_same_embedder_their_computation(
    ragchat: Program,
) -> None:
    ragchat("inject", "tea.md", "coffee.md")
    lines = ragchat("memory", "export", "--vectors").out
    header, *documents = map(json.loads, lines.splitlines())
    assert (header["embedder"], header["dimensions"]) == ("local:wordllama-l2-256", 256)
    assert all(document["vectors"] for document in documents)
    done = ragchat("--memory", "other.db", "memory", "import", "-", stdin=lines)
    assert (done.code, done.err) == (0, "")
    exported = ragchat("--memory", "other.db", "memory", "export", "--vectors").out
    assert exported == lines

    nothing = ragchat("--memory", "empty.db", "memory", "import", "-", stdin=json.dumps(header))
    assert "embedded again" not in nothing.err

    header["embedder"] = "some:other"
    foreign = "\n".join(map(json.dumps, [header, *documents]))
    done = ragchat("--memory", "third.db", "memory", "import", "-", stdin=foreign)
    assert "The vectors of the file are of some:other: its texts were embedded again" in done.err
    assert ragchat("--memory", "third.db", "memory", "export", "--vectors").out == lines


def test_a_file_that_is_no_export_is_not_imported(ragchat: Program) -> None:
    wrong = ragchat("memory", "import", "tea.md", "--json")
    assert (wrong.code, wrong.json["error"]["code"]) == (1, "NOT_AN_EXPORT")
    later = ragchat("memory", "import", "-", stdin='{"format": "ragchat-memory", "version": 2}\n')
    assert (later.code, "has version 2 of the format" in later.err) == (1, True)
    absent = ragchat("memory", "import", "absent.jsonl")
    assert (absent.code, "absent.jsonl does not exist." in absent.err) == (1, True)
    if sys.platform != "win32":
        assert "its first line is not the header" in ragchat("memory", "import", "/dev/zero").err
    refused = ragchat("memory", "export", "absent/all.jsonl")
    assert (refused.code, "absent." in refused.err) == (1, True)


def test_the_root_of_the_file_system_is_named_as_no_memory(tmp_path: Path) -> None:
    done = program_in(tmp_path)("query", "crane", "--memory", str(Path(tmp_path.anchor)))
    assert done.code == 1
    assert "cannot be used: it is a folder" in done.err


@pytest.mark.parametrize("command", [("memory", "stats"), ("query", "tea"), ("ask", "tea"), ("doctor",)])
def test_reading_a_memory_that_does_not_exist_leaves_nothing_behind(
    ragchat: Program, tmp_path: Path, command: tuple[str, ...]
) -> None:
    missing = tmp_path / "mistyped" / "memory.db"
    run = ragchat("--memory", str(missing), *command)
    assert str(missing) in run.out + run.err
    assert ("There is no memory at" in run.err) == (command != ("doctor",))
    assert not missing.parent.exists()
