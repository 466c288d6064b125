"""Hostile settings, from files, environment and flags: in force, or refused in a sentence, no traceback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragchat.settings import ModelSettings, RetrievalSettings, ToolSettings
from ragchat.turn.prompt import PromptSettings
from ragconfig.errors import SettingsError
from ragconfig.settings import known_keys, load_settings
from ragmemory.embedders import EmbedderSettings
from ragmemory.http.serving import HttpSettings
from ragmemory.ingest.chunking import ChunkingSettings
from ragmemory.settings import LimitSettings, MemorySettings, RankingSettings
from tests.fuzz.hostile import UNSHRUNK, few, numbers, texts, words
from tests.support.program import Program, program_in

TABLES: dict[str, type] = {
    "model": ModelSettings,
    "retrieval": RetrievalSettings,
    "tools": ToolSettings,
    "prompts": PromptSettings,
    "memory": MemorySettings,
    "limits": LimitSettings,
    "embedder": EmbedderSettings,
    "chunking": ChunkingSettings,
    "ranking": RankingSettings,
    "http": HttpSettings,
}
KEYS = known_keys(load_settings(environ={}, folder=Path("/nowhere")))
# An environment variable holds no NUL and no surrogate.
variable_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)

values = (
    numbers
    | st.floats()
    | st.booleans()
    | words
    | st.lists(words | numbers, max_size=3)
    | st.dictionaries(words, words, max_size=2)
)
keys = st.sampled_from(KEYS) | st.tuples(st.sampled_from(sorted(TABLES)) | words, words).map(".".join)


def toml_of(assigned: dict[str, Any]) -> str:
    """A TOML document, each key in a table of its own: what is given twice is an error of its own."""
    lines = []
    for key, value in assigned.items():
        table, _, name = key.partition(".")
        lines += [f"[{quoted(table)}]", f"{quoted(name)} = {literal(value)}"]
    return "\n".join(lines)


def quoted(text: str) -> str:
    # JSON leaves DEL as it is, TOML does not take it.
    return json.dumps(text).replace("\x7f", "\\u007f")


def literal(value: Any) -> str:
    match value:
        case float():
            return repr(value)
        case dict():
            return "{" + ", ".join(f"{quoted(key)} = {literal(inner)}" for key, inner in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(literal, value)) + "]"
        case str():
            return quoted(value)
    return str(value).lower()


documents = st.dictionaries(keys, values, max_size=3).map(toml_of) | texts
variables = st.dictionaries(
    st.sampled_from([f"RAGCHAT_{key.replace('.', '_').upper()}" for key in KEYS])
    | st.text("ABC_", min_size=1, max_size=8).map("RAGCHAT_".__add__),
    variable_texts | numbers.map(str) | st.sampled_from(["nan", "inf", "-inf", "1e999", "true", "0x1", "١"]),
    max_size=3,
)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        (Path(name) / "config").mkdir()
        yield Path(name)


def check(folder: Path, environ: dict[str, str], flags: dict[str, Any]) -> None:
    """Every layer and every table: values, or a SettingsError."""
    try:
        loaded = load_settings(None, flags, {"RAGCHAT_HOME": str(folder)} | environ, folder)
    except SettingsError:
        return
    for name, type in TABLES.items():
        with suppress(SettingsError):
            loaded.table(name, type)


@given(text=documents)
def test_any_user_file_is_read_or_refused(folder: Path, text: str) -> None:
    path = folder / "config" / "config.toml"
    path.write_text(text, encoding="utf-8")
    check(folder, {}, {})
    path.unlink()


@given(content=documents.map(str.encode) | st.binary(max_size=60))
def test_any_project_file_is_read_or_refused(folder: Path, content: bytes) -> None:
    path = folder / "ragchat.toml"
    path.write_bytes(content)
    check(folder, {}, {})
    path.unlink()


@given(environ=variables, flags=st.dictionaries(keys, values, max_size=2))
def test_any_environment_and_flags_are_read_or_refused(
    folder: Path, environ: dict[str, str], flags: dict[str, Any]
) -> None:
    check(folder, environ, flags)


@pytest.fixture
def ragchat(tmp_path: Path) -> Program:
    return program_in(tmp_path)


@settings(few(4), phases=UNSHRUNK, suppress_health_check=list(HealthCheck))
@given(text=documents, environ=variables)
def test_the_program_shows_any_settings_or_a_sentence(
    ragchat: Program, text: str, environ: dict[str, str]
) -> None:
    (ragchat.folder / "ragchat.toml").write_text(text, encoding="utf-8")
    done = Program(ragchat.home, ragchat.folder, environ)("config", "show", "--json")
    assert (done.code, sorted(done.json)) in [(0, ["keys", "settings"]), (1, ["error"])], done
    assert done.err == ""
