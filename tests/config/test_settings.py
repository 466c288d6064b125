"""The layers of settings, and the packaged files they start from."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragmcp.home import Home, private_folder
from ragmcp.settings import (
    NOT_FROM_A_PROJECT,
    PACKAGED,
    Settings,
    SettingsError,
    known_keys,
    load_settings,
    read_key,
)


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
    assert (load(home).tables["retrieval"]["top_k"], load(home).origins.get(key)) == (8, None)
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
        ("[model]\nnmae = 'x'", "Unknown setting model.nmae in {file}.", "Did you mean model.name?"),
        ("[modle]\nname = 'x'", "Unknown setting modle.name in {file}.", "Did you mean model.name?"),
        ("name = 'x'", "Unknown setting name in {file}.", None),
        ("[model", "{file} is not valid TOML: ", None),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_place(home: Path, text: str, sentence: str, hint: str) -> None:
    path = user_file(home, text)
    with pytest.raises(SettingsError) as caught:
        load(home)
    assert str(caught.value).startswith(sentence.format(file=path))
    if hint is not None:
        assert caught.value.hint == hint


def test_an_unknown_variable_is_an_error_that_names_the_nearest(home: Path) -> None:
    with pytest.raises(SettingsError, match="RAGCHAT_MODEL_NAEM") as caught:
        load(home, {"RAGCHAT_MODEL_NAEM": "x"})
    assert caught.value.hint == "Did you mean model.name?"


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
    with pytest.raises(
        SettingsError, match=r"RAGCHAT_TOOLS_ROUNDS is 'many', but tools.rounds takes a whole"
    ):
        load(home, {"RAGCHAT_TOOLS_ROUNDS": "many"})


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
def test_a_value_of_the_wrong_type_is_named_with_its_file(home: Path, text: str, key: str) -> None:
    path = user_file(home, text)
    with pytest.raises(SettingsError) as caught:
        load(home)
    assert str(caught.value).startswith(f"{key} is not usable: ")
    assert str(caught.value).endswith(f"(from {path}).")


@pytest.mark.parametrize("key", sorted(NOT_FROM_A_PROJECT))
def test_a_project_may_not_decide_where_text_and_keys_go(home: Path, key: str) -> None:
    table, _, name = key.partition(".")
    project_file(home, f"[{table}]\n{name} = 'x'")
    with pytest.raises(SettingsError, match=f"sets {key}, which a project may not decide for you"):
        load(home)


def test_what_a_project_may_not_decide_are_keys_that_exist(home: Path) -> None:
    assert set(known_keys(load(home))) >= NOT_FROM_A_PROJECT


def test_a_projects_file_that_the_user_names_is_the_users_own(home: Path) -> None:
    path = project_file(home, "[model]\nname = 'offline'")
    settings = load(home, config_file=path)
    assert (settings.tables["model"]["name"], settings.origins["model.name"]) == ("offline", str(path))


def test_a_named_settings_file_replaces_the_users_and_must_exist(home: Path, tmp_path: Path) -> None:
    user_file(home, "[tools]\nrounds = 1")
    other = tmp_path / "other.toml"
    with pytest.raises(SettingsError, match="does not exist"):
        load(home, config_file=other)
    other.write_bytes(b"\xef\xbb\xbf[limits]\r\nmessage_bytes = 5\r\n")
    settings = load(home, config_file=other)
    assert settings.table("limits", Limits) == Limits(5)
    assert settings.tables["tools"]["rounds"] == 4


def test_one_variable_moves_everything_under_one_folder(tmp_path: Path) -> None:
    home = Home.find({"RAGCHAT_HOME": str(tmp_path)})
    assert home == Home(*(tmp_path / name for name in ("config", "data", "state", "cache")))


def test_without_it_the_platform_says_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    home = Home.find({})
    assert "ragchat" in {home.config.name, home.config.parent.name}
    assert home.config.is_absolute()


def test_a_key_comes_from_its_file_else_from_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(" secret\n", encoding="utf-8")
    environ = {"OPENAI_API_KEY": "other"}
    assert read_key(str(path), environ=environ) == "secret"
    assert read_key("", environ=environ) == "other"
    assert read_key("", environ={}) == ""
    with pytest.raises(SettingsError, match=r"cannot be read: no such file or directory\.$"):
        read_key(str(tmp_path / "gone"))
    path.write_bytes(b"\xff")
    with pytest.raises(SettingsError, match=r"cannot be read: it is not text in UTF-8\.$"):
        read_key(str(path))


@pytest.mark.skipif(sys.platform == "win32", reason="file modes")
def test_a_private_folder_is_its_owners_only(tmp_path: Path) -> None:
    assert private_folder(tmp_path / "private").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", PACKAGED)
def test_every_packaged_key_stands_under_a_comment(name: str) -> None:
    lines = resources.files("ragconfig").joinpath(name).read_text(encoding="utf-8").splitlines()
    for above, line in pairwise(lines):
        if line.startswith("["):
            assert above == "", line
        elif line and not line.startswith("#"):
            assert above.startswith("#") or "=" in above, f"{line} has no comment"


def test_the_packaged_prompts_are_there() -> None:
    for name in ("system.md", "passages.md"):
        assert resources.files("ragconfig").joinpath(name).read_text(encoding="utf-8").strip()


def test_a_whole_number_is_a_number_too(home: Path) -> None:
    user_file(home, "[tools]\ntimeout_seconds = 5")
    assert load(home).table("tools", Tools).timeout_seconds == 5.0


def test_a_table_that_is_read_in_another_shape_names_the_key(home: Path) -> None:
    class Odd(msgspec.Struct):
        rounds: str

    with pytest.raises(SettingsError, match=r"^tools\.rounds is not usable: Expected `str`, got `int`"):
        load(home).table("tools", Odd)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows deletes no working folder")
def test_a_deleted_working_folder_is_one_without_a_project_file(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    with contextlib.chdir(folder):
        folder.rmdir()
        settings = load_settings(environ={"RAGCHAT_HOME": str(tmp_path)})
    assert not settings.origins
