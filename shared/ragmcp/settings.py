"""Settings in layers: packaged defaults < user file < project file < environment < flags.

Not MCP: the one thing besides MCP that both programs share, and the import laws leave no other room for it
(`ragconfig` holds data only). No value has its default here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

import ragconfig
from ragmcp import discretion
from ragmcp.home import HOME_VARIABLE, Home

T = TypeVar("T")

Table = dict[str, Any]

KINDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false", list: "texts"}
PACKAGED = ("memory.toml", "chat.toml")
USER_FILE = "config.toml"
PROJECT_FILE = "ragchat.toml"
# No key either: the short form of `memory.path`.
MEMORY_VARIABLE = "RAGCHAT_MEMORY"

# A project file comes with a cloned repository: it must not send the user's text or key elsewhere, nor read
# or write files of its choice.
NOT_FROM_A_PROJECT = frozenset(
    {
        "model.name",
        "model.base_url",
        "model.key_file",
        "model.ollama_url",
        "embedder.kind",
        "embedder.base_url",
        "embedder.key_file",
        "prompts.system",
        "prompts.passages",
        "sessions.path",
        "memory.path",
        "tools.offered",
        "http.host",
        "http.token_file",
        "http.allowed_hosts",
        "http.allowed_origins",
    }
)


class SettingsError(Exception):
    """A setting that cannot be used; the message names it, its value, and where it stands."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Settings(Struct):
    """The effective values as tables, and where each came from (`origins["model.name"]`)."""

    home: Home
    tables: Table
    origins: dict[str, str] = {}

    def table(self, name: str, type: type[T]) -> T:
        """One table as a typed object. Raises SettingsError for a value of the wrong type."""
        try:
            return msgspec.convert(self.tables[name], type)
        except msgspec.ValidationError as error:
            reason, _, path = str(error).partition(" - at `$.")
            key = f"{name}.{path.rstrip('`').partition('[')[0]}" if path else name
            origin = self.origins.get(key, "the packaged defaults")
            raise SettingsError(f"{key} is not usable: {reason} (from {origin}).") from None


def load_settings(
    config_file: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
    folder: Path | None = None,
) -> Settings:
    """Read every layer.

    `config_file` replaces the user's own file and must exist; `flags` are dotted keys with values already
    typed (None: not given); `folder` is where the project file is looked for (default: the working folder).
    Raises SettingsError.
    """
    settings = Settings(Home.find(environ), {})
    for name in PACKAGED:
        # Not importlib.resources nor pkgutil: they take 5 to 10 ms to import, on the way to the first answer.
        text = Path(ragconfig.__file__).with_name(name).read_text(encoding="utf-8")
        for table, values in _parse(text, name).items():
            settings.tables[table] = dict(values)
    if config_file is not None and not config_file.is_file():
        raise SettingsError(
            f"The settings file {config_file} does not exist.", "`ragchat config init` makes one."
        )
    user_file = config_file or settings.home.config / USER_FILE
    # Not made absolute: the working folder may have been deleted, and is then one without a project file.
    project_file = (folder or Path()) / PROJECT_FILE
    if user_file.is_file():
        _merge_file(settings, user_file, project=False)
    # A project's file that the user names with --config is the user's own choice, and is read once.
    if project_file.is_file() and not (user_file.is_file() and project_file.samefile(user_file)):
        _merge_file(settings, project_file.absolute(), project=True)
    for variable, text in environ.items():
        if key := _key_of(variable, settings):
            _set(settings, key, _typed(text, settings, key, variable), f"the environment variable {variable}")
    for key, value in (flags or {}).items():
        if value is not None:
            _set(settings, key, value, "the command line")
    return settings


def _parse(text: str, source: object) -> Table:
    try:
        return msgspec.toml.decode(text, type=dict)
    except msgspec.DecodeError as error:
        raise SettingsError(f"{source} is not valid TOML: {error}.") from None


def _merge_file(settings: Settings, path: Path, *, project: bool) -> None:
    try:
        tables = _parse(path.read_text(encoding="utf-8-sig"), path)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"The settings file {path} cannot be read: {error}.") from None
    for table, values in tables.items():
        if not isinstance(values, dict):
            raise _unknown(table, settings, str(path))
        for name, value in values.items():
            key = f"{table}.{name}"
            if project and key in NOT_FROM_A_PROJECT:
                raise SettingsError(
                    f"{path} sets {key}, which a project may not decide for you.",
                    f"Put it into {settings.home.config / USER_FILE}, or remove it there.",
                )
            _set(settings, key, value, str(path))


def _set(settings: Settings, key: str, value: Any, origin: str) -> None:
    table, _, name = key.partition(".")
    if name not in settings.tables.get(table, {}):
        raise _unknown(key, settings, origin)
    default = settings.tables[table][name]
    if not _fits(value, default):
        kind = KINDS[type(default)]
        raise SettingsError(f"{key} is not usable: it takes {kind}, not {value!r} (from {origin}).")
    settings.tables[table][name] = value
    settings.origins[key] = origin


def _fits(value: Any, default: Any) -> bool:
    """Whether a value has the type of the packaged one; a whole number is a number, too."""
    if isinstance(default, list):
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return type(value) is type(default) or (type(value), type(default)) == (int, float)


def _unknown(key: str, settings: Settings, origin: str) -> SettingsError:
    import difflib

    known = known_keys(settings)
    nearest = difflib.get_close_matches(key, known, n=1, cutoff=0.0)
    return SettingsError(f"Unknown setting {key} in {origin}.", f"Did you mean {nearest[0]}?")


def known_keys(settings: Settings) -> list[str]:
    """Every key, dotted, in the order of the packaged files."""
    return [f"{table}.{name}" for table, values in settings.tables.items() for name in values]


def _key_of(variable: str, settings: Settings) -> str | None:
    """`RAGCHAT_MODEL_BASE_URL` → `model.base_url`; None for a variable that is not ours."""
    if variable == MEMORY_VARIABLE:
        return "memory.path"
    if variable == HOME_VARIABLE or not variable.startswith("RAGCHAT_"):
        return None
    rest = variable.removeprefix("RAGCHAT_").lower()
    for key in known_keys(settings):
        if key.replace(".", "_") == rest:
            return key
    raise _unknown(rest.replace("_", ".", 1), settings, f"the environment variable {variable}")


def _typed(text: str, settings: Settings, key: str, variable: str) -> Any:
    """A variable's text as the type its packaged value has; lists are separated by commas."""
    table, _, name = key.partition(".")
    current = settings.tables[table][name]
    if isinstance(current, list):
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        return msgspec.convert(text, type(current), strict=False)
    except msgspec.ValidationError:
        kind = KINDS[type(current)]
        raise SettingsError(f"{variable} is {text!r}, but {key} takes {kind}.") from None


def read_key(key_file: str, variable: str = "OPENAI_API_KEY", environ: Mapping[str, str] = os.environ) -> str:
    """The secret in `key_file`, else in the environment variable, else "". Raises SettingsError.

    No log line and no message will hold it.
    """
    secret = _read_secret(key_file) if key_file else environ.get(variable, "")
    discretion.keep(secret)
    return secret


def _read_secret(key_file: str) -> str:
    path = Path(key_file).expanduser()
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
    except UnicodeDecodeError:
        reason = "it is not text in UTF-8"
    raise SettingsError(f"The key file {path} cannot be read: {reason}.")
