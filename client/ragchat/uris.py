"""URIs of documents: resolving what the user typed, globs, and short forms for display."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from ragchat.sanitize import one_line
from ragcommon.contract.search import Hit
from ragcommon.files.uris import path_in
from ragcommon.text.places import Place, file_name, location

if TYPE_CHECKING:
    from ragchat.grounding.types import Citation

# At most this many folders are shown before a file's name.
_MAX_FOLDERS = 8
# Enough of a content hash to tell documents apart at a glance; commands take the whole URI or id.
_HASH_DIGITS = 12
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # not the letter of a drive
# The labels of documents that this program wrote, by the prefixes of their URIs. Not every chat has a model.
_OUR_OWN = {"ragchat:session/": "chat with ragchat, ", "ragchat:report/": "report by a model, "}
# Characters of globs and paths, which stay as they are when a glob is encoded like a file's URI.
_SYNTAX = "/~*?[]^!-"


def references(document: str) -> Sequence[str]:
    """What a user's word for a document may mean, likeliest first: an id or a URI, then a file's path."""
    try:
        path = Path(document).expanduser().resolve()
    except (OSError, RuntimeError, ValueError):  # an unknown user's home, a circle of links, a NUL
        return (document,)
    # A path that is not UTF-8 cannot be sent to a server; in its URI the bytes are escaped.
    return (document, path.as_uri()) if is_utf_8(document) else (path.as_uri(),)


def is_utf_8(words: str) -> bool:
    """Whether an argument is text, without the lone surrogates of a path that is not UTF-8."""
    try:
        words.encode()
    except UnicodeEncodeError:
        return False
    return True


def exact_glob(uri: str) -> str:
    """The glob that matches `uri` alone."""
    return re.sub(r"[*?[]", r"[\g<0>]", uri)


def is_glob(words: str) -> bool:
    return any(character in words for character in "*?[")


def absolute_scope(words: str) -> str:
    """The words for documents without the working folder: a path that exists becomes absolute."""
    parts = words.split("/")
    fixed = next((index for index, part in enumerate(parts) if is_glob(part)), len(parts))
    try:
        beginning = Path("/".join(parts[:fixed])).expanduser()
        if not fixed or not beginning.exists():
            return words
        return "/".join([str(beginning.resolve()), *parts[fixed:]])
    except (OSError, RuntimeError, ValueError):  # an unknown user's home, a circle of links, a NUL
        return words


def folder_globs(words: str) -> Sequence[str]:
    """The globs for what is under a folder, or under a URI that is written with a slash at its end."""
    *_, uri = references(words)
    if words.endswith("/") and _SCHEME.match(words):
        uri = words
    return [f"{exact_glob(uri).rstrip('/')}/*"]


def path_globs(words: str) -> Sequence[str]:
    """What a glob may match, the likeliest first: paths from here, the end of any path, URIs as they are.

    One that begins with `*` matches URIs as they are.
    """
    if words.startswith("*") or _SCHEME.match(words):
        return (words,)
    parts = words.split("/")
    wild = next(index for index, part in enumerate(parts) if is_glob(part))
    *_, folder = references("/".join(parts[:wild]) or ("/" if wild else "."))
    end = _encoded("/".join(parts[wild:]))
    globs = (f"{exact_glob(folder).rstrip('/')}/{end}", f"*/{_encoded(words)}", words)
    return globs if is_utf_8(words) else globs[:2]


def part_globs(words: str) -> Sequence[str]:
    """The globs for a part of a URI in either case: as in a file's URI, and as it is."""
    return [f"*{glob}*" for glob in _spellings(words)]


def name_globs(name: str) -> Sequence[str]:
    """The globs for URIs that end with a whole name, or several after each other, in either case."""
    return [f"*/{glob}" for glob in _spellings(name)]


def _spellings(words: str) -> Sequence[str]:
    encoded = either_case(words.replace("\\", "/"), _encoded)
    return [*dict.fromkeys((encoded, either_case(words)))] if is_utf_8(words) else [encoded]


def either_case(text: str, write: Callable[[str], str] = str) -> str:
    """The glob for a text in either case, each character as `write` writes it."""
    return "".join(_either_case(character, write) for character in text)


def _encoded(text: str) -> str:
    return quote(os.fsencode(text), safe=_SYNTAX)


def _either_case(character: str, write: Callable[[str], str]) -> str:
    """The glob for a letter in either case, as `write` writes it; for any other character itself."""
    forms = {write(form) for form in (character, character.lower(), character.upper())}
    if len({len(form) for form in forms}) > 1:  # ß and SS
        return exact_glob(write(character))
    places = ("".join(sorted(set(place))) for place in zip(*forms, strict=True))
    return "".join(f"[{place}]" if len(place) > 1 else exact_glob(place) for place in places)


def short_uri(uri: str, title: str = "") -> str:
    """A file in the working folder by its relative path, in the home folder with ~; a hash by its title."""
    if (path := path_in(uri)) is not None:
        short = short_path(path)
        return one_line(short if short != "." else str(path))
    if uri.startswith("sha256:"):
        return one_line(title) or uri[: len("sha256:") + _HASH_DIGITS]
    return one_line(uri)


def short_names(documents: Sequence[tuple[str, str]]) -> list[str]:
    """The name of the file of each URI and title, with as many folders before it as tell them apart."""

    def name(uri: str, title: str, folders: int) -> str:
        path = path_in(uri)
        return "/".join(path.parts[-folders - 1 :]) if path and folders else file_name(uri, title)

    names = dict[str, str]()
    for folders in range(_MAX_FOLDERS + 1):
        possible = {uri: name(uri, title, folders) for uri, title in documents if uri not in names}
        counts = Counter(possible.values())
        is_last = folders == _MAX_FOLDERS
        names |= {uri: one for uri, one in possible.items() if is_last or counts[one] == 1}
    return [names[uri] for uri, _ in documents]


def short_location(
    uri: str, lines: Iterable[tuple[int, int]], title: str = "", places: Sequence[Place] = ()
) -> str:
    """`notes/rag.md:12–18, 30` for two ranges of lines; `papers/thesis.pdf p. 12` if they are in places."""
    return kind_of(uri) + one_line(location(short_uri(uri, title), lines, places))


def passage_location(passage: Hit | Citation) -> str:
    """The `short_location` of a hit, or of what a citation quotes."""
    lines = (passage.start_line, passage.end_line) if isinstance(passage, Hit) else passage.cited_lines
    return short_location(passage.uri, [lines], passage.title, passage.places)


def kind_of(uri: str) -> str:
    """The label before the name of a document that this program wrote: it is not the user's own source."""
    return next((kind for prefix, kind in _OUR_OWN.items() if uri.startswith(prefix)), "")


def short_path(path: Path) -> str:
    """`path`, relative to the working folder if it is in it, with ~ if it is in the home folder."""
    for find, prefix in ((Path.cwd, Path()), (Path.home, Path("~"))):
        with suppress(OSError, RuntimeError):  # a deleted working folder, a user without a home
            if path.is_relative_to(folder := find()):
                return (prefix / path.relative_to(folder)).as_posix()
    return str(path)
