"""The base of both programs' errors, a sentence made of the error's fields; and the errors of settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, dataclass_transform


class _Values:
    """An error's attributes as a mapping for `str.format_map`; a sequence becomes a list in words."""

    def __init__(self, error: StructuredError) -> None:
        self._error = error

    def __getitem__(self, name: str) -> object:
        value = getattr(self._error, name)
        return ", ".join(value) or "none" if isinstance(value, (list, tuple)) else value


# ragmcp has the same base of its own: it imports no other package. Not dataclasses: slow to import.
@dataclass_transform(eq_default=False)
class StructuredError(Exception):
    """A subclass's annotations are its fields, as in a dataclass.

    `sentence` and `hint` are templates over its fields and properties; a hint given to a constructor is not.
    `code` is the stable upper-case word for machines, `hint` what the user can do ("" where nothing).
    """

    sentence: ClassVar[str]
    code: ClassVar[str]
    hint: str = ""
    _fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        own = [name for name, kind in cls.__annotations__.items() if not kind.startswith("ClassVar")]
        cls._fields = tuple(dict.fromkeys((*cls._fields, *own)))

    def __init__(self, *values: object, **named: object) -> None:
        given = dict(zip(self._fields, values, strict=False)) | named
        defaults = {name: getattr(type(self), name) for name in self._fields if hasattr(type(self), name)}
        fields = defaults | given
        if fields.keys() != set(self._fields) or len(given) < len(values) + len(named):
            raise TypeError(f"{type(self).__name__} takes {', '.join(self._fields) or 'nothing'}")
        super().__init__(*(fields[name] for name in self._fields))
        self.__dict__.update(fields)
        if "hint" not in given:
            self.hint = self.hint.format_map(_Values(self))

    def __str__(self) -> str:
        return self.sentence.format_map(_Values(self))

    def details(self) -> dict[str, Any]:
        """The fields, ready for JSON; the hint is not one of them."""
        return {name: getattr(self, name) for name in self._fields if name != "hint"}


class SettingsError(StructuredError):
    """The root of errors in settings and in the files that they name."""

    code = "SETTINGS_INVALID"


class InvalidSetting(SettingsError):
    """A value of the wrong type, out of range, or that names nothing usable."""

    key: str
    reason: str
    origin: str
    sentence = "{key} is not usable: {reason} (from {origin})."


class UnknownSetting(SettingsError):
    key: str
    origin: str
    nearest: str
    hint: str = "Did you mean {nearest}?"
    sentence = "Unknown setting {key} in {origin}."


class NotForProjects(SettingsError):
    """A project's file sets a key that only the user may set; `allowed` are the others."""

    key: str
    origin: str
    user_file: str
    allowed: Sequence[str]
    sentence = "{origin} sets {key}, which a project may not decide for you."
    hint = "It may set {allowed}. Put {key} into {user_file}, or remove it."


class UnreadableFile(SettingsError):
    """`kind` is what the user calls the file, such as "settings file"."""

    kind: str
    path: str
    reason: str
    hint: str = ""
    sentence = "The {kind} {path} cannot be read: {reason}."
