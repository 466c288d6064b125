"""Parsers that misbehave. Worker processes import them by name."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from ragmemory.files.formats.read import Read


def hang(path: Path, data: bytes) -> Read:
    del path, data
    threading.Event().wait()
    raise AssertionError


def crash(path: Path, data: bytes) -> Read:
    del path, data
    os._exit(3)


def fail(path: Path, data: bytes) -> Read:
    raise KeyError(path, data)


def swallow_memory(path: Path, data: bytes) -> Read:
    return Read(data.decode() * (1 << 40), path.name)


def fill_320_mib(path: Path, data: bytes) -> Read:
    del data
    return Read(str(len(bytes(320 << 20)) >> 20), path.name)


def fill_640_mib(path: Path, data: bytes) -> Read:
    del data
    return Read(str(len(bytes(640 << 20)) >> 20), path.name)


def count(path: Path, data: bytes) -> Read:
    """The length of the data as its text."""
    return Read(str(len(data)), path.name)


def lack_a_package(path: Path, data: bytes) -> Read:
    raise ModuleNotFoundError(f"No module for {path} ({len(data)})", name="selectolax")


def miss_a_part(path: Path, data: bytes) -> Read:
    raise OSError(f"{path} ({len(data)}) contains no valid part")
