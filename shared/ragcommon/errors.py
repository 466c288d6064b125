"""The base of all errors, a sentence made of the error's fields; errors of the operating system."""

from __future__ import annotations

import errno
import re
import sys
from typing import Any, ClassVar, dataclass_transform

import msgspec

# Imported early: a library cannot be loaded once memory is short.
if sys.platform != "win32":
    import resource


# What msgspec raises for text that is not JSON, or not of the expected type.
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
# The messages of msgspec that are put in plain words.
_WRONG_TYPE = re.compile(r"Expected `(\w+)`, got `(\w+)`(?: - at `\$\.?([^`]*)`)?")
_MALFORMED = re.compile(r"JSON is malformed: (.*) \(byte (\d+)\)")
# Those about a table, as the end of a sentence that begins with its name.
_FLAWS = {
    r"Object missing required field `(.*)`.*": r"has no \1",
    r"Object contains unknown field `(.*)`.*": r"has an unknown key \1",
    r"Expected `str` matching regex .* - at `\$\.(.*)`": r"has a malformed \1",
    r"Expected .* - at `\$\.(.*)`": r"has a value of the wrong type in \1",
    r"Invalid enum value (.*) - at `\$\.(.*)`": r"has the unknown \2 \1",
}
# Its names of types in words.
TYPES = {
    "object": "a table",
    "array": "a list",
    "str": "a text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
}
# In a name such as "SettingsError".
_WORD_START = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class _Values:
    """An error's attributes as a mapping for `str.format_map`; a sequence becomes a list in words.

    A blank value is quoted, or the sentence would have a gap; not that of a field that may be left out.
    """

    def __init__(self, error: TemplateError) -> None:
        self._error = error

    def __getitem__(self, name: str) -> object:
        value = getattr(self._error, name)
        if isinstance(value, (list, tuple)):
            return ", ".join(value) or "none"
        is_required = name in self._error._fields and not hasattr(type(self._error), name)
        return _Blank(value) if is_required and isinstance(value, str) and not value.strip() else value


class _Blank(str):
    """Quoted once, also where the template has `!r`."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        return repr(self)


# Not dataclasses: they make the import of `ragmcp` take 25 ms instead of 11, which delays the first answer.
@dataclass_transform(eq_default=False)
class TemplateError(Exception):
    """A subclass's annotations are its fields, as in a dataclass.

    `sentence` and `hint` are templates over its fields and properties; a hint given to a constructor is not.
    `hint` is what the user can do ("" where nothing). `code` is the stable upper-case word for machines: the
    class's name, `NOT_A_MEMORY` for `NotAMemory`, where a class has a sentence and states no other code.
    """

    sentence: ClassVar[str]
    hint: str = ""
    _fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        own = [name for name, kind in cls.__annotations__.items() if not kind.startswith("ClassVar")]
        cls._fields = tuple(dict.fromkeys((*cls._fields, *own)))
        if "sentence" in vars(cls) and "code" not in {*vars(cls), *cls._fields}:
            cls.code = _WORD_START.sub("_", cls.__name__).upper()  # type: ignore[attr-defined]

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


class StructuredError(TemplateError):
    """The root of the programs' own errors."""

    code: ClassVar[str]

    def details(self) -> dict[str, Any]:
        """The fields, ready for JSON; the hint is not one of them."""
        return {name: getattr(self, name) for name in self._fields if name != "hint"}


class SystemRefused(StructuredError):
    """The operating system refused something for its own `reason`."""

    reason: str
    place: str
    hint: str = ""
    code = "SYSTEM_ERROR"
    sentence = "{reason}{at_place}."

    @property
    def at_place(self) -> str:
        return f": {self.place}" if self.place else ""


class OutOfMemory(StructuredError):
    """`limit` is that of the process in bytes, None without one."""

    limit: int | None
    sentence = "The system gives this program no more memory{at_limit}."
    hint = "Close other programs, or raise the limit: 1 GB (`ulimit -v 1000000`) is enough for most memories."

    @property
    def at_limit(self) -> str:
        return "" if self.limit is None else f"; its limit is {self.limit / 1e6:,.0f} MB (`ulimit -v`)"


def is_not_utf8(error: BaseException) -> bool:
    """Whether bytes could not be decoded as UTF-8. msgspec raises an error of its own for it from 0.23 on."""
    is_msgspec = isinstance(error, msgspec.DecodeError) and str(error).startswith("Invalid UTF-8")
    return is_msgspec or isinstance(error, UnicodeDecodeError)


