"""Real text in any amount: the judged collections where present, then Python's own library and its docs."""

from __future__ import annotations

import itertools
import json
import sysconfig
from collections.abc import Iterator
from pathlib import Path

COLLECTIONS = Path(__file__).resolve().parents[3] / "shared" / "retrieval"
WORDS = 110  # of one paragraph: what fills most of one chunk


def paragraphs() -> Iterator[str]:
    """Paragraphs of about WORDS words, without end.

    When the sources are used up they start again, cut at other places: no paragraph comes twice.
    """
    return itertools.chain.from_iterable(_paragraphs_once(37 * turn % WORDS) for turn in itertools.count())


def _paragraphs_once(skipped: int) -> Iterator[str]:
    """All paragraphs of the sources; the first `skipped` words of each file are left out."""
    for corpus in sorted(COLLECTIONS.glob("*/corpus.jsonl")):
        for line in corpus.read_text(encoding="utf-8").splitlines():
            yield from _pieces(json.loads(line)["text"], skipped)
    for folder in (sysconfig.get_path("purelib"), sysconfig.get_path("stdlib")):
        for path in sorted(Path(folder).rglob("*")):
            if path.suffix in {".py", ".md", ".rst", ".txt"} and path.is_file():
                yield from _pieces(path.read_text(encoding="utf-8", errors="ignore"), skipped)


def _pieces(text: str, skipped: int) -> Iterator[str]:
    words = text.split()[skipped:]
    for start in range(0, len(words), WORDS):
        piece = words[start : start + WORDS]
        if len(piece) > 5:
            yield " ".join(piece)


def questions(count: int) -> list[str]:
    """Questions people asked of the collections; without them, the first words of paragraphs."""
    asked = [
        json.loads(line)["text"]
        for name in ("squad_dev", "cranfield", "cosqa")
        if (path := COLLECTIONS / name / "queries.jsonl").exists()
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    if not asked:
        asked = [" ".join(text.split()[3:11]) for text in itertools.islice(paragraphs(), count)]
    step = max(1, len(asked) // count)
    return asked[::step][:count]


def write_folder(folder: Path, files: int, paragraphs_per_file: int) -> None:
    """`files` Markdown files with a title, and a heading every four paragraphs."""
    source = paragraphs()
    for number in range(files):
        blocks = [f"# Note {number}"]
        for index in range(paragraphs_per_file):
            if index and index % 4 == 0:
                blocks.append(f"## Part {index // 4}")
            blocks.append(next(source))
        (folder / f"note-{number:05}.md").write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
