"""The supported programming languages. Imports no grammar."""

from __future__ import annotations

from pathlib import PurePosixPath

from msgspec import Struct


class Language(Struct, frozen=True):
    """A language. `module` is the package of its grammar, `grammar` the function there that returns it."""

    name: str
    module: str
    extensions: tuple[str, ...]  # without the dot
    grammar: str = "language"
    separator: str = "."  # between the parts of a qualified name
    hoists: bool = False  # the scope of a local variable is its whole function, also before its assignment
    needs_object: bool = False  # methods are always called on an object, unlike in Java inside the class


LANGUAGES = (
    Language("Python", "tree_sitter_python", ("py", "pyi", "pyw"), hoists=True, needs_object=True),
    Language(
        "JavaScript", "tree_sitter_javascript", ("js", "mjs", "cjs", "jsx"), hoists=True, needs_object=True
    ),
    Language(
        "TypeScript",
        "tree_sitter_typescript",
        ("ts", "mts", "cts"),
        "language_typescript",
        hoists=True,
        needs_object=True,
    ),
    Language("TSX", "tree_sitter_typescript", ("tsx",), "language_tsx", hoists=True, needs_object=True),
    Language("Go", "tree_sitter_go", ("go",), needs_object=True),
    Language("Rust", "tree_sitter_rust", ("rs",), separator="::"),
    Language("Java", "tree_sitter_java", ("java",)),
    Language("C", "tree_sitter_c", ("c",)),
    # A header may be C or C++; the grammar of C++ reads both.
    Language("C++", "tree_sitter_cpp", ("cpp", "cc", "cxx", "h", "hpp", "hh", "hxx"), separator="::"),
    Language("C#", "tree_sitter_c_sharp", ("cs",)),
    Language("Kotlin", "tree_sitter_kotlin", ("kt", "kts")),
    Language("Swift", "tree_sitter_swift", ("swift",)),
    Language("Ruby", "tree_sitter_ruby", ("rb", "rake"), separator="::"),
    Language("PHP", "tree_sitter_php", ("php",), "language_php", separator="::"),
    Language("Bash", "tree_sitter_bash", ("sh", "bash")),
    Language("Lua", "tree_sitter_lua", ("lua",), needs_object=True),
)
_BY_EXTENSION = {extension: language for language in LANGUAGES for extension in language.extensions}
# Languages whose code calls each other's: each with the one that stands for them.
_CALLED_TOGETHER = {"TypeScript": "JavaScript", "TSX": "JavaScript", "C++": "C", "Kotlin": "Java"}
EXTENSIONS = frozenset(_BY_EXTENSION)


def language_of(uri: str) -> Language | None:
    """The language of a file, by its extension; None if it is not supported."""
    return _BY_EXTENSION.get(PurePosixPath(uri).suffix[1:].lower())


def may_call(caller: Language, uri: str) -> bool:
    """Whether code in a language may call definitions in a file."""
    called = language_of(uri)
    names = [_CALLED_TOGETHER.get(one.name, one.name) for one in (caller, called) if one]
    return len(names) == 2 and names[0] == names[1]
