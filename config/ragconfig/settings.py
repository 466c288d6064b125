"""Settings in layers: packaged defaults < user file < project file < environment < flags.

Defaults are in the packaged TOML files only. If no layer names a memory, the repository's own is used if
there is one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Struct, structs

import ragconfig
from ragcommon.errors import decode_reason, os_reason
from ragcommon.files.safe_open import read_regular
from ragconfig.errors import InvalidSetting, NotForProjects, SettingsError, UnknownSetting, UnreadableFile
from ragconfig.home import HOME_VARIABLE, Home, UnknownHome, user_path
from ragconfig.repository import ORIGIN, find_memory

T = TypeVar("T")

Table = dict[str, Any]

KINDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "texts",
    dict: "a table",
}
PACKAGED = ("memory.toml", "chat.toml")
RANGES = "ranges.toml"
USER_FILE = "config.toml"
PROJECT_FILE = "ragchat.toml"
# The origin of a value that a flag gives.
COMMAND_LINE = "the command line"
# The short form of RAGCHAT_MEMORY_PATH.
MEMORY_VARIABLE = "RAGCHAT_MEMORY"

# A project file may come with a cloned repository. It may only set how much of memory is quoted. Other keys
# could send text or keys elsewhere, access files, or change what is stored: a smaller memory.undo_depth, for
# example, deletes history.
FROM_A_PROJECT = frozenset({"retrieval.top_k", "retrieval.min_score", "retrieval.passage_tokens"})

# The maximum size of a settings file; the packaged ones are a twentieth of this.
MAX_BYTES = 1 << 18
# The maximum size of a user's prompt file: far more than any model's context.
MAX_PROMPT_BYTES = 1 << 20
SHOWN_CHARACTERS = 80
# How the origin of a value begins that a variable sets.
ENVIRONMENT = "the environment variable"
# How the URL of a memory in a database begins.
DATABASE = "postgresql://"
# The value of index.url for an index in the database of the memory.
PGVECTOR = "pgvector"
# The settings that affect what a server stores and finds.
SERVER_TABLES = ("limits", "ocr", "index", "embedder", "reranker", "chunking", "ranking")
MEMORY_KEYS = ("busy_seconds", "undo_depth", "read_only")


class Settings(Struct):
    """The effective values as tables, and the origin of each (`origins["model.name"]`).

    `config_file` is the file named with --config; with `verbose`, the chat's own processes log more.
    """

    home: Home
    tables: Table
    origins: dict[str, str] = {}
    config_file: Path | None = None
    verbose: bool = False

    def table(self, name: str, type: type[T]) -> T:
        """One table as a typed object. Raises SettingsError for a value of the wrong type or choice."""
        try:
            return msgspec.convert(self.tables[name], type)
        except msgspec.ValidationError as error:
            reason, _, path = str(error).partition(" - at `$.")
            field = path.rstrip("`").partition("[")[0]
            key = f"{name}.{field}" if path else name
            if reason != (wrong := reason.removeprefix("Invalid enum value ")):
                choices = ", ".join(_choices(get_type_hints(type)[field]))
                raise self.invalid(key, f"it must be one of {choices}, and is {wrong}") from None
            raise self.invalid(key, decode_reason(msgspec.ValidationError(reason))) from None

    def invalid(self, key: str, reason: str) -> InvalidSetting:
        """The error that the value of `key` is not usable."""
        return InvalidSetting(key, reason, self.origins.get(key, "the packaged defaults"))

    def path(self, key: str, default: str) -> Path:
        """The absolute path in the setting `key`; if that is empty, `default` in the data folder.

        Raises SettingsError.
        """
        table, _, name = key.partition(".")
        if not (path := self.tables[table][name]):
            return self.home.data / default
        try:
            return user_path(path)
        except UnknownHome as error:
            origin = self.origins.get(key, "the packaged defaults")
            raise InvalidSetting(f"{key} = {path}", os_reason(error), origin) from None

    @property
    def memory_path(self) -> Path:
        """The SQLite file of memory; of one in PostgreSQL, where its files on this machine lie.

        Raises SettingsError.
        """
        if url := self.store_url:
            from hashlib import sha256

            return self.home.data / f"postgresql-{sha256(url.encode()).hexdigest()[:16]}.db"
        return self.path("memory.path", "memory.db")

    @property
    def has_memory_file(self) -> bool:
        """Whether memory is the file at `memory_path`: neither in PostgreSQL nor of another server."""
        return not (self.tables["memory_server"]["url"] or self.store_url)

    @property
    def store_url(self) -> str:
        """The URL of the PostgreSQL database with the memory; "": it is a file. Raises SettingsError."""
        url: str = self.tables["store"]["url"]
        if not url:
            return ""
        if not url.startswith(DATABASE):
            scheme = _shown(url.partition("://")[0])  # What follows may hold a password.
            reason = f"it must begin with {DATABASE}, not with {scheme}"
            raise self.invalid("store.url", reason)
        if has_password(url):
            raise self.invalid("store.url", "it has a password, which belongs in PGPASSWORD or ~/.pgpass")
        return url

    @property
    def index_url(self) -> str:
        """PGVECTOR, or the URL of a Qdrant; "": each process keeps an index. Raises SettingsError."""
        url: str = self.tables["index"]["url"]
        if url and url != PGVECTOR and not url.startswith(("http://", "https://")):
            reason = f'it must be "{PGVECTOR}" or begin with http:// or https://, and is {_shown(url)}'
            raise self.invalid("index.url", reason)
        if url != PGVECTOR and "@" in url:
            reason = "it has a user or a password; a key belongs in QDRANT_API_KEY or index.key_file"
            raise self.invalid("index.url", reason)
        if url == PGVECTOR and not self.store_url:
            reason = f'"{PGVECTOR}" needs a memory in PostgreSQL; {self.memory_path} is a file'
            raise self.invalid("index.url", reason)
        return url

    @property
    def memory_place(self) -> str:
        """The URL or the path of memory. Raises SettingsError."""
        return self.store_url or str(self.memory_path)

    @property
    def names_memory(self) -> bool:
        """Whether the user has named a memory; not if it is the repository's or the default."""
        is_named = bool(self.tables["memory"]["path"]) and self.origins.get("memory.path") != ORIGIN
        return is_named or bool(self.tables["store"]["url"])

    def with_memory(self, place: Path | str, origin: str) -> Settings:
        """These settings with another memory: a path, or the URL of one in a database."""
        tables = {name: dict(values) for name, values in self.tables.items()}
        tables["index"]["url"] = tables["memory_server"]["url"] = ""
        settings = structs.replace(self, tables=tables, origins=dict(self.origins))
        _choose(settings, "memory.path", str(place), origin)
        return settings

    def with_table(self, table: str, /, **values: Any) -> Settings:
        """These settings with other values in one table."""
        return structs.replace(self, tables={**self.tables, table: {**self.tables[table], **values}})


