"""The layers of settings, and the packaged files they start from.

Covers `home` and `errors`.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import sys
from collections.abc import Callable, Mapping
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragchat.commands.config import template
from ragchat.settings import RetrievalSettings
from ragconfig.errors import InvalidSetting, SettingsError
from ragconfig.home import Home
from ragconfig.settings import (
    FROM_A_PROJECT,
    MAX_BYTES,
    PACKAGED,
    Settings,
    fingerprint,
    known_keys,
    load_settings,
    ranges,
)

ROOT = Path(__file__).resolve().parents[2]
DEFAULTS = load_settings(environ={"RAGCHAT_HOME": str(ROOT / "nowhere")}, folder=ROOT)


class Limits(msgspec.Struct):
    message_bytes: int


class Tools(msgspec.Struct):
    offered: list[str]
    rounds: int
    timeout_seconds: float


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "config").mkdir(parents=True)
    (tmp_path / "project").mkdir()
    return tmp_path / "home"


def load(home: Path, environ: Mapping[str, str] | None = None, **options: Any) -> Settings:
    variables = {"RAGCHAT_HOME": str(home), **(environ or {})}
    return load_settings(environ=variables, folder=home.parent / "project", **options)


def user_file(home: Path, text: str) -> Path:
    path = home / "config" / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def project_file(home: Path, text: str) -> Path:
    path = home.parent / "project" / "ragchat.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_each_layer_wins_over_the_one_below_and_says_where_it_stood(home: Path) -> None:
    key = "retrieval.top_k"
    assert (load(home).tables["retrieval"]["top_k"], load(home).origins.get(key)) == (30, None)
    user = user_file(home, "[retrieval]\ntop_k = 9\nmin_score = 0.5")
    assert load(home).origins[key] == str(user)
    project = project_file(home, "[retrieval]\ntop_k = 10")
    assert (load(home).tables["retrieval"]["top_k"], load(home).origins[key]) == (10, str(project))
    environ = {"RAGCHAT_RETRIEVAL_TOP_K": "11"}
    assert load(home, environ).tables["retrieval"]["top_k"] == 11
    assert load(home, environ).origins[key] == "the environment variable RAGCHAT_RETRIEVAL_TOP_K"
    flagged = load(home, environ, flags={key: 12, "model.name": None})
    assert (flagged.tables["retrieval"]["top_k"], flagged.origins[key]) == (12, "the command line")
    assert flagged.tables["retrieval"]["min_score"] == 0.5


@pytest.mark.parametrize(
    ("text", "sentence", "hint"),
    [
        ("[model]\nnmae = 'x'", "Unknown setting model.nmae in {file}, line 2.", "Did you mean model.name?"),
        ("[modle]\nname = 'x'", "Unknown setting modle.name in {file}, line 2.", "Did you mean model.name?"),
        ("name = 'x'", "Unknown setting name in {file}, line 1.", None),
        (
            "[qqq]\nzzz = 'x'",
            "Unknown setting qqq.zzz in {file}, line 2.",
            "The nearest one that exists is index.quantization.",
        ),
        ("[retreival]", "Unknown setting retreival in {file}.", "Did you mean retrieval.top_k?"),
        ("[model", "The settings file {file} cannot be read: it is not valid TOML: ", None),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_place(home: Path, text: str, sentence: str, hint: str) -> None:
    path = user_file(home, text)
    with pytest.raises(SettingsError) as caught:
        load(home)
    assert str(caught.value).startswith(sentence.format(file=path))
    if hint is not None:
        assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("variable", "nearest", "hint"),
    [
        ("RAGCHAT_MODEL_NAEM", "RAGCHAT_MODEL_NAME", "Did you mean RAGCHAT_MODEL_NAME?"),
        ("RAGCHAT_MODEL", "RAGCHAT_MODEL_NAME", "Did you mean RAGCHAT_MODEL_NAME?"),
        ("RAGCHAT_TOPK", "RAGCHAT_RETRIEVAL_TOP_K", "Did you mean RAGCHAT_RETRIEVAL_TOP_K?"),
        ("RAGCHAT_BASE_URL", "RAGCHAT_MODEL_BASE_URL", "Did you mean RAGCHAT_MODEL_BASE_URL?"),
        ("RAGCHAT_HOEM", "RAGCHAT_HOME", "Did you mean RAGCHAT_HOME?"),
        ("RAGCHAT_MEMRY", "RAGCHAT_MEMORY", "Did you mean RAGCHAT_MEMORY?"),
        ("RAGCHAT_FOO", "RAGCHAT_HOME", "`ragchat config show` lists all settings."),
        ("RAGCHAT_" + "X" * 10_000, "RAGCHAT_", "`ragchat config show` lists all settings."),
    ],
)
def test_an_unknown_variable_is_an_error_that_names_the_nearest(
    home: Path, variable: str, nearest: str, hint: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(home, {variable: "x"})
    message = str(caught.value)
    assert f"variable {variable[:80]} (the nearest that exists is {nearest}" in message
    assert len(message) < 400
    assert caught.value.hint == hint


def test_variables_take_the_type_of_their_key(home: Path) -> None:
    environ = {
        "RAGCHAT_MEMORY": "/m.db",
        "RAGCHAT_TOOLS_OFFERED": "Query, Inject",
        "RAGCHAT_TOOLS_ROUNDS": "7",
        "RAGCHAT_MODEL_OLLAMA_SECONDS": "1",
        "RAGCHAT_MODEL_BASE_URL": "http://x",
    }
    settings = load(home, environ)
    assert settings.tables["memory"]["path"] == "/m.db"
    assert settings.table("tools", Tools) == Tools(["Query", "Inject"], 7, 30.0)
    assert settings.tables["model"]["ollama_seconds"] == 1.0
    assert settings.tables["model"]["base_url"] == "http://x"


def test_a_variable_of_the_wrong_type_is_named_with_its_value(home: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        load(home, {"RAGCHAT_TOOLS_ROUNDS": "many"})
    assert str(caught.value) == (
        "tools.rounds is not usable: it takes a whole number, not 'many' "
        "(from the environment variable RAGCHAT_TOOLS_ROUNDS)."
    )


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[tools]\nrounds = 'x'", "tools.rounds"),
        ("[tools]\noffered = ['a', 1]", "tools.offered"),
        ("[tools]\noffered = 'a'", "tools.offered"),
        ("[memory]\npath = 3", "memory.path"),
        ("[tools]\ntimeout_seconds = true", "tools.timeout_seconds"),
    ],
)
def test_a_value_of_the_wrong_type_is_named_with_its_file_and_line(home: Path, text: str, key: str) -> None:
    path = user_file(home, text)
    with pytest.raises(SettingsError) as caught:
        load(home)
    assert str(caught.value).startswith(f"{key} is not usable: ")
    assert str(caught.value).endswith(f"(from {path}, line 2).")


def test_a_project_may_set_a_few_keys_and_no_others(home: Path) -> None:
    for key in known_keys(DEFAULTS):
        table, _, name = key.partition(".")
        value = DEFAULTS.tables[table][name]
        project = project_file(home, f"[{table}]\n{name} = {json.dumps(value)}")
        if key in FROM_A_PROJECT:
            assert load(home).origins[key] == str(project)
            continue
        with pytest.raises(SettingsError) as caught:
            load(home)
        assert str(caught.value) == f"{project} sets {key}, which a project may not decide for you."
        assert caught.value.hint.startswith(
            "It may set retrieval.min_score, retrieval.passage_tokens, retrieval.top_k."
        )
        assert str(home / "config" / "config.toml") in caught.value.hint


def test_a_project_cannot_shorten_the_history_of_memory(home: Path) -> None:
    project_file(home, "[memory]\nundo_depth = 1")
    with pytest.raises(SettingsError, match=r"sets memory\.undo_depth, which a project may not decide"):
        load(home)


def test_a_key_that_a_project_misspells_is_unknown(home: Path) -> None:
    project = project_file(home, "[retrieval]\ntop_kk = 3")
    with pytest.raises(
        SettingsError, match=re.escape(f"Unknown setting retrieval.top_kk in {project}, line 2.")
    ):
        load(home)


def test_the_guide_names_what_a_project_may_set() -> None:
    guide = (ROOT / "docs" / "guide" / "settings.md").read_text(encoding="utf-8")
    paragraph = next(part for part in guide.split("\n\n") if part.startswith("A project's `ragchat.toml`"))
    assert set(re.findall(r"`(\w+\.\w+)`", paragraph)) - {"ragchat.toml"} == FROM_A_PROJECT


NUMBERS = [
    (table, name)
    for table, values in DEFAULTS.tables.items()
    for name, value in values.items()
    if type(value) in (int, float)
]


def test_every_number_has_a_range_that_holds_its_default() -> None:
    assert {(table, name) for table, names in ranges().items() for name in names} == set(NUMBERS)
    for table, name in NUMBERS:
        least, greatest = ranges()[table][name]
        assert least <= DEFAULTS.tables[table][name] <= greatest, name


def beyond(table: str, name: str) -> list[float]:
    """Values outside of a number's range."""
    least, greatest = ranges()[table][name]
    if isinstance(DEFAULTS.tables[table][name], int):
        return [int(least) - 1, int(greatest) + 1, -(2**63), 2**64]
    return [least - 0.001, greatest * 2 + 1, math.inf, -math.inf, math.nan]


