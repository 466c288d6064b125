"""The store of past sessions and its database, on real SQLite files.

Covers `database`, `search` and `types`.
"""

from __future__ import annotations

import asyncio
import errno
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Coroutine
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ragchat.errors import (
    AmbiguousSession,
    NoSession,
    OnlySingleQuestions,
    SessionDamaged,
    SessionsUnavailable,
    UnknownSession,
    UnknownTurn,
)
from ragchat.sessions.database import MIGRATIONS
from ragchat.sessions.store import SessionStore
from ragchat.sessions.types import Session
from tests.support.turns import turn


def store_in(folder: Path) -> SessionStore:
    return SessionStore(folder / "data" / "sessions.db")


async def test_the_last_turn_of_no_session_is_not_an_unknown_one(tmp_path: Path) -> None:
    async with store_in(tmp_path) as store:
        with pytest.raises(NoSession):
            await store.load_until("")
        with pytest.raises(UnknownTurn):
            await store.load_until("ab")


async def test_a_turn_is_kept_with_its_trace_and_its_session(tmp_path: Path) -> None:
    first, second = turn("What is tea?", turn_id="1"), turn("And coffee?", turn_id="2")
    async with store_in(tmp_path) as store:
        await store.save_turn(first)
        await store.save_turn(second)
    async with store_in(tmp_path) as store:
        session = await store.load("s1")
        assert session.turns == [first, second]
        assert session.title == "What is tea?"
        [info] = await store.list()
        assert (info.session_id, info.title, info.turns) == ("s1", "What is tea?", 2)


_READ = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM turns').fetchone()"


async def test_two_stores_of_a_process_keep_other_programs_from_removing_their_log(tmp_path: Path) -> None:
    async with store_in(tmp_path) as store:
        await store.save_turn(turn("What is tea?", turn_id="1"))
        async with store_in(tmp_path) as second:
            await second.list()
            log = store.path.with_name("sessions.db-wal")
            before = log.stat().st_ino
            command = [sys.executable, "-c", _READ, str(store.path)]
            await anyio.to_thread.run_sync(lambda: subprocess.run(command, check=True))
            assert log.stat().st_ino == before


async def test_a_store_that_is_left_by_a_cancelled_task_has_saved_and_closed_its_file(tmp_path: Path) -> None:
    async def save() -> None:
        task = asyncio.current_task()
        assert task is not None
        async with store_in(tmp_path) as store:
            with suppress(asyncio.CancelledError):
                task.cancel()
                await store.save_turn(turn("What is tea?"))
            task.cancel()  # a signal, while the file is being closed

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(save())
    for thread in threading.enumerate():
        if "_connection_worker" in thread.name:
            thread.join(5)
            assert not thread.is_alive()
    async with store_in(tmp_path) as store:
        assert (await store.load("s1")).title == "What is tea?"


async def test_nothing_is_opened_before_it_is_needed(tmp_path: Path) -> None:
    async with store_in(tmp_path):
        pass
    assert not (tmp_path / "data").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no file modes")
async def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    async with store_in(tmp_path) as store:
        await store.save_turn(turn("Secret?"))
        for file in store.path.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_a_session_is_found_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    async with store_in(tmp_path) as store:
        for number, session_id in enumerate(["abc1", "abd2", "abd"]):
            await store.save_turn(turn("?", turn_id=str(number), session_id=session_id))
        assert (await store.load("abc")).session_id == "abc1"
        assert (await store.load("abd")).session_id == "abd"
        with pytest.raises(AmbiguousSession) as caught:
            await store.load("ab")
        assert sorted(caught.value.matches) == ["abc1", "abd", "abd2"]
        for unknown in ("x", "", "%", "ab_"):
            with pytest.raises(UnknownSession):
                await store.load(unknown)


async def test_the_session_used_last_comes_first(tmp_path: Path) -> None:
    async with store_in(tmp_path) as store:
        with pytest.raises(NoSession):
            await store.load_last()
        await store.save_turn(turn("a?", turn_id="1", session_id="a", created_at="2026-01-01"))
        await store.save_turn(turn("b?", turn_id="2", session_id="b", created_at="2026-01-02"))
        await store.save_turn(turn("a!", turn_id="3", session_id="a", created_at="2026-01-03"))
        assert [info.session_id for info in await store.list()] == ["a", "b"]
        assert [info.session_id for info in await store.list(limit=1)] == ["a"]
        assert (await store.load_last()).session_id == "a"


