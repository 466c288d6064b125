"""Parsers that misbehave. Worker processes import them by name."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from ragmemory.files.formats.file_text import FileText


def hang(path: Path, data: bytes) -> FileText:
    del path, data
    threading.Event().wait()
    raise AssertionError


def crash(path: Path, data: bytes) -> FileText:
    del path, data
    os._exit(3)


def fail(path: Path, data: bytes) -> FileText:
    raise KeyError(path, data)


def swallow_memory(path: Path, data: bytes) -> FileText:
    return FileText(data.decode() * (1 << 40), path.name)


def fill_320_mib(path: Path, data: bytes) -> FileText:
    del data
    return FileText(str(len(bytes(320 << 20)) >> 20), path.name)


def fill_640_mib(path: Path, data: bytes) -> FileText:
    del data
    return FileText(str(len(bytes(640 << 20)) >> 20), path.name)


def count(path: Path, data: bytes) -> FileText:
    """The length of the data as its text."""
    return FileText(str(len(data)), path.name)


def lack_a_package(path: Path, data: bytes) -> FileText:
    raise ModuleNotFoundError(f"No module for {path} ({len(data)})", name="selectolax")


def miss_a_part(path: Path, data: bytes) -> FileText:
    raise OSError(f"{path} ({len(data)}) contains no valid part")
