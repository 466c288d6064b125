"""Parsers run in worker processes, within limits. Covers `ragmemory.files.formats.detection` too."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import anyio
import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files import parsing
from ragmemory.files.formats.detection import TEXT, module_for, module_of, read
from ragmemory.files.formats.file_text import FileText, MissingExtra
from ragmemory.files.parsing import Parsers, machine_memory, parse
from ragmemory.files.reading import read_file
from tests.support.documents import archive, epub_members, odt_members, pdf
from tests.support.parsers import (
    count,
    crash,
    fail,
    fill_320_mib,
    fill_640_mib,
    hang,
    lack_a_package,
    miss_a_part,
    swallow_memory,
)


async def parsed(parser: parsing.Parser, path: Path) -> FileText:
    with anyio.fail_after(60):
        return await parse(parser, path)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.bin"
    path.write_bytes(b"12345")
    return path


async def test_a_parser_reads_the_bytes_of_a_file(file: Path) -> None:
    assert await parsed(count, file) == FileText("5", "a.bin")


async def test_a_parser_that_hangs_is_killed_and_the_next_file_is_read(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await parsed(count, file)  # The process has started.
    monkeypatch.setattr(parsing, "DEADLINE_SECONDS", 0.2)
    with pytest.raises(NotText, match="cannot be read: it took longer than"):
        await parsed(hang, file)
    monkeypatch.undo()
    assert (await parsed(count, file)).text == "5"


async def test_a_parser_that_crashes_the_process_refuses_one_file(file: Path) -> None:
    with pytest.raises(NotText, match="cannot be read: its parser crashed, or needs more than"):
        await parsed(crash, file)
    assert (await parsed(count, file)).text == "5"


@pytest.mark.parametrize(
    ("parser", "reason"),
    [
        (fail, r"it is damaged \(KeyError\)"),
        (miss_a_part, r"it is damaged \(OSError\)"),
        (swallow_memory, "it needs more than .* MiB of memory"),
    ],
)
async def test_a_parser_that_fails_refuses_the_file(parser: parsing.Parser, reason: str, file: Path) -> None:
    with pytest.raises(NotText, match=f"cannot be read: {reason}"):
        await parsed(parser, file)


@pytest.mark.parametrize(
    ("memory", "workers", "share"),
    [
        *((1 << 30, 1, 512 << 20), (4 << 30, 2, 512 << 20)),
        *((8 << 30, 4, 512 << 20), (64 << 30, 4, 1 << 30)),
    ],
)
async def test_the_parsers_share_a_part_of_the_machines_memory(
    memory: int, workers: int, share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "WORKERS", 4)
    shared = Parsers(memory)
    assert (shared.workers, shared.share) == (workers, share)
    assert workers * share == shared.budget


async def test_a_file_that_needs_more_than_its_share_is_read_alone(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "MIN_MEMORY", 128 << 20)
    monkeypatch.setattr(parsing, "WORKERS", 2)
    shared = Parsers(2 << 30)
    assert (shared.share, shared.budget) == (256 << 20, 512 << 20)
    parsing._parsers.set(shared)
    assert (await parsed(fill_320_mib, file)).text == "320"
    with pytest.raises(NotText, match="cannot be read: it needs more than 512 MiB of memory"):
        await parsed(fill_640_mib, file)


async def test_a_parser_that_runs_alone_waits_for_the_others() -> None:
    shared = Parsers(8 << 30)
    ran = []

    async def run_alone() -> None:
        async with shared.alone():
            assert shared.limiter.available_tokens == 0
            ran.append("alone")

    async with anyio.create_task_group() as tasks:
        await shared.limiter.acquire()
        for _ in range(2):
            tasks.start_soon(run_alone)
        await anyio.wait_all_tasks_blocked()
        assert not ran
        shared.limiter.release()
    assert ran == ["alone", "alone"]
    assert shared.limiter.borrowed_tokens == 0


async def test_a_small_pdf_that_takes_gigabytes_is_refused_within_the_budget(tmp_path: Path) -> None:
    pytest.importorskip("pypdfium2", reason="the extra `pdf` is not installed")
    parsing._parsers.set(Parsers(1 << 30))
    path = tmp_path / "bomb.pdf"
    path.write_bytes(pdf([b"BT /F1 12 Tf 72 720 Td " + b"(a) Tj " * 1_200_000 + b"ET"]))
    assert path.stat().st_size < 100_000
    with pytest.raises(NotText, match="its parser crashed, or needs more than 512 MiB of memory"):
        await parsed(read, path)


@pytest.mark.skipif(sys.platform == "win32", reason="cgroups are of Linux")
def test_the_memory_of_a_container_is_that_of_its_group(tmp_path: Path) -> None:
    (groups := tmp_path / "cgroup").write_text("3:cpu:/a\n2:memory:/docker/c\n0::/user/chat\n")
    machine = machine_memory(groups, tmp_path)
    (inner := tmp_path / "user/chat").mkdir(parents=True)
    (inner / "memory.max").write_text("max\n")
    assert machine_memory(groups, tmp_path) == machine
    (tmp_path / "user/memory.max").write_text("3000000\n")
    assert machine_memory(groups, tmp_path) == 3_000_000
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/memory.limit_in_bytes").write_text("2000000\n")
    assert machine_memory(groups, tmp_path) == 2_000_000


async def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await parsed(count, tmp_path / "gone.bin")


DOCX = archive({"word/document.xml": "<x/>"})


@pytest.mark.parametrize(
    ("name", "data", "module"),
    [
        ("a.txt", pdf(["One."]), "pdf"),
        ("a.md", b"%PDF-1.4 is the first line of a PDF.\n\n1 0 obj begins an object.", "text"),
        ("a.md", b"%PDF-1.4\n\nThat is the first line of a PDF.", "text"),
        ("a.md", b"`%PDF-1.4`\n1 0 obj\n", "text"),
        ("a.pdf", b"junk\n" + pdf(["One."]), "pdf"),
        ("a.pdf", b"<!DOCTYPE html><title>Not found</title>", "html"),
        ("a.pdf", b"Please log in.", "text"),
        ("a.pdf", b"", "text"),
        ("a.pdf", bytes(range(32)), "pdf"),
        ("a.md", archive({"a.txt": "A"}), "bundles"),
        ("a.zip", DOCX, "docx"),
        ("a.xlsx", DOCX, "docx"),
        ("a.docx", archive({"a.txt": "A"}), "docx"),
        ("a.md", archive(epub_members("Tea", [])), "epub"),
        ("a.txt", archive(odt_members("")), "odf"),
        ("a.docx", b"Dear Ada,", "text"),
        ("a.txt", b"{\\rtf1\\ansi Hello.}", "rtf"),
        ("a.txt", b"{\\rtf is how RTF begins", "text"),
        ("a.txt", gzip.compress(b"x", mtime=0), "bundles"),
        ("a.txt", b"BZh is a mark", "text"),
        ("a.txt", b"<!DOCTYPE html><title>Tea</title>", "html"),
        ("a.vue", b"<html>{{ tea }}</html>", "text"),
        ("a.txt", b"Subject: Tea\nReceived: from a\n by b\nmime-version: 1.0\n\nTea.", "mail"),
        ("a", b"From ada@x.org Mon Mar  2 10:00:00 2026\nMIME-Version: 1.0\n\nTea.", "mail"),
        ("a.txt", b"From: Ada\nSubject: Tea\n\nMIME-Version: is a header.", "text"),
        ("a.html", b"No tag at all", "html"),
        ("a.PDF", pdf(["One."]), "pdf"),
        ("a.json", b'[{"type": "message", "ts": "1.2"}]', "chats"),
    ],
)
def test_the_first_bytes_choose_the_module_and_the_name_among_those_they_allow(
    name: str, data: bytes, module: str
) -> None:
    assert module_of(Path(name), data) == module


async def test_a_pdf_named_as_text_is_read_as_one_and_a_text_named_as_a_pdf_is_text(tmp_path: Path) -> None:
    pytest.importorskip("pypdfium2", reason="the extra `pdf` is not installed")
    (path := tmp_path / "a.txt").write_bytes(pdf(["One."]))
    assert read_file(path) == "pdf"
    found = await parsed(read, path)
    assert (found.text, found.places) == ("One.\n", [(1, "p. 1")])
    assert found.note == "is a PDF file, not what its name says"
    (path := tmp_path / "a.pdf").write_text("Please log in.\n")
    assert isinstance(read_file(path), str)
    found = await parsed(read, path)
    assert (found.text, found.note) == ("Please log in.\n", "is text, not what its name says")


async def test_an_empty_file_is_not_said_to_be_of_another_kind_than_its_name(tmp_path: Path) -> None:
    (path := tmp_path / "a.pdf").write_bytes(b" ")
    assert isinstance(read_file(path), str)
    with pytest.raises(NotText, match=r"^is empty"):
        await parsed(read, path)


async def test_a_mail_and_a_page_named_as_text_are_read_without_their_source(tmp_path: Path) -> None:
    mail = b"From: ada@x.org\nMIME-Version: 1.0\nContent-Transfer-Encoding: base64\n\nVGVhLg==\n"
    for number, (data, kind) in enumerate(
        [(mail, "an e-mail"), (b"<html><p>Tea.<script>x</script>", "a web page")]
    ):
        (path := tmp_path / f"{number}.txt").write_bytes(data)
        assert isinstance(read_file(path), str)
        found = await parsed(read, path)
        assert found.text.endswith("Tea.\n")
        assert "script" not in found.text
        assert found.note == f"is {kind}, not what its name says"


@pytest.mark.parametrize(
    "name", ["cur/1713340900.M22P99.host,S=90:2,S", "new/1204680122.27c448.example.org", "Inbox"]
)
async def test_messages_in_files_whose_names_say_no_format_are_read(tmp_path: Path, name: str) -> None:
    mail = b"From: ada@x.org\nMIME-Version: 1.0\nContent-Transfer-Encoding: base64\n\nVGVhLg==\n"
    (path := tmp_path / name).parent.mkdir(exist_ok=True)
    path.write_bytes(mail)
    assert isinstance(read_file(path), str)
    found = await parsed(read, path)
    assert (found.text, found.note) == ("From: ada@x.org\n\nTea.\n", "")
    (path := tmp_path / "cur" / "a.json").parent.mkdir(exist_ok=True)
    path.write_text("{}")
    assert isinstance(read_file(path), FileText)


async def test_an_unreadable_file_is_reported_with_its_actual_format(tmp_path: Path) -> None:
    (path := tmp_path / "a.md").write_bytes(archive({"b.png": b"\0"}))
    with pytest.raises(NotText, match="is an archive, not what its name says, and has files that were not"):
        await parsed(read, path)
    path = path.rename(tmp_path / "a.kra")  # This name says nothing.
    with pytest.raises(NotText, match="is an archive, and has files that were not"):
        await parsed(read, path)


def test_without_the_content_the_extension_chooses_the_parser_in_either_case() -> None:
    assert module_for(Path("a.PDF")) == "pdf"
    assert module_for(Path("a.md")) == TEXT


async def test_a_format_is_read_by_its_module(tmp_path: Path) -> None:
    path = tmp_path / "a.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\nHello.\n", encoding="utf-8")
    assert (await parsed(read, path)).text == "Hello.\n"


async def test_a_package_that_is_missing_is_named(file: Path) -> None:
    with pytest.raises(NotText, match="needs the package selectolax, which is not installed"):
        await parsed(lack_a_package, file)


def test_a_missing_extra_is_named_with_the_command() -> None:
    assert str(MissingExtra("pdf")) == "needs `pip install 'ragchat[pdf]'`"