async def test_with_only_single_questions_the_error_says_so(tmp_path: Path) -> None:
    async with store_in(tmp_path) as store:
        with pytest.raises(NoSession, match="There is no past session yet"):
            await store.load_last(one_shots=False)
        await store.save_turn(turn("a?", turn_id="1", session_id="a"), one_shot=True)
        with pytest.raises(OnlySingleQuestions):
            await store.load_last(one_shots=False)


async def test_one_shot_questions_do_not_hide_conversations(tmp_path: Path) -> None:
    async with SessionStore(tmp_path / "sessions.db") as store:
        await store.save_turn(turn("a?", turn_id="1", session_id="a", created_at="2026-01-01"))
        await store.save_turn(turn("b?", turn_id="2", session_id="b", created_at="2026-01-02"), one_shot=True)
        assert [info.session_id for info in await store.list()] == ["b", "a"]
        assert [info.session_id for info in await store.list(one_shots=False)] == ["a"]
        assert (await store.load_last()).session_id == "b"
        assert (await store.load_last(one_shots=False)).session_id == "a"
        # One that is continued is a conversation.
        await store.save_turn(turn("b!", turn_id="3", session_id="b", created_at="2026-01-03"), one_shot=True)
        assert (await store.load_last(one_shots=False)).session_id == "b"


async def test_a_removed_session_is_gone_from_the_list_and_the_search(tmp_path: Path) -> None:
    async with store_in(tmp_path) as store:
        await store.save_turn(turn("What is tea?"))
        assert (await store.remove("s")).turns == 1
        assert await store.list() == []
        assert await store.search("tea") == []
        with pytest.raises(UnknownSession):
            await store.remove("s")


async def test_a_session_with_a_turn_that_cannot_be_decoded_can_be_removed(tmp_path: Path) -> None:
    async with store_in(tmp_path) as store:
        await store.save_turn(turn("What is tea?"))
        with closing(sqlite3.connect(store.path)) as db, db:
            db.execute("UPDATE turns SET record = x'00'")
        assert (await store.remove("s1")).turns == 1
        assert await store.list() == []


async def test_a_repeated_turn_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    async with store_in(tmp_path) as store:
        await store.save_turn(turn("What?", "Old.", turn_id="1"))
        await store.save_turn(turn("What?", "New.", turn_id="2"), replaces="1")
        assert [kept.answer.text for kept in (await store.load("s1")).turns] == ["New."]
        assert await store.search("old") == []


async def test_questions_and_answers_are_searched_in_any_language(tmp_path: Path) -> None:
    async with store_in(tmp_path) as store:
        await store.save_turn(turn("How do I brew tea?", "Boil the water first.", turn_id="1"))
        await store.save_turn(turn("北京在哪里？", "北京是中国的首都。", turn_id="2"))
        await store.save_turn(turn("Wo ist Köln?", "Am Rhein.", turn_id="3", session_id="s2"))
        for text, found in [
            ("brewing tea", "1"),
            ("boil wat", "1"),
            ("首都", "2"),
            ("koln", "3"),
            ("rhein nirgends", "3"),
        ]:
            assert [match.turn_id for match in await store.search(text)] == [found], text
        [match] = await store.search("water")
        assert (match.session_id, match.title) == ("s1", "How do I brew tea?")
        assert "water" in match.snippet
        assert await store.search("zebra") == []


@pytest.fixture
def with_a_turn(tmp_path: Path) -> Path:
    async def save() -> None:
        async with store_in(tmp_path) as store:
            await store.save_turn(turn("How do I brew tea?", "With hot water.", turn_id="1"))

    anyio.run(save)
    return tmp_path


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=30) | st.sampled_from(['"', "a NEAR b", "x:y", "-z", "a*", "(", "AND", "\0"]))
def test_any_text_is_a_legal_search(text: str, with_a_turn: Path) -> None:
    async def search() -> None:
        async with store_in(with_a_turn) as store:
            assert {match.turn_id for match in await store.search(text)} <= {"1"}
            assert [match.turn_id for match in await store.search("hot water")] == ["1"]

    anyio.run(search)