def load_settings(
    config_file: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
    folder: Path | None = None,
    *,
    verbose: bool = False,
) -> Settings:
    """Read every layer. Raises SettingsError.

    `config_file` replaces the user's own file and must exist. `flags` are typed values by key (None: not
    given). `folder` is searched for the project file (default: the working folder).
    """
    try:
        settings = Settings(Home.find(environ), {}, config_file=config_file, verbose=verbose)
    except UnknownHome as error:
        reason = f"{os_reason(error)}: {error.filename}"
        raise InvalidSetting(HOME_VARIABLE, reason, "the environment") from None
    for name in PACKAGED:
        for table, values in packaged(name).items():
            settings.tables[table] = dict(values)
    user_file = config_file or settings.home.config / USER_FILE
    if not _merge_file(settings, user_file) and config_file is not None:
        hint = "`ragchat config init` creates one."
        raise UnreadableFile("settings file", str(config_file), "it does not exist", hint)
    # A relative path, as the working folder may have been deleted.
    project_file = (folder or Path()) / PROJECT_FILE
    # A project file named with --config is the user's own choice, and is read once.
    if not _are_same(project_file, user_file):
        _merge_file(settings, project_file, of_project=True)
    for variable, text in environ.items():
        if key := _key_of(variable, settings):
            value = _typed(text, settings, key, variable)
            _choose(settings, key, value, f"{ENVIRONMENT} {variable}")
    for key, value in (flags or {}).items():
        if value is not None:
            _choose(settings, key, value, COMMAND_LINE)
    if not settings.names_memory and (found := find_memory(folder or Path(), settings.home)):
        _set(settings, "memory.path", str(found), ORIGIN)
    return settings