def os_reason(error: BaseException) -> str:
    """The reason why a text cannot be read, or the message of another error, as the end of a sentence."""
    if is_not_utf8(error):
        return "it is not text in UTF-8"
    reason: str = getattr(error, "strerror", None) or ""
    if getattr(error, "errno", 0) == errno.EMFILE and sys.platform != "win32":
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        reason += f"; the limit is {limit:,} (`ulimit -n`)" if limit != resource.RLIM_INFINITY else ""
    return reason[:1].lower() + reason[1:] or str(error)


# Python's message where memory is short, or the user has too many processes.
_NO_THREAD = "can't start new thread"
# Messages of the dynamic linker and of Python when memory is short.
_NO_MEMORY = (
    *("failed to map segment", "annot allocate memory", "cannot create shared object descriptor"),
    *(_NO_THREAD, "can't allocate lock"),
)
# Memory is not short if an allocation of this size succeeds.
_ENOUGH_BYTES = 2**26


def leaf(error: BaseException) -> BaseException:
    """The first error in an exception group, else the error itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def of_the_system(error: BaseException) -> StructuredError | None:
    """The error for an exception that the operating system caused; None for another one."""
    error = leaf(error)
    if str(error) == _NO_THREAD and _can_allocate():
        hint = "Close other programs, or raise the limit on your user's processes and threads (`ulimit -u`)."
        return SystemRefused("The system gives this program no more threads", "", hint)
    if _is_shortage(error):
        return OutOfMemory(_memory_limit())
    # The system names the missing file, except when it is the working folder.
    if isinstance(error, FileNotFoundError) and error.strerror and not error.filename:
        return SystemRefused("The working folder no longer exists", "", "Change to another one with `cd`.")
    if isinstance(error, OSError) and error.strerror:
        hint = "Check the permissions of it and its folder." if isinstance(error, PermissionError) else ""
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = "Free some space on the disk that is written to." if is_full else hint
        reason = os_reason(error)
        return SystemRefused(reason[:1].upper() + reason[1:], str(error.filename or ""), hint)
    return None


def _is_shortage(error: BaseException) -> bool:
    """Whether an exception was caused by a lack of memory."""
    if isinstance(error, MemoryError) or getattr(error, "errno", 0) == errno.ENOMEM:
        return True
    if not isinstance(error, ImportError | RuntimeError | SystemError):
        return False
    # The second import of a library that could not be mapped raises another error.
    return any(text in str(error) for text in _NO_MEMORY) or (
        isinstance(error, ImportError | SystemError)
        and not isinstance(error, ModuleNotFoundError)
        and not _can_allocate()
    )


def is_memory_short() -> bool:
    """Whether memory is really short: a damaged file can declare an impossible length."""
    return _memory_limit() is not None or not _can_allocate()


def _can_allocate() -> bool:
    """Whether there is enough memory for normal work."""
    try:
        bytearray(_ENOUGH_BYTES)
    except MemoryError:
        return False
    return True


def _memory_limit() -> int | None:
    if sys.platform == "win32":
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def decode_reason(error: Exception, content: bytes = b"") -> str:
    """The reason of one of DECODE_ERRORS as the end of a sentence, with the line if `content` is given."""
    message = os_reason(error)
    if wrong := _WRONG_TYPE.fullmatch(message):
        wanted, found, name = wrong[1], wrong[2], wrong[3] or "it"
        if name.endswith("[...]"):
            name = f"a value of {name.removesuffix('[...]')}"
        return f"{name} must be {TYPES.get(wanted, wanted)}, not {TYPES.get(found, found)}"
    if malformed := _MALFORMED.fullmatch(message):
        at = int(malformed[2])
        line = content.count(b"\n", 0, at) + 1
        near = content[max(at - 1, 0) : at + 2]  # After the end of the document, `at` is one more.
        cause = "comments are not allowed" if b"//" in near or b"/*" in near else malformed[1]
        return f"it is not valid JSON: {cause}" + (f" (line {line:,})" if content else "")
    if message == "Input data was truncated":
        return "it is not valid JSON: its end is missing"
    return message


def flaw(error: msgspec.ValidationError) -> str:
    """What is wrong with a table, as the end of a sentence that begins with its name."""
    for pattern, words in _FLAWS.items():
        if found := re.fullmatch(pattern, str(error)):
            return found.expand(words)
    return f"is not usable: {decode_reason(error)}"