async def test_two_programs_write_to_one_file_at_once(tmp_path: Path) -> None:
    async with store_in(tmp_path) as one, store_in(tmp_path) as other:
        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(one.save_turn, turn("?", turn_id=f"one{number}", session_id="a"))
                group.start_soon(other.save_turn, turn("?", turn_id=f"other{number}", session_id="b"))
        assert [info.turns for info in await one.list()] == [10, 10]


SAVE_AND_DIE = """
import anyio, os, signal, sys
from pathlib import Path
from ragchat.sessions.database import MIGRATIONS
from ragchat.sessions.store import SessionStore
from ragchat.sessions.types import Session
from tests.support.turns import turn

async def main():
    store = SessionStore(Path(sys.argv[1]))
    await store.save_turn(turn("Kept?", turn_id="kept"))
    os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main)
"""


async def test_a_turn_is_saved_even_if_its_caller_is_cancelled(tmp_path: Path) -> None:
    async with store_in(tmp_path) as store:
        await store.save_turn(turn("?", turn_id="first"))
        with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            await cancelled(store.save_turn(turn("?", turn_id="second")))
            other.execute("ROLLBACK")
        await store.save_turn(turn("?", turn_id="third"))
        await cancelled(store.save_turn(turn("?", turn_id="last")))
    async with SessionStore(store.path) as store:
        kept = [kept.turn_id for kept in (await store.load("s1")).turns]
        assert kept == ["first", "second", "third", "last"]


