"""Which files the user's paths name or contain."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragcommon.files.decoding import MAX_FILE_BYTES
from ragmemory.files.walking import FoundFiles, Subset, find_files, is_walked
from tests.support.users import ordinary_user

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX file kinds")


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def names(found: FoundFiles, root: Path) -> list[str]:
    return [file.path.relative_to(root.resolve()).as_posix() for file in found.files]


def reasons(found: FoundFiles) -> dict[str, tuple[str, bool]]:
    return {
        Path(refusal.uri).name: (refusal.reason, refusal.status == "failed") for refusal in found.refusals
    }


def test_a_folder_gives_its_files_in_the_order_of_their_names(tmp_path: Path) -> None:
    write(tmp_path, {"b.md": "b", "a.txt": "a", "sub/c.rst": "c", "sub/deep/d.py": "d"})
    assert names(find_files([tmp_path]), tmp_path) == ["a.txt", "b.md", "sub/c.rst", "sub/deep/d.py"]


def test_hidden_entries_of_a_folder_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, {".secret.md": "x", ".git/config": "x", "seen.md": "x", "~$seen.docx": "x"})
    found = find_files([tmp_path])
    assert names(found, tmp_path) == ["seen.md"]
    assert not found.refusals


def test_what_logseq_keeps_for_itself_is_left_out_unless_it_is_named(tmp_path: Path) -> None:
    old = "logseq/bak/pages/Bees/2024-05-01T10_11_12.123Z.Desktop.md"
    write(tmp_path, {"pages/Bees.md": "x", old: "x", "logseq/version-files/base/a.md": "x", "bak/b.md": "x"})
    write(tmp_path, {"logseq/config.edn": "x", "logseq/custom.css": "x"})
    assert names(find_files([tmp_path]), tmp_path) == ["bak/b.md", "pages/Bees.md"]
    assert not is_walked(tmp_path, tmp_path / old)
    assert names(find_files([tmp_path / "logseq/bak"]), tmp_path) == [old]


def test_a_path_that_is_no_uri_of_a_document_is_refused(tmp_path: Path) -> None:
    folder = tmp_path
    for _ in range(6):
        folder /= "ы" * 120
    write(folder, {"long.md": "x"})
    write(tmp_path, {"short.md": "x"})
    found = find_files([tmp_path])
    assert names(found, tmp_path) == ["short.md"]
    reason = "has too long a path: its URI would have more than 4,096 characters"
    assert reasons(found) == {"long.md": (reason, False)}
    assert reasons(find_files([folder / "long.md"])) == {"long.md": (reason, True)}


def test_the_memory_itself_is_left_out_of_its_folder(tmp_path: Path) -> None:
    write(tmp_path, {"m.db": "x", "m.db-wal": "x", "m.db-index/segment": "x", "sub/m.db": "x", "n.md": "x"})
    found = find_files([tmp_path], tmp_path / "m.db")
    assert names(found, tmp_path) == ["n.md"]
    assert reasons(found) == {"m.db": ("is in a format that is not read (database)", False)}
    assert find_files([tmp_path / "m.db"], tmp_path / "m.db").refusals


def test_files_of_keys_and_passwords_are_read_only_if_they_are_named(tmp_path: Path) -> None:
    secret = (
        *("id_ed25519", "prod.env", "Server.key", "Server.PEM", "vault.kdbx", "shadow", "gshadow-"),
        *("ssh_host_rsa_key", "terraform.tfstate", "prod.tfstate.backup"),
    )
    write(tmp_path, dict.fromkeys((*secret, "id_ed25519.pub", "environment.md", "key", "passwd"), "x"))
    found = find_files([tmp_path])
    assert names(found, tmp_path) == ["environment.md", "id_ed25519.pub", "key", "passwd"]
    assert reasons(found) == dict.fromkeys(
        secret, ("may hold keys or passwords, and is read only if you name it", False)
    )
    assert names(find_files([tmp_path / "prod.env"]), tmp_path) == ["prod.env"]


def test_files_that_are_made_from_others_are_read_only_if_they_are_named(tmp_path: Path) -> None:
    for_browsers = ("app.min.js", "site-min.css", "app.js.map")
    lists = ("Cargo.lock", "go.sum", "package-lock.json", "pages-metadata.edn", "wax_1688157093843_0.edn")
    made = (*for_browsers, *lists)
    written = ["admin.js", "go.mod", "lock.md", "map.js", "min.css", "package.json"]
    write(tmp_path, dict.fromkeys((*made, *written), "x"))
    found = find_files([tmp_path])
    assert names(found, tmp_path) == written
    assert reasons(found) == dict.fromkeys(
        made, ("is made from other files, and is read only if you name it", False)
    )
    assert names(find_files([tmp_path / "app.min.js"]), tmp_path) == ["app.min.js"]


@pytest.mark.parametrize("name", ["notes", "notes-wal", "link"])
def test_a_file_of_the_memory_that_is_named_is_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"notes": "x", "notes-wal": "x"})
    (tmp_path / "link").symlink_to(tmp_path / "notes")
    found = find_files([tmp_path / name], tmp_path / "notes")
    assert not found.files
    assert [refusal.reason for refusal in found.refusals] == ["is a file of the memory itself"]


def test_a_hidden_or_ignored_file_that_is_named_is_taken(tmp_path: Path) -> None:
    write(tmp_path, {".notes.md": "x", "log/a.md": "x", ".gitignore": "log/"})
    assert names(find_files([tmp_path / ".notes.md", tmp_path / "log" / "a.md"]), tmp_path) == [
        ".notes.md",
        "log/a.md",
    ]


def test_gitignore_files_hold_for_their_folder_and_below_and_the_deeper_one_has_the_last_word(
    tmp_path: Path,
) -> None:
    write(
        tmp_path,
        {
            ".gitignore": "*.log\n/only-here.md\nbuild/\n",
            "a.log": "x",
            "only-here.md": "x",
            "build/out.md": "x",
            "sub/only-here.md": "x",
            "sub/.gitignore": "!keep.log\nprivate.md\n",
            "sub/keep.log": "x",
            "sub/drop.log": "x",
            "sub/private.md": "x",
            "private.md": "x",
        },
    )
    assert names(find_files([tmp_path]), tmp_path) == ["private.md", "sub/keep.log", "sub/only-here.md"]


def test_the_repository_above_a_folder_says_what_is_ignored_in_it(tmp_path: Path) -> None:
    write(tmp_path, {".git/HEAD": "", ".gitignore": "*.tmp\n", "docs/a.md": "x", "docs/b.tmp": "x"})
    assert names(find_files([tmp_path / "docs"]), tmp_path) == ["docs/a.md"]


def test_a_named_folder_is_loaded_although_the_repository_ignores_it(tmp_path: Path) -> None:
    write(tmp_path, {".git/HEAD": "", ".gitignore": "out/\n", "out/a.md": "x"})
    assert names(find_files([tmp_path / "out"]), tmp_path) == ["out/a.md"]


def test_an_unsupported_file_has_failed_when_named_and_is_left_out_of_a_folder(tmp_path: Path) -> None:
    write(tmp_path, {"paper.doc": b"%DOC", "Page.webarchive": b"bplist00", "song.mp3": b"ID3", "a.md": "x"})
    write(tmp_path, {"talk.key": b"PK" * 40_000})
    why = {
        "paper.doc": "is in a format that is not read: save it as .docx",
        "Page.webarchive": "is in a format that is not read: save it as .html",
        "talk.key": "is in a format that is not read: save it as .pptx",
        "song.mp3": "is in a format that is not read (sound or film)",
    }
    assert reasons(find_files([tmp_path])) == {name: (reason, False) for name, reason in why.items()}
    for name, reason in why.items():
        assert reasons(find_files([tmp_path / name])) == {name: (reason, True)}


def test_a_path_that_is_not_there_has_failed_and_the_others_are_found(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "x"})
    found = find_files([tmp_path / "gone.md", tmp_path / "a.md"])
    assert names(found, tmp_path) == ["a.md"]
    assert reasons(found) == {"gone.md": ("does not exist", True)}


@pytest.fixture
def ordinary_folder() -> Iterator[Path]:
    with ordinary_user() as folder:
        yield folder


@posix
def test_a_folder_without_search_permission_is_reported_and_the_walk_continues(
    ordinary_folder: Path,
) -> None:
    write(ordinary_folder, {".git/HEAD": "", "a.md": "x", "closed/b.md": "x", "z.md": "x"})
    closed = ordinary_folder / "closed"
    closed.chmod(0o600)
    found = find_files([ordinary_folder, closed])
    inside = is_walked(ordinary_folder, closed / "b.md")
    closed.chmod(0o700)
    assert names(found, ordinary_folder) == ["a.md", "z.md"]
    assert reasons(found)["b.md"] == ("cannot be read: permission denied", True)
    assert inside


def test_an_empty_path_names_nothing_and_never_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"a.md": "x"})
    monkeypatch.chdir(tmp_path)
    found = find_files([""])
    assert (found.files, found.folders) == ([], [])
    [refusal] = found.refusals
    assert (refusal.reason, refusal.uri) == ("does not exist", "")


def test_a_file_that_is_meant_twice_is_taken_once(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "x"})
    assert names(find_files([tmp_path, tmp_path / "a.md", tmp_path]), tmp_path) == ["a.md"]


@posix
def test_links_in_a_circle_end(tmp_path: Path) -> None:
    write(tmp_path, {"sub/a.md": "x"})
    (tmp_path / "sub" / "up").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to(tmp_path / "self")
    found = find_files([tmp_path])
    assert names(found, tmp_path) == ["sub/a.md"]
    reason = f"is a broken link (cannot be read: {os.strerror(errno.ELOOP).lower()})"
    assert [(Path(refusal.uri).name, refusal.reason) for refusal in found.refusals] == [("self", reason)]


@posix
def test_a_link_that_leads_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path, {"private/key.txt": "secret", "project/a.md": "x"})
    (tmp_path / "project" / "innocent.txt").symlink_to(tmp_path / "private" / "key.txt")
    (tmp_path / "project" / "all").symlink_to(tmp_path / "private")
    found = find_files([tmp_path / "project"])
    assert names(found, tmp_path) == ["project/a.md"]
    assert set(reasons(found).values()) == {("is a link to a place outside the folder", False)}


@posix
def test_a_named_link_is_followed_and_stands_for_its_target(tmp_path: Path) -> None:
    write(tmp_path, {"real/a.md": "x"})
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert names(find_files([tmp_path / "link"]), tmp_path) == ["real/a.md"]


@posix
def test_a_pipe_is_refused_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    assert reasons(find_files([tmp_path])) == {"pipe.txt": ("is not a regular file", False)}


def test_a_walk_that_is_cancelled_ends_at_the_next_entry(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "x", "b.md": "x", "c/d.md": "x"})
    checked = iter(range(3))  # at the folder, at its first entry, at its second one

    def check_cancelled() -> None:
        if next(checked) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        find_files([tmp_path], check_cancelled=check_cancelled)
    assert next(checked, None) is None


def test_a_file_above_the_limit_is_refused_with_both_sizes(tmp_path: Path) -> None:
    path = tmp_path / "large.md"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    reason = "cannot be read: it is larger than 128 MiB (128.1 MiB); split or unpack it"
    assert reasons(find_files([tmp_path])) == {"large.md": (reason, False)}
    assert reasons(find_files([path])) == {"large.md": (reason, True)}


@posix
def test_the_folders_of_the_system_are_skipped_unless_they_are_named(tmp_path: Path) -> None:
    found = find_files(["/"], subset=Subset([Path("/dev"), tmp_path]))
    assert ("file:///dev", "skipped") in [(one.uri, one.status) for one in found.refusals]
    found = find_files(["/dev"], subset=Subset([tmp_path]))
    assert "file:///dev" not in [one.uri for one in found.refusals]