def test_a_number_out_of_its_range_is_refused_wherever_it_comes_from(home: Path) -> None:
    for table, name in NUMBERS:
        key = f"{table}.{name}"
        variable = f"RAGCHAT_{table}_{name}".upper()
        for value in beyond(table, name):
            file = user_file(home, f"[{table}]\n{name} = {value!r}")
            refused(home, key, f"{file}, line 2")
            file.unlink()
            refused(home, key, f"the environment variable {variable}", environ={variable: repr(value)})
            refused(home, key, "the command line", flags={key: value})


def refused(home: Path, key: str, origin: str, **layers: Any) -> None:
    with pytest.raises(SettingsError) as caught:
        load(home, **layers)
    assert str(caught.value).startswith(f"{key} is not usable: it takes a")
    assert str(caught.value).endswith(f"(from {origin}).")


def test_both_ends_of_a_range_are_in_it(home: Path) -> None:
    for table, name in NUMBERS:
        kind = type(DEFAULTS.tables[table][name])
        for end in ranges()[table][name]:
            file = user_file(home, f"[{table}]\n{name} = {kind(end)!r}")
            assert load(home).tables[table][name] == end, file.read_text(encoding="utf-8")


def test_the_sentence_names_the_values_that_a_setting_may_have(home: Path) -> None:
    settings = load(home, {"RAGCHAT_RETRIEVAL_REWRITE": "often"})
    with pytest.raises(SettingsError) as caught:
        settings.table("retrieval", RetrievalSettings)
    assert str(caught.value) == (
        "retrieval.rewrite is not usable: it must be one of never, when_weak, and is 'often' "
        "(from the environment variable RAGCHAT_RETRIEVAL_REWRITE)."
    )