async def cancelled(work: Coroutine[Any, Any, None]) -> None:
    """Begin it, then cancel it as Ctrl-C does."""
    task = asyncio.create_task(work)
    for _ in range(10):  # until it waits for SQLite
        await anyio.lowlevel.checkpoint()
    if task.cancel():  # SQLite may have been so fast that all is done.
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_commit_that_fails_does_not_hinder_the_next_save(tmp_path: Path) -> None:
    async with store_in(tmp_path) as store:

        async def fail() -> None:
            async with store._database.transaction() as db:
                await db.execute("PRAGMA defer_foreign_keys = ON")  # only the commit finds the fault
                await db.execute("INSERT INTO turns VALUES (1, 't', 'no such session', x'')")

        with pytest.raises(SessionsUnavailable):
            await fail()
        await store.save_turn(turn("?", turn_id="next"))
        assert [kept.turn_id for kept in (await store.load("s1")).turns] == ["next"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
async def test_a_saved_turn_outlives_a_killed_program(tmp_path: Path) -> None:
    path = tmp_path / "data" / "sessions.db"
    command = [sys.executable, "-c", SAVE_AND_DIE, str(path)]
    await anyio.to_thread.run_sync(lambda: subprocess.run(command, cwd=Path.cwd(), check=False))
    async with SessionStore(path) as store:
        assert [kept.turn_id for kept in (await store.load("s1")).turns] == ["kept"]


LIST_AND_END = """
import sqlite3, sys
from contextlib import closing, suppress

with closing(sqlite3.connect(sys.argv[1])) as db:
    db.execute("SELECT * FROM turns").fetchall()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not replace a file that is open")
@pytest.mark.parametrize("is_restored", [True, False])
async def test_turns_are_saved_to_the_file_that_replaced_the_one_that_was_opened(
    tmp_path: Path, is_restored: bool
) -> None:
    async with store_in(tmp_path / "backup") as backup:
        await backup.save_turn(turn("?", turn_id="restored"))
    async with store_in(tmp_path) as store:
        await store.save_turn(turn("?", turn_id="old"))
        if is_restored:
            backup.path.replace(store.path)
        else:
            for file in list(store.path.parent.iterdir()):
                file.unlink()
        await store.save_turn(turn("?", turn_id="new"))
        async with SessionStore(store.path) as other:
            kept = [kept.turn_id for kept in (await other.load("s1")).turns]
            assert kept == (["restored", "new"] if is_restored else ["new"])
            assert (await store.load("s1")).turns == (await other.load("s1")).turns


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX locks")
@pytest.mark.skipif(sqlite3.sqlite_version_info >= (3, 53), reason="it keeps the write-ahead log")
async def test_turns_are_saved_after_another_process_removed_the_write_ahead_log(tmp_path: Path) -> None:
    async with store_in(tmp_path) as store:
        await store.save_turn(turn("?", turn_id="first"))
        store.path.open("rb").close()  # drops SQLite's locks
        command = [sys.executable, "-c", LIST_AND_END, str(store.path)]
        await anyio.to_thread.run_sync(lambda: subprocess.run(command, check=True))
        assert not store.path.with_name("sessions.db-wal").exists()
        await store.save_turn(turn("?", turn_id="second"))
        async with SessionStore(store.path) as other:
            assert [kept.turn_id for kept in (await other.load("s1")).turns] == ["first", "second"]


async def test_a_file_that_is_not_a_database_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    path.write_text("this is not a database, not at all", encoding="utf-8")
    async with SessionStore(path) as store:
        with pytest.raises(SessionsUnavailable) as caught:
            await store.list()
    assert caught.value.path == str(path)
    assert ".recover" in caught.value.hint


async def test_a_session_with_a_damaged_turn_is_named_and_can_be_removed(tmp_path: Path) -> None:
    async with store_in(tmp_path) as store:
        await store.save_turn(turn("What is tea?", turn_id="1", session_id="s1"))
        await store.save_turn(turn("And green tea?", turn_id="2", session_id="s2"))
        with closing(sqlite3.connect(store.path)) as db, db:
            db.execute("UPDATE turns SET record = CAST(x'7B2261223A22FF227D' AS BLOB) WHERE turn_id = '1'")
        for reading in (store.load("s1"), store.turns("s1", 5)):
            with pytest.raises(SessionDamaged) as caught:
                await reading
            assert caught.value.session_id == "s1"
        assert [match.session_id for match in await store.search("tea")] == ["s2"]
        assert [info.session_id for info in await store.list()] == ["s2", "s1"]
        await store.remove("s1")
        assert [info.session_id for info in await store.list()] == ["s2"]


async def test_a_file_of_a_later_release_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(path: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    async with store_in(tmp_path) as store:
        await store.save_turn(turn("What is tea?", turn_id="1"))
    path = tmp_path / "data" / "sessions.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    before = path.read_bytes()
    sentence = f"the file has version {len(MIGRATIONS) + 1}; this release supports up to {len(MIGRATIONS)}"
    async with store_in(tmp_path) as store:
        with pytest.raises(SessionsUnavailable, match=sentence) as caught:
            await store.save_turn(turn("And coffee?", turn_id="2"))
        assert caught.value.hint.startswith("Update ragchat")
        monkeypatch.setattr("ragchat.sessions.database._create", read_only)
        with pytest.raises(SessionsUnavailable, match=sentence):
            await store.list()
    assert path.read_bytes() == before


async def test_a_folder_that_cannot_be_made_is_an_error_too(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    async with SessionStore(tmp_path / "file" / "sessions.db") as store:
        with pytest.raises(SessionsUnavailable):
            await store.save_turn(turn("?"))


async def test_migrations_leave_their_number_and_run_once(tmp_path: Path) -> None:
    for _ in range(2):
        async with store_in(tmp_path) as store:
            await store.list()
    with sqlite3.connect(tmp_path / "data" / "sessions.db") as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()


async def test_a_long_question_makes_a_short_title_on_one_line(tmp_path: Path) -> None:
    async with store_in(tmp_path) as store:
        await store.save_turn(turn("Why\n is this?" + " word" * 100))
        [info] = await store.list()
        assert info.title.startswith("Why is this? word word")
        assert len(info.title) == 80


async def test_where_the_disk_is_full_past_sessions_are_read_and_a_turn_is_saved_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async with store_in(tmp_path) as store:
        await store.save_turn(turn("What is tea?", turn_id="1"))
    async with store_in(tmp_path) as store:
        with monkeypatch.context() as patch:
            patch.setattr("ragchat.sessions.database._create", full)
            assert [info.title for info in await store.list()] == ["What is tea?"]
            with pytest.raises(SessionsUnavailable, match="cannot be used: the disk is full"):
                await store.save_turn(turn("And coffee?", turn_id="2"))
            assert len((await store.load("s1")).turns) == 1
        await store.save_turn(turn("And coffee?", turn_id="2"))
        assert len((await store.load("s1")).turns) == 2


async def test_turns_are_read_in_pages(tmp_path: Path) -> None:
    async with store_in(tmp_path) as store:
        for number in range(5):
            await store.save_turn(turn(f"Question {number}?", turn_id=str(number)))

        async def page(limit: int, **where: str) -> str:
            return "".join(one.turn_id for one in await store.turns("s1", limit, **where))

        assert [await page(2), await page(2, before="3"), await page(9, before="2")] == ["34", "12", "01"]
        assert [await page(2, start="1"), await page(9, start="3"), await page(9, before="0")] == [
            "12",
            "34",
            "",
        ]
        assert (await store.turn("s1", "2")).question == "Question 2?"
        for session_id, turn_id in (("s1", "9"), ("s1", ""), ("s2", "1")):
            with pytest.raises(UnknownSession):
                await store.turn(session_id, turn_id)


async def test_a_session_can_be_renamed(tmp_path: Path) -> None:
    async with store_in(tmp_path) as store:
        await store.save_turn(turn("What is tea?"))
        await store.rename("s1", "Tea\nand more")
        await store.save_turn(turn("And coffee?", turn_id="t2"))
        assert (await store.info("s1")).title == "Tea and more"
        with pytest.raises(UnknownSession):
            await store.rename("s2", "Nothing")


async def test_a_fork_has_the_turns_before_a_turn_and_leaves_the_session_as_it_was(tmp_path: Path) -> None:
    async with store_in(tmp_path) as store:
        for number in range(3):
            await store.save_turn(turn(f"Question {number}?", turn_id=str(number)))
        fork = await store.fork("s1", before="2")
        assert [one.question for one in (await store.load(fork.session_id)).turns] == [
            "Question 0?",
            "Question 1?",
        ]
        assert (await store.info(fork.session_id)).title == "Question 0? (fork)"
        assert {one.session_id for one in await store.search("Question 1")} == {"s1", fork.session_id}
        assert len((await store.load("s1")).turns) == 3
        nothing = await store.fork("s1", before="0")
        with pytest.raises(UnknownSession):
            await store.info(nothing.session_id)
        assert len((await store.fork("s1")).turns) == 3


async def test_a_notebook_has_its_own_sessions(tmp_path: Path) -> None:
    async with store_in(tmp_path) as store:
        await store.save_turn(turn("Bees?", turn_id="1", session_id="a"), notebook="hive")
        await store.save_turn(turn("Bees and tea?", turn_id="2", session_id="b"))
        assert [info.session_id for info in await store.list(notebook="hive")] == ["a"]
        assert [match.session_id for match in await store.search("bees", notebook="hive")] == ["a"]
        assert (await store.load_last(notebook="hive")).notebook == "hive"
        fork = await store.fork("a")
        assert (await store.info(fork.session_id)).notebook == "hive"
        assert await store.release("hive") == 2
        assert await store.list(notebook="hive") == []


async def test_an_imported_session_is_added_once_and_takes_over_no_other(tmp_path: Path) -> None:
    first, second = (turn("Bees?", turn_id=id, session_id="a", created_at="9999") for id in "12")
    async with store_in(tmp_path) as store:
        await store.save_turn(turn("Mine?", turn_id="0", session_id="mine"), notebook="own")
        assert await store.add(Session("a", "Bees?", "2026", [first], "hive")) == 1
        assert await store.add(Session("a", "Other?", "2026", [first, second], "hive")) == 1
        assert await store.add(Session("mine", "Evil?", "2026", [second], "hive")) == 0
        assert (await store.info("mine")).turns == 1
        found = await store.info("a")
        assert (found.title, found.turns) == ("Bees?", 2)
        assert found.updated_at < "9999"
