"""Errors of settings and of the files that they name."""

from __future__ import annotations

from collections.abc import Sequence

from ragcommon.errors import StructuredError


class SettingsError(StructuredError):
    """The root of errors in settings and in the files that they name."""

    code = "SETTINGS_INVALID"


class InvalidSetting(SettingsError):
    """A value of the wrong type, out of range, or otherwise unusable."""

    key: str
    reason: str
    origin: str
    code = "SETTINGS_INVALID"
    sentence = "{key} is not usable: {reason} (from {origin})."


class UnknownSetting(SettingsError):
    key: str
    origin: str
    nearest: str
    hint: str = "Did you mean {nearest}?"
    code = "SETTINGS_INVALID"
    sentence = "Unknown setting {key} in {origin}."


class NotForProjects(SettingsError):
    """A project's file sets a key that only the user may set; `allowed` are the others."""

    key: str
    origin: str
    user_file: str
    allowed: Sequence[str]
    code = "SETTINGS_INVALID"
    sentence = "{origin} sets {key}, which a project may not decide for you."
    hint = "It may set {allowed}. Put {key} into {user_file}, or remove it."


class UnreadableFile(SettingsError):
    """`kind` describes the file, such as "settings file"."""

    kind: str
    path: str
    reason: str
    hint: str = ""
    code = "SETTINGS_INVALID"
    sentence = "The {kind} {path} cannot be read: {reason}."


class NotWritten(SettingsError):
    """A settings file was not changed; `changes` are those that the user can make."""

    path: str
    reason: str
    changes: str
    code = "SETTINGS_INVALID"
    sentence = "The settings file {path} cannot be changed: {reason}."
    hint = "Change it yourself: {changes}."


class SetElsewhere(SettingsError):
    """A layer above the settings file has the value."""

    key: str
    origin: str
    code = "SETTINGS_INVALID"
    sentence = "{key} comes from {origin}, so a settings file cannot change it."
    hint = "Remove it there, and run the command again."