def test_a_table_comes_from_a_file_or_as_json_from_the_environment(home: Path) -> None:
    user_file(home, "[model.extra_body]\ntop_k = 40")
    assert load(home).tables["model"]["extra_body"] == {"top_k": 40}
    variable = "RAGCHAT_MODEL_EXTRA_BODY"
    assert load(home, {variable: '{"seed": 1}'}).tables["model"]["extra_body"] == {"seed": 1}
    for text in ("seed=1", "[1]"):
        with pytest.raises(SettingsError, match=r"model\.extra_body is not usable: it takes a table"):
            load(home, {variable: text})


def test_the_file_to_start_from_shows_the_ranges() -> None:
    text = template()
    assert "\n#top_k = 30  # 1 to 100\n" in text
    assert "\n#requests_per_second = 1000.0  # 0 to 1000000\n" in text
    assert '\n#name = "auto"\n' in text


def test_the_sentence_names_key_range_value_and_origin(home: Path) -> None:
    sentence = "retrieval.top_k is not usable: it takes a whole number from 1 to 100, not 101"
    with pytest.raises(SettingsError, match=re.escape(f"{sentence} (from the command line).")):
        load(home, flags={"retrieval.top_k": 101})
    sentence = "tools.timeout_seconds is not usable: it takes a number from 0.1 to 86400, not nan"
    with pytest.raises(SettingsError, match=re.escape(sentence)):
        load(home, {"RAGCHAT_TOOLS_TIMEOUT_SECONDS": "nan"})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[tools]\nrounds = " + "9" * 9000, "is not valid TOML: Exceeds the limit"),
        ("a" + ".a" * 100_000 + " = 1", "is not valid TOML: a key has more than 16 parts"),
        ("a = " + "[" * 100_000, "is not valid TOML: it is nested too deeply"),
        ("a" * 100_000 + " = 1", "Unknown setting aaa"),
        ("#" * (MAX_BYTES + 1), "it is larger than 262,144 bytes (262,145 bytes)"),
    ],
    ids=lambda text: text[:20],
)
@pytest.mark.parametrize("file", [user_file, project_file])
def test_a_hostile_file_is_refused_in_a_short_sentence(
    home: Path, file: Callable[[Path, str], Path], text: str, reason: str
) -> None:
    file(home, text)
    with pytest.raises(SettingsError) as caught:
        load(home)
    assert len(str(caught.value)) < 1000
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("value", "shown"),
    [("0x" + "f" * 9000, "a number of thousands of digits"), ("'" + "x" * 9000 + "'", f"'{'x' * 79}…")],
    ids=["number", "text"],
)
def test_a_long_value_is_shown_in_short(home: Path, value: str, shown: str) -> None:
    user_file(home, f"[tools]\nrounds = {value}")
    with pytest.raises(SettingsError, match=re.escape(f", not {shown} (from ")):
        load(home)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX file kinds")
