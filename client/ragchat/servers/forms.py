"""Elicitation forms: their fields, and the validation of what the user types. Pure.

Source: client/elicitation, `requestedSchema`: a flat object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from math import isfinite
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from ragmcp.errors import InvalidParams

# Labels for the formats and types of fields; others are shown as they are.
_KINDS = {
    "string": "text",
    "integer": "whole number",
    "boolean": "y or n",
    "array": "several, with commas between them",
    "email": "e-mail address",
    "uri": "web address",
    "date-time": "date and time",
}
TRUE, FALSE = frozenset({"y", "yes", "true", "1"}), frozenset({"n", "no", "false", "0"})
# The specification: "MUST NOT use form mode to request sensitive information".
_SECRET = re.compile(
    r"passw|passphrase|secret|token|api.?key|private.?key|credential|\bpin\b|\bcvv\b|\bcvc\b|card.?number",
    re.IGNORECASE,
)

SECRET_WARNING = "This looks like a password or a key. Servers must not ask for those in the chat."


class _Option(Struct, frozen=True):
    const: str
    title: str = ""


class _Items(Struct, frozen=True, rename="camel"):
    enum: list[str] = []
    any_of: list[_Option] = []
    one_of: list[_Option] = []


class FormField(Struct, frozen=True, rename="camel"):
    """One field as its server describes it. `default` is UNSET if there is none."""

    type: Literal["string", "number", "integer", "boolean", "array"] = "string"
    title: str = ""
    description: str = ""
    default: Any = UNSET
    format: str = ""
    pattern: str = ""
    min_length: int = 0
    max_length: int | None = None
    minimum: float | None = None
    maximum: float | None = None
    min_items: int = 0
    max_items: int | None = None
    enum: list[str] = []
    enum_names: list[str] = []
    one_of: list[_Option] = []
    items: _Items = _Items()

    @property
    def choices(self) -> Mapping[str, str]:
        """The values to choose from, with their titles; empty if any value is allowed."""
        options = self.one_of or self.items.any_of or self.items.one_of
        if options:
            return {option.const: option.title or option.const for option in options}
        values = self.enum or self.items.enum
        titles = self.enum_names if len(self.enum_names) == len(values) else values
        return dict(zip(values, titles, strict=True))

    @property
    def constraints(self) -> Sequence[str]:
        """Descriptions of the allowed values."""
        kind = _KINDS.get(self.format or self.type, self.format or self.type)
        words = ["one of these" if self.choices and self.type != "array" else kind]
        if self.pattern:
            words.append(f"in the form {self.pattern}")
        for least, most, unit in (
            (self.min_length or None, self.max_length, " characters"),
            (self.minimum, self.maximum, ""),
            (self.min_items or None, self.max_items, ""),
        ):
            words += [f"at least {least:,.10g}{unit}"] if least is not None else []
            words += [f"at most {most:,.10g}{unit}"] if most is not None else []
        return words

    def value(self, typed: str | list[str]) -> Any:
        """Parse what the user typed; of an array also the chosen values as a list.

        Raises ValueError with a sentence for invalid input.
        """
        if self.type == "array":
            return self._several(typed.split(",") if isinstance(typed, str) else typed)
        if isinstance(typed, list):
            raise ValueError("Type one value.")
        if self.choices:
            return self._choice(typed)
        if self.type == "boolean":
            if typed.lower() in TRUE | FALSE:
                return typed.lower() in TRUE
            raise ValueError("Type y or n.")
        if self.type == "string":
            return self._text(typed)
        return self._number(typed)

    def shown(self, value: Any) -> str:
        """A value as text that `value` can parse."""
        if isinstance(value, bool):
            return "y" if value else "n"
        if isinstance(value, list):
            return ", ".join(map(self.shown, value))
        return self.choices.get(value, value) if isinstance(value, str) else str(value)

    def _choice(self, typed: str) -> str:
        values = [*self.choices]
        if typed in values:
            return typed
        for value, title in self.choices.items():
            if typed.casefold() in (value.casefold(), title.casefold()):
                return value
        if typed.isdecimal() and 1 <= int(typed) <= len(values):
            return values[int(typed) - 1]
        raise ValueError(f"{typed} is not one of them.")

    def _several(self, typed: list[str]) -> list[str]:
        words = [word.strip() for word in typed if word.strip()]
        chosen = [*dict.fromkeys(map(self._choice, words) if self.choices else words)]
        if len(chosen) < self.min_items:
            raise ValueError(f"Choose at least {self.min_items}.")
        if self.max_items is not None and len(chosen) > self.max_items:
            raise ValueError(f"Choose at most {self.max_items}.")
        return chosen

    def _number(self, typed: str) -> float | int:
        try:
            number = int(typed) if self.type == "integer" else float(typed)
            if not isfinite(number):
                raise ValueError
        except (ValueError, OverflowError):
            raise ValueError("Type a whole number." if self.type == "integer" else "Type a number.") from None
        if self.minimum is not None and number < self.minimum:
            raise ValueError(f"It must be at least {self.minimum:,.10g}.")
        if self.maximum is not None and number > self.maximum:
            raise ValueError(f"It must be at most {self.maximum:,.10g}.")
        return number

    def _text(self, typed: str) -> str:
        if len(typed) < self.min_length:
            raise ValueError(f"It must have at least {self.min_length:,} characters.")
        if self.max_length is not None and len(typed) > self.max_length:
            raise ValueError(f"It must have at most {self.max_length:,} characters.")
        # The pattern is shown but not checked: a server could send one with exponential backtracking.
        try:
            match self.format:
                case "email" if not re.fullmatch(r"[^@\s]+@[^@\s]+", typed):
                    raise ValueError
                case "uri" if not urlsplit(typed).scheme:
                    raise ValueError
                case "date":
                    date.fromisoformat(typed)
                case "date-time":
                    datetime.fromisoformat(typed)
        except ValueError:
            raise ValueError(f"Type {_EXAMPLES[self.format]}.") from None
        return typed


_EXAMPLES = {
    "email": "an e-mail address",
    "uri": "an address such as https://example.com",
    "date": "a date such as 2026-07-28",
    "date-time": "a date and time such as 2026-07-28T12:00:00Z",
}


class Form(Struct, frozen=True):
    """The fields by name, and the names of the required ones."""

    type: Literal["object"] = "object"
    properties: dict[str, FormField] = {}
    required: list[str] = field(default_factory=list)

    def entered(self, name: str, typed: str | list[str]) -> dict[str, Any]:
        """A field with the value that the user typed, {} if it is left out.

        Raises ValueError with a sentence for invalid input.
        """
        typed = typed.strip() if isinstance(typed, str) else typed
        if not typed and name not in self.required:
            return {}
        if not typed and self.properties[name].type != "array":
            raise ValueError("It must be filled in.")
        return {name: self.properties[name].value(typed)}


def read_form(schema: dict[str, Any] | UnsetType) -> Form:
    """Raises InvalidParams for a schema that is not flat."""
    try:
        return msgspec.convert({} if schema is UNSET else schema, Form)
    except msgspec.ValidationError as error:
        raise InvalidParams("requestedSchema", str(error)) from None


def asks_for_secret(name: str, form_field: FormField) -> bool:
    """Whether a field seems to ask for a secret, which only a page of the service itself may request."""
    words = f"{name} {form_field.title} {form_field.description} {form_field.format}".replace("_", " ")
    return bool(_SECRET.search(words))