@cache
def packaged(name: str) -> Table:
    """A TOML file of this package. All callers get the same table, and must not change it."""
    return msgspec.toml.decode(packaged_text(name), type=dict)


def packaged_text(name: str) -> str:
    """The text of a file of this package, by its path in the package."""
    # importlib.resources and pkgutil take 5 to 10 ms to import, which would delay the first answer.
    return (Path(ragconfig.__file__).parent / name).read_text(encoding="utf-8")


@cache
def ranges() -> dict[str, dict[str, tuple[float, float]]]:
    """The minimum and maximum of every number, by table and name."""
    return msgspec.convert(packaged(RANGES), dict[str, dict[str, tuple[float, float]]])


def _are_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


def _merge_file(settings: Settings, path: Path, *, of_project: bool = False) -> bool:
    """Returns whether the file exists."""
    try:
        content = read_regular(path, MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise UnreadableFile("settings file", str(path), os_reason(error)) from None
    from ragconfig.toml_files import NotToml, at_line, decode_toml

    origin = str(path.absolute())
    try:
        tables = decode_toml(content)
    except NotToml as error:
        raise UnreadableFile("settings file", origin, f"it is not valid TOML: {error}") from None
    for table, values in tables.items():
        if not isinstance(values, dict) or (not values and table not in settings.tables):
            raise _unknown(table, settings, at_line(origin, content, table))
        for name, value in values.items():
            key = f"{table}.{name}"
            if of_project and key not in FROM_A_PROJECT and name in settings.tables.get(table, {}):
                user_file = str(settings.home.config / USER_FILE)
                raise NotForProjects(key, origin, user_file, sorted(FROM_A_PROJECT))
            try:
                _set(settings, key, value, origin)
            except SettingsError:  # The same error again, which also names the line.
                _set(settings, key, value, at_line(origin, content, key))
    return True


def _set(settings: Settings, key: str, value: Any, origin: str) -> None:
    table, _, name = key.partition(".")
    if name not in settings.tables.get(table, {}):
        raise _unknown(key, settings, origin)
    default = settings.tables[table][name]
    wanted = "" if _fits(value, default) else KINDS[type(default)]
    if not wanted and type(default) in (int, float):
        least, greatest = ranges()[table][name]
        if not least <= value <= greatest:  # also refuses NaN
            wanted = f"{KINDS[type(default)]} from {range_of(table, name)}"
    if wanted:
        raise InvalidSetting(key, f"it takes {wanted}, not {_shown(value)}", origin)
    settings.tables[table][name] = value
    settings.origins[key] = origin


def _choose(settings: Settings, key: str, value: Any, origin: str) -> None:
    """Like `_set`, but a path or URL of a memory replaces both of earlier layers."""
    if key == "memory.path":
        url = value if is_database(value) else ""
        _set(settings, "store.url", url, origin)
        if url:
            return
    _set(settings, key, value, origin)


def is_database(memory: object) -> bool:
    """Whether this is a URL, as for a memory in a database, not the path of a file."""
    return isinstance(memory, str) and "://" in memory


def range_of(table: str, name: str) -> str:
    """The range of a number, in words; "" for other settings."""
    return " to ".join(str(end).removesuffix(".0") for end in ranges().get(table, {}).get(name, ()))


def _choices(kind: Any) -> list[str]:
    """The texts that a type allows, also as the items of a list."""
    return [text for one in get_args(kind) for text in ([one] if isinstance(one, str) else _choices(one))]


def has_password(url: str) -> bool:
    """Whether the URL of a database holds a password."""
    from urllib.parse import parse_qsl, urlsplit

    parts = urlsplit(url)
    has_secret = any(name in ("password", "sslpassword") for name, _ in parse_qsl(parts.query))
    # A `/` in a password ends the host early: the `@` is after it.
    return parts.password is not None or has_secret or ("@" in url and "@" not in parts.netloc)


def _shown(value: object) -> str:
    """A value as text of limited length, for error messages."""
    try:
        text = repr(value)
    except ValueError:  # Python does not convert integers of more than 4,300 digits.
        return "a number of thousands of digits"
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def _fits(value: Any, default: Any) -> bool:
    """Whether a value has the type of the default; an int is a valid float."""
    if isinstance(default, list):
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return type(value) is type(default) or (type(value), type(default)) == (int, float)


def _unknown(key: str, settings: Settings, origin: str) -> UnknownSetting:
    import difflib

    known = known_keys(settings)
    key = key[:SHOWN_CHARACTERS]
    if near := difflib.get_close_matches(key, known, n=1):
        return UnknownSetting(key, origin, near[0])
    (nearest,) = difflib.get_close_matches(key, known, n=1, cutoff=0.0)
    return UnknownSetting(key, origin, nearest, f"The nearest one that exists is {nearest}.")


def known_keys(settings: Settings) -> list[str]:
    """Every key, dotted, in the order of the packaged files."""
    return [f"{table}.{name}" for table, values in settings.tables.items() for name in values]


def _key_of(variable: str, settings: Settings) -> str | None:
    """`RAGCHAT_MODEL_BASE_URL` → `model.base_url`; None for other programs' variables."""
    if variable == MEMORY_VARIABLE:
        return "memory.path"
    if variable == HOME_VARIABLE or not variable.startswith("RAGCHAT_"):
        return None
    rest = variable.removeprefix("RAGCHAT_").lower()
    for key in known_keys(settings):
        if key.replace(".", "_") == rest:
            return key
    raise _unknown_variable(variable, rest, settings)


def _unknown_variable(variable: str, rest: str, settings: Settings) -> UnknownSetting:
    """`rest` is the variable's name without RAGCHAT_, in lower case."""
    import difflib

    known = {f"RAGCHAT_{key.replace('.', '_')}".upper(): key for key in known_keys(settings)}
    known |= {name: name for name in (HOME_VARIABLE, MEMORY_VARIABLE)}
    wholes = {name.removeprefix("RAGCHAT_").lower(): name for name in known}
    ends = {key.partition(".")[2]: name for name, key in reversed(known.items())}
    rest = rest[:SHOWN_CHARACTERS]
    near = [names[one] for names in (wholes, ends) for one in difflib.get_close_matches(rest, names, n=1)]
    nearest = [*near, *difflib.get_close_matches(variable[:SHOWN_CHARACTERS], known, n=1, cutoff=0.0)][0]
    origin = f"the environment variable {variable[:SHOWN_CHARACTERS]} (the nearest that exists is {nearest})"
    hint = f"Did you mean {nearest}?" if near else "`ragchat config show` lists all settings."
    return UnknownSetting(rest.replace("_", ".", 1), origin, known[nearest], hint)


def _typed(text: str, settings: Settings, key: str, variable: str) -> Any:
    """Convert a variable's text to the type of the default: lists are comma-separated, tables are JSON."""
    table, _, name = key.partition(".")
    current = settings.tables[table][name]
    if isinstance(current, list):
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        if isinstance(current, dict):
            return msgspec.json.decode(text, type=dict)
        return msgspec.convert(text, type(current), strict=False)
    except msgspec.DecodeError:  # also the base of ValidationError
        reason = f"it takes {KINDS[type(current)]}, not {_shown(text)}"
        raise InvalidSetting(key, reason, f"{ENVIRONMENT} {variable}") from None


def fingerprint(settings: Settings, version: str) -> str:
    """A hash of the settings that affect what a server stores and finds, and of the program's version."""
    import hashlib

    memory = settings.tables["memory"]
    tables = [*(settings.tables[name] for name in SERVER_TABLES), {key: memory[key] for key in MEMORY_KEYS}]
    return hashlib.sha256(msgspec.json.encode([version, tables])).hexdigest()