@pytest.mark.parametrize("name", ["config/config.toml", "../project/ragchat.toml"])
def test_only_a_regular_file_is_read(home: Path, name: str) -> None:
    os.mkfifo(home / name)
    with pytest.raises(SettingsError, match=r"toml cannot be read: it is not a regular file\.$"):
        load(home)
    (home / name).unlink()
    (home / name).symlink_to("/dev/zero")
    with pytest.raises(SettingsError, match=r"toml cannot be read: it is not a regular file\.$"):
        load(home)


def test_a_projects_file_that_the_user_names_is_the_users_own(home: Path) -> None:
    path = project_file(home, "[model]\nname = 'offline'")
    settings = load(home, config_file=path)
    assert (settings.tables["model"]["name"], settings.origins["model.name"]) == ("offline", str(path))


def test_a_named_settings_file_replaces_the_users_and_must_exist(home: Path, tmp_path: Path) -> None:
    user_file(home, "[tools]\nrounds = 1")
    other = tmp_path / "other.toml"
    with pytest.raises(SettingsError, match="does not exist"):
        load(home, config_file=other)
    other.write_bytes(b"\xef\xbb\xbf[limits]\r\nmessage_bytes = 70_000\r\n")
    settings = load(home, config_file=other)
    assert settings.table("limits", Limits) == Limits(70_000)
    assert settings.tables["tools"]["rounds"] == 4


def test_one_variable_moves_everything_under_one_folder(tmp_path: Path) -> None:
    home = Home.find({"RAGCHAT_HOME": str(tmp_path)})
    assert home == Home(*(tmp_path / name for name in ("config", "data", "state", "cache", "")))


def test_the_home_folder_of_an_unknown_user_is_named_with_its_key(home: Path) -> None:
    user_file(home, '[memory]\npath = "~nobody-has-this-name/memory.db"\n')
    settings = load(home)
    with pytest.raises(SettingsError) as caught:
        _ = settings.memory_path
    assert str(caught.value).startswith(
        "memory.path = ~nobody-has-this-name/memory.db is not usable: no such home folder (from "
    )
    with pytest.raises(SettingsError, match=r"^RAGCHAT_HOME is not usable: no such home folder: ~nobody-has"):
        load_settings(environ={"RAGCHAT_HOME": "~nobody-has-this-name/x"})


def test_without_it_the_platform_says_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    home = Home.find({})
    assert "ragchat" in {home.config.name, home.config.parent.name}
    assert home.config.is_absolute()


@pytest.mark.parametrize("name", PACKAGED)
def test_every_packaged_key_stands_under_a_comment(name: str) -> None:
    lines = resources.files("ragconfig").joinpath(name).read_text(encoding="utf-8").splitlines()
    for above, line in pairwise(lines):
        if line.startswith("["):
            assert above == "", line
        elif line and not line.startswith("#"):
            assert above.startswith("#") or "=" in above, f"{line} has no comment"


def test_the_packaged_prompts_are_there() -> None:
    for name in ("system.md", "passages.md", "no_passages.md", "nearest.md", "missing.md", "rewrite.md"):
        assert resources.files("ragconfig").joinpath("prompts", name).read_text(encoding="utf-8").strip()


