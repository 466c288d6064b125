"""Scanned pages and images of text, read with tesseract or a program that acts like it.

Covers `ragmemory.files.ocr_cache`, `ragmemory.files.formats.scans` and `ragmemory.files.formats.image`.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from struct import pack

import anyio
import pytest
from anyio.abc import Process

from ragcommon.files.decoding import NoText, NotText
from ragmemory.files import ocr as module
from ragmemory.files import ocr_cache
from ragmemory.files.formats import detection, image, mail, scans
from ragmemory.files.formats.file_text import FileText
from ragmemory.files.formats.scans import Image, Recognised, Scans
from ragmemory.files.ocr import Ocr, OcrSettings
from ragmemory.files.ocr_cache import OcrCache
from ragmemory.files.parsing import parse
from ragmemory.files.reading import UNREAD_SCANS, is_current
from ragmemory.files.walking import find_files
from tests.support.documents import archive, pdf, photo, png, scan

pytest.importorskip("pypdfium2", reason="the extra `pdf` is not installed")
needs_tesseract = pytest.mark.skipif(not shutil.which("tesseract"), reason="tesseract is not installed")
posix = pytest.mark.skipif(sys.platform == "win32", reason="a script is no program on Windows")

OAK = "The oldest oak of Arden\nwas planted in 1612."
BEES = "Bees live in wooden hives."
# What tesseract writes: a page with one word in each of two paragraphs.
HEAD = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n"
ROWS = "5\t1\t1\t1\t1\t1\t0\t0\t9999\t9999\t{0}\tHello\n5\t1\t1\t2\t1\t1\t0\t9\t9\t9\t{0}\tworld\n"


def ocr(
    program: str = "tesseract",
    languages: str = "eng",
    *,
    folder_images: bool = False,
    cache: Path | None = None,
) -> Ocr:
    return Ocr(OcrSettings(program, languages, folder_images), OcrCache(cache) if cache else None)


def program(
    folder: Path, body: str, cache: Path | None = None, version: str = "1", languages: str = "eng"
) -> Ocr:
    """A program that does `body` for a page; `note` is a file next to it."""
    path = folder / "reader"
    path.write_text(
        f"#!{sys.executable}\nimport os, pathlib, signal, sys\n"
        f"note = pathlib.Path({str(folder / 'note')!r})\n"
        "if '--list-langs' in sys.argv:\n    print('Languages:', 'eng', 'deu', sep='\\n')\n    sys.exit()\n"
        f"if '--version' in sys.argv:\n    print('reader {version}')\n    sys.exit()\n"
        f"data = sys.stdin.buffer.read()\n{body}\n",
        encoding="utf-8",
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return ocr(str(path), languages, cache=cache)


def says(confidence: int) -> str:
    return f"print({(HEAD + ROWS.format(confidence)).strip()!r})"


async def read(path: Path, content: bytes, with_ocr: Ocr | None) -> FileText:
    path.write_bytes(content)  # noqa: ASYNC240 (a small file)
    with anyio.fail_after(120):
        return await parse(detection.read, path, with_ocr)


@needs_tesseract
async def test_pages_without_text_and_images_are_read_and_marked(tmp_path: Path) -> None:
    found = await read(tmp_path / "-l.pdf", pdf(["One.", scan(OAK), "", scan(BEES)]), ocr())
    assert found.text == f"One.\n\n{OAK}\n\n{BEES}\n"
    assert found.places == [(1, "p. 1"), (3, "p. 2 (OCR)"), (6, "p. 4 (OCR)")]
    first, second = found.note.split("; ")
    assert first == "has no text on p. 3, which may be scanned"
    assert second.startswith("was read by OCR on p. 2, 4 with 9")
    alone = await read(tmp_path / "oak.png", photo(OAK), ocr())
    assert (alone.text, alone.places) == (f"{OAK}\n", [(1, "(OCR)")])


@posix
async def test_the_images_in_an_archive_are_read_only_if_all_images_are(tmp_path: Path) -> None:
    reader = program(tmp_path, says(95))
    packed = archive({"oak.png": png(9, 9), "bees.pdf": pdf([scan(BEES)])})
    some = await read(tmp_path / "a.zip", packed, reader)
    assert some.places == [(1, "bees.pdf"), (3, "bees.pdf p. 1 (OCR)")]
    assert "oak.png (is an image)" in some.note
    both = await read(tmp_path / "a.zip", packed, ocr(reader.path, folder_images=True))
    assert both.places[:2] == [(1, "oak.png"), (3, "oak.png (OCR)")]


@needs_tesseract
async def test_a_language_without_data_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotText, match="lacks the data of the language xyz in ocr"):
        await read(tmp_path / "a.pdf", pdf([scan(OAK)]), ocr(languages="xyz+eng"))
    with pytest.raises(NotText, match='languages is "-c x", which is not like'):
        await read(tmp_path / "a.pdf", pdf([scan(OAK)]), ocr(languages="-c x"))


async def test_without_the_program_the_reason_names_it_and_a_sync_removes_nothing(tmp_path: Path) -> None:
    reader = ocr("no-such-program")
    with pytest.raises(NotText) as caught:
        await read(tmp_path / "a.pdf", pdf([scan(OAK)]), reader)
    assert str(caught.value) == (
        "has no text on any page: it may be scanned, "
        "and the program tesseract, which reads scans, is not installed"
    )
    assert not isinstance(caught.value, NoText)
    with pytest.raises(NotText, match=r"not read \(image\): the program tesseract, .* is not installed"):
        await read(tmp_path / "a.png", png(9, 9), reader)
    assert (await read(tmp_path / "b.pdf", pdf(["One.", scan(OAK)]), reader)).has_unread_scans
    assert not (await read(tmp_path / "c.pdf", pdf(["One.", ""]), reader)).has_unread_scans


def test_a_file_with_unread_scans_has_changed_once_they_can_be_read() -> None:
    for stored, can_read, is_same in [
        ("8:5:7@3", True, True),
        (f"8:5:7{UNREAD_SCANS}@3", False, True),
        (f"8:5:7{UNREAD_SCANS}@3", True, False),
        ("8:5:6@3", False, False),
    ]:
        assert is_current(stored, "8:5:7", can_read_scans=can_read) is is_same
    assert not is_current("", "", can_read_scans=True)


@posix
async def test_the_program_gets_the_image_and_nothing_of_the_file_else(tmp_path: Path) -> None:
    reader = program(tmp_path, "note.write_text(repr(sys.argv[1:]) + data[:2].decode())\n" + says(95))
    found = await read(tmp_path / "-c secret.pdf", pdf([scan(OAK)], title="$(secret)"), reader)
    assert (found.text, found.note) == ("Hello\n\nworld\n", "was read by OCR on p. 1 with 95% confidence")
    told = (tmp_path / "note").read_text()
    assert told == "['stdin', 'stdout', '-l', 'eng', '-c', 'tessedit_page_number=0', 'tsv']P5"


@posix
@pytest.mark.parametrize(
    ("body", "note"),
    [
        (says(70), "was read by OCR on p. 2 with 70% confidence; OCR was unsure on p. 2: compare"),
        (says(20), "OCR found no text on p. 2"),
        ("sys.exit('Out of ink.')", "OCR failed on p. 2: it ended with exit code 1 (Out of ink.)"),
        ("print('x' * 20_000_000)", "OCR failed on p. 2: it wrote more than"),
        ("os.kill(os.getpid(), 9)", "OCR failed on p. 2: it was ended by signal 9"),
        ("print('no table')", "OCR found no text on p. 2"),
        (f"print({HEAD + 'a' + chr(9) + 'b'!r})", "OCR failed on p. 2: it wrote no table of words"),
    ],
)
async def test_what_the_program_does_to_a_page_is_said(tmp_path: Path, body: str, note: str) -> None:
    pages = scans.ScannedPages(b"")
    pages._read[2] = await program(tmp_path, body).read("", Image(b""))
    assert pages.note().startswith(note)


@posix
async def test_a_page_with_ruled_lines_is_read_without_them_if_that_finds_more(tmp_path: Path) -> None:
    ruled = pdf([scan(b"4 w 72 400 m 540 400 l S 72 300 m 540 300 l S")])
    one, more = (
        repr((HEAD + row).strip())
        # A word over the upper one of the two lines, and two words over both.
        for row in ("5\t1\t1\t1\t1\t1\t0\t0\t9999\t1800\t95\tHello\n", ROWS.format(95))
    )
    fewer = program(tmp_path, f"print({one} if b'\\0' * 400 in data else {more})")
    assert (await read(tmp_path / "a.pdf", ruled, fewer)).text == "Hello\n\nworld\n"
    none = program(tmp_path, f"print({one} if b'\\0' * 400 in data else '')")
    assert (await read(tmp_path / "a.pdf", ruled, none)).text == "Hello\n"
    noise = repr((HEAD + "5\t1\t1\t1\t1\t1\t0\t0\t9\t9\t45\t|=~_Hell0_=~|\n").strip())
    noisy = program(tmp_path, f"print({noise} if b'\\0' * 400 in data else {more})")
    assert (await read(tmp_path / "a.pdf", ruled, noisy)).text == "Hello\n\nworld\n"


@posix
async def test_a_page_whose_print_is_in_words_is_read_once(tmp_path: Path) -> None:
    ruled = pdf([scan(b"4 w 72 400 m 540 400 l S")])
    counts = "note.open('a').write('x')\n"
    await read(tmp_path / "a.pdf", ruled, program(tmp_path, counts + says(95)))
    assert (tmp_path / "note").read_text() == "x"


@posix
async def test_a_program_that_ends_before_its_memory_is_limited_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: object) -> None:
        raise ProcessLookupError

    monkeypatch.setattr("resource.prlimit", ended, raising=False)
    assert not await program(tmp_path, "").problem()


@posix
async def test_a_program_that_hangs_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start, pids = module._started, []

    @asynccontextmanager
    async def started(command: Sequence[str]) -> AsyncIterator[Process]:
        async with start(command) as process:
            pids.append(process.pid)
            yield process

    hangs = program(tmp_path, "signal.pause()")
    monkeypatch.setattr(module, "_started", started)
    monkeypatch.setattr(module, "PAGE_SECONDS", 0.5)
    assert (await hangs.read("", Image(b""))).problem == "it took longer than 0 seconds"
    [pid] = pids
    assert is_gone(pid)


@posix
async def test_the_program_is_killed_with_its_job(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")
    hangs = program(
        tmp_path,
        "note.write_text(str(os.getpid()))\n(note.parent / 'started').write_text('')\nsignal.pause()",
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, tmp_path / "a.pdf", pdf([scan(OAK)]), hangs)
        with anyio.fail_after(60):
            await anyio.to_thread.run_sync((tmp_path / "started").read_text, abandon_on_cancel=True)
        tasks.cancel_scope.cancel()
    assert is_gone(int((tmp_path / "note").read_text()))


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@posix
async def test_an_image_with_too_many_pixels_never_reaches_the_program(tmp_path: Path) -> None:
    with pytest.raises(NotText, match="is an image of 60,000 × 60,000 pixels"):
        await read(tmp_path / "bomb.png", png(60_000, 60_000), program(tmp_path, "note.touch()"))
    assert not (tmp_path / "note").exists()


def tiff(*sizes: tuple[int, int]) -> bytes:
    data = b"II*\0" + pack("<I", 8)
    for number, (width, height) in enumerate(sizes, 1):
        following = len(data) + 30 if number < len(sizes) else 0
        data += pack("<HHHIIHHIII", 2, 256, 3, 1, width, 257, 4, 1, height, following)
    return data


@pytest.mark.parametrize(
    ("data", "sizes"),
    [
        (png(3, 4), [(3, 4)]),
        (b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc2\0\x0b\x08\0\x04\0\x03", [(3, 4)]),
        (b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x03\0\x04\0", [(3, 4)]),
        (b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x02\xc0\0\0", [(3, 4)]),
        (b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x02\0\0\x03\0\0", [(3, 4)]),
        (tiff((3, 4), (5, 6)), [(3, 4), (5, 6)]),
        (b"GIF89a", []),
    ],
)
def test_the_size_of_an_image_is_in_its_header(data: bytes, sizes: list[tuple[int, int]]) -> None:
    assert list(image._sizes(data)) == sizes


def test_a_tiff_whose_pages_lead_in_a_circle_ends() -> None:
    circle = tiff((3, 4))[:-4] + pack("<I", 8)
    assert list(image._sizes(circle)) == [(3, 4)]


@pytest.mark.parametrize(
    "data", [b"", b"\x89PNG\r\n\x1a\n", tiff((3, 4))[:20], b"\xff\xd8\0", b"RIFF1234WEBP"]
)
def test_a_damaged_image_is_refused(data: bytes) -> None:
    with pytest.raises(NotText, match="is a damaged image file, or not one at all"):
        image.read(Path("a.png"), data)


def test_the_pages_of_a_tiff_are_read_one_by_one() -> None:
    state = Scans(problem="", room=1 << 20)
    token = scans.scans.set(state)
    try:
        with pytest.raises(NoText):
            image.read(Path("a.tiff"), tiff((3, 4), (5, 6)))
        assert [one.page for one in state.wanted.values()] == [0, 1]
        state.known = {key: Recognised(f"Page {one.page}.") for key, one in state.wanted.items()}
        found = image.read(Path("a.tiff"), tiff((3, 4), (5, 6)))
    finally:
        scans.scans.reset(token)
    assert found.places == [(1, "p. 1 (OCR)"), (3, "p. 2 (OCR)")]


def test_only_so_many_scanned_pages_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "MAX_PAGES", 1)
    token = scans.scans.set(state := Scans(problem=""))
    try:
        pages = scans.ScannedPages(b"")
        for number in (1, 2, 3):
            pages.text(number, lambda: Image(b""))
    finally:
        scans.scans.reset(token)
    assert len(state.missing) == 1
    assert pages.note() == "OCR failed on p. 2–3: only 1 scanned pages of a file are read"


def test_an_image_attached_to_an_e_mail_is_read_only_if_all_images_are() -> None:
    message = (
        b"From: a@b\nSubject: Oak\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n--x\n"
        b"Content-Type: image/png\nContent-Disposition: attachment; filename=oak.png\n"
        b"Content-Transfer-Encoding: base64\n\niVBORw0KGgoAAA==\n--x--\n"
    )
    for with_images, wants in ((False, ""), (True, "oak.png (is a damaged image file, or not one at all)")):
        token = scans.scans.set(Scans(problem="", with_images=with_images))
        try:
            assert wants in mail.read(Path("a.eml"), message).note
        finally:
            scans.scans.reset(token)


def test_an_image_in_a_folder_is_left_out_and_one_that_is_named_is_not(tmp_path: Path) -> None:
    (tmp_path / "oak.jpg").write_bytes(b"")
    assert [file.path.name for file in find_files([tmp_path / "oak.jpg"]).files] == ["oak.jpg"]
    [left] = find_files([tmp_path]).refusals
    assert (left.reason, left.status) == ("is in a format that is not read (image)", "skipped")
    [left] = find_files([tmp_path], image_refusal=ocr(sys.executable).image_refusal).refusals
    assert left.reason == "is an image, which is read only if you name it"
    assert find_files([tmp_path], image_refusal=ocr(sys.executable, folder_images=True).image_refusal).files


@posix
async def test_a_second_load_reads_only_the_pages_that_the_first_did_not(tmp_path: Path) -> None:
    second_fails = (
        # Several pages are read at once: each has its own place in the file.
        "file = note.open('ab', 0)\nfile.write(b'x')\nif file.tell() == 2:\n    sys.exit('Out of ink.')\n"
    )
    reader = program(tmp_path, second_fails + says(95), tmp_path / "ocr.db")
    document = pdf([scan(OAK), scan(BEES)])
    for hellos, calls in ((1, 2), (2, 3), (2, 3)):
        assert (await read(tmp_path / "a.pdf", document, reader)).text.count("Hello") == hellos
        assert (tmp_path / "note").stat().st_size == calls


@posix
async def test_a_page_is_read_again_by_another_version_and_in_another_language(tmp_path: Path) -> None:
    cache = tmp_path / "ocr.db"
    for version, languages, known in (("1", "eng", 0), ("1", "eng", 1), ("2", "eng", 0), ("2", "deu", 0)):
        reader = program(tmp_path, says(20), cache, version, languages)
        assert not await reader.problem()
        assert len(await reader.cached(["a"])) == known
        # What cannot be used is kept too.
        assert await reader.read("a", Image(b"")) == Recognised("", 20)


def test_the_cache_drops_its_oldest_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr_cache, "MAX_BYTES", 100_000)
    cache = OcrCache(tmp_path / "ocr.db")
    for number in range(100):
        cache.add("r", str(number), Recognised(f"{number:04}" * 1_000, 90))
    kept = [int(key) for key in cache.find("r", map(str, range(100)))]
    assert kept == list(range(kept[0], 100))
    assert 10 < len(kept) < 25
    assert (tmp_path / "ocr.db").stat().st_size < 120_000


def test_a_damaged_cache_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "ocr.db"
    path.write_bytes(b"no database " * 100)
    cache = OcrCache(path)
    assert cache.find("r", ["a"]) == {}
    cache.add("r", "a", Recognised("Oak", 90))
    assert cache.find("r", ["a", "b"]) == {"a": Recognised("Oak", 90)}


def test_a_cache_that_cannot_be_opened_or_is_locked_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ocr_cache, "BUSY_SECONDS", 0)
    (tmp_path / "file").touch()
    OcrCache(tmp_path / "ocr.db").add("r", "a", Recognised("Oak"))
    with closing(sqlite3.connect(tmp_path / "ocr.db")) as other:
        other.execute("BEGIN EXCLUSIVE")
        for path in (tmp_path / "ocr.db", tmp_path / "file" / "ocr.db", tmp_path):
            OcrCache(path).add("r", "b", Recognised("Ash"))
            assert OcrCache(path).find("r", ["a"]) == {}
    assert [*OcrCache(tmp_path / "ocr.db").find("r", "ab")] == ["a"]