def test_a_memory_that_is_named_replaces_a_file_by_a_database_and_the_reverse(home: Path) -> None:
    url = "postgresql://me@db.example/notes?schema=team"
    (home / "config").mkdir(parents=True, exist_ok=True)
    settings = load_settings(environ={"RAGCHAT_HOME": str(home), "RAGCHAT_MEMORY": url})
    assert (settings.store_url, settings.memory_place, settings.names_memory) == (url, url, True)
    assert settings.memory_path.parent == home / "data"  # where its index lies
    chosen = load_settings(None, {"memory.path": "/m.db"}, {"RAGCHAT_HOME": str(home), "RAGCHAT_MEMORY": url})
    assert (chosen.store_url, chosen.memory_place) == ("", "/m.db")
    assert settings.with_memory(Path("/r.db"), "somewhere").memory_place == "/r.db"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://me:secret@db/notes", "it has a password, which belongs in PGPASSWORD or ~/.pgpass"),
        *(
            (url, "it has a password, which belongs in PGPASSWORD or ~/.pgpass")
            for url in (
                "postgresql://me@db/notes?password=secret",
                "postgresql://me@db/notes?schema=a&ssl%70assword=secret",
                "postgresql://me:sec/ret@db/notes",
                "postgresql://me:sec?ret@db/notes",
                "postgresql://me:sec#ret@db/notes",
            )
        ),
        ("mysql://me:secret@db/notes", "it must begin with postgresql://, not with 'mysql'"),
    ],
)
def test_the_url_of_a_database_is_checked_and_its_password_not_shown(
    home: Path, url: str, reason: str
) -> None:
    settings = load_settings(None, {"store.url": url}, {"RAGCHAT_HOME": str(home)})
    with pytest.raises(InvalidSetting) as caught:
        _ = settings.memory_path
    assert str(caught.value) == f"store.url is not usable: {reason} (from the command line)."


@pytest.mark.parametrize("url", ["postgres://me@db/notes", "file:///m.db"])
def test_a_url_that_names_no_database_is_no_path_either(home: Path, url: str) -> None:
    settings = load_settings(None, {"memory.path": url}, {"RAGCHAT_HOME": str(home)})
    with pytest.raises(
        InvalidSetting, match=f"it must begin with postgresql://, not with '{url.partition(':')[0]}'"
    ):
        _ = settings.memory_place


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("pgvector", '"pgvector" needs a memory in PostgreSQL; /m.db is a file'),
        (
            "http://:secret@qdrant.example:6333",
            "it has a user or a password; a key belongs in QDRANT_API_KEY or index.key_file",
        ),
        ("qdrant:6333", "it must be \"pgvector\" or begin with http:// or https://, and is 'qdrant:6333'"),
    ],
)
def test_the_place_of_a_remote_index_is_checked(home: Path, url: str, reason: str) -> None:
    settings = load_settings(None, {"index.url": url, "memory.path": "/m.db"}, {"RAGCHAT_HOME": str(home)})
    with pytest.raises(InvalidSetting) as caught:
        _ = settings.index_url
    assert str(caught.value) == f"index.url is not usable: {reason} (from the command line)."
    assert settings.with_memory(Path("/r.db"), "somewhere").index_url == ""


def test_a_remote_index_may_be_in_the_database_of_the_memory_or_a_qdrant(home: Path) -> None:
    for flags in (
        {"index.url": "pgvector", "store.url": "postgresql://db/notes"},
        {"index.url": "https://qdrant.example:6333"},
    ):
        assert load_settings(None, flags, {"RAGCHAT_HOME": str(home)}).index_url == flags["index.url"]


def test_a_whole_number_is_a_number_too(home: Path) -> None:
    user_file(home, "[tools]\ntimeout_seconds = 5")
    assert load(home).table("tools", Tools).timeout_seconds == 5.0


def test_a_table_that_is_read_in_another_shape_names_the_key(home: Path) -> None:
    class Odd(msgspec.Struct):
        rounds: str

    with pytest.raises(SettingsError, match=r"^tools\.rounds is not usable: it must be a text, not a whole"):
        load(home).table("tools", Odd)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows deletes no working folder")
def test_a_deleted_working_folder_is_one_without_a_project_file(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    with contextlib.chdir(folder):
        folder.rmdir()
        settings = load_settings(environ={"RAGCHAT_HOME": str(tmp_path)})
    assert not settings.origins


def test_settings_are_the_same_to_a_server_if_they_change_nothing_that_it_stores_or_finds(home: Path) -> None:
    def hashed(version: str = "1", **flags: object) -> str:
        dotted = {name.replace("__", "."): value for name, value in flags.items()}
        return fingerprint(load_settings(None, dotted, {"RAGCHAT_HOME": str(home)}, home), version)

    assert hashed() == hashed(memory__toolsets=["search"], retrieval__top_k=3)
    assert hashed() != hashed("2")
    assert hashed() != hashed(embedder__kind="openai")
    assert hashed() != hashed(memory__read_only=True)
