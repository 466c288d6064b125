"""Rules of the project that no linter checks: early imports, sleeping tests, registry addresses."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

HEAVY = (
    "openai",
    "httpx2",
    "numpy",
    "wordllama",
    "tokenizers",
    "starlette",
    "uvicorn",
    "rich.markdown",
    "aiosqlite",
)
# `sleep_forever` is no waiting: the test ends it. A reason is a comment that begins with "sleep:".
SLEEP = re.compile(r"\bsleep\((?!.*# sleep: \w)")
DOCSTRING = re.compile(r'"""(?s:.*?)"""')  # of a module; parsing all tests takes 2 s
PACKAGES = ("client/ragchat", "server/ragmemory", "shared/ragmcp", "shared/ragcommon", "config/ragconfig")
ADDRESSES = re.compile(r"(?:index-url|extra-index|pypi\.org/simple|files\.pythonhosted|registry\.npmjs)")


def tracked_files() -> list[Path]:
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split("\n")
    files = [ROOT / name for name in names if name and (ROOT / name).is_file()]
    if not files:
        pytest.skip("not a git checkout: there is no list of the project's own files")
    return files


@pytest.mark.parametrize(
    "module", ["ragchat.cli", "ragmemory.cli", "ragmcp.server.core", "ragmcp.client.features"]
)
def test_importing_a_front_door_imports_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_no_test_sleeps() -> None:
    """Time passes too slowly on a busy machine, and too fast on an idle one: tests wait for events."""
    sleeping = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked_files()
        if path.suffix == ".py" and path.is_relative_to(ROOT / "tests") and path != Path(__file__).resolve()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if SLEEP.search(line)
    ]
    assert sleeping == []


def test_no_file_records_the_address_of_a_package_registry() -> None:
    guilty = [
        path.relative_to(ROOT)
        for path in tracked_files()
        if path != Path(__file__).resolve()
        and ADDRESSES.search(path.read_text(encoding="utf-8", errors="ignore"))
    ]
    assert guilty == []


def imports_of(path: Path) -> set[str]:
    """All modules that a file imports, also lazily or for type checkers only."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def module_name(path: Path, package: Path) -> str:
    return ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")


def import_graph() -> dict[str, set[str]]:
    """The modules of the five packages, each with those it imports; a module's own parents do not count."""
    files = {
        ".".join(path.relative_to((ROOT / package).parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }
    return {
        module: {
            name
            for name in imports_of(path)
            if name in files and name != module and not module.startswith(f"{name}.")
        }
        for module, path in files.items()
    }


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """What is left of a graph after removing, again and again, the modules that import none of the rest."""
    rest = {module: set(imports) for module, imports in graph.items()}
    while leaves := {module for module, imports in rest.items() if not imports & rest.keys()}:
        rest = {module: imports for module, imports in rest.items() if module not in leaves}
    # Modules that only import into a circle stay; those that no other one imports go as well.
    while roots := rest.keys() - {name for imports in rest.values() for name in imports}:
        rest = {module: imports for module, imports in rest.items() if module not in roots}
    return [[module, *sorted(imports & rest.keys())] for module, imports in sorted(rest.items())]


def test_a_circle_of_imports_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set[str]()}
    assert circles(graph) == [["b", "c"], ["c", "b"]]


def test_no_modules_import_each_other_in_a_circle_not_even_lazily_or_for_types() -> None:
    assert circles(import_graph()) == []


def folders_that_import_each_other(graph: dict[str, set[str]]) -> set[tuple[str, str]]:
    """The pairs of folders of one package of which each imports the other. Top modules are in no folder."""
    edges = {
        (module.rsplit(".", module.count(".") - 1)[0], name.rsplit(".", name.count(".") - 1)[0])
        for module, imports in graph.items()
        for name in imports
        if module.count(".") > 1 and name.count(".") > 1
    }
    return {(a, b) for a, b in edges if a < b and (b, a) in edges}


def test_no_folders_of_a_package_import_each_other() -> None:
    graph = {"a.b.c": {"a.d.e"}, "a.d.f": {"a.b.c"}, "a.g": {"a.b.c"}}
    assert folders_that_import_each_other(graph) == {("a.b", "a.d")}
    assert folders_that_import_each_other(import_graph()) == set()


# Where the tests of a package's modules are.
TESTS_OF = {
    "shared/ragmcp": "shared",
    "shared/ragcommon": "common",
    "client/ragchat": "client",
    "server/ragmemory": "server",
    "config/ragconfig": "config",
}


def test_the_test_of_every_module_can_be_found() -> None:
    """It has the module's name and folder; or its docstring names the module, from another folder in full."""
    tests = ROOT / "tests"
    docstrings = {
        path: (DOCSTRING.match(path.read_text(encoding="utf-8")) or [""])[0]
        for path in tests.rglob("test_*.py")
    }
    lost = []
    for package, folder in TESTS_OF.items():
        for path in (ROOT / package).rglob("[!_]*.py"):
            home = tests / folder / path.parent.relative_to(ROOT / package)
            full = module_name(path, ROOT / package)
            is_named = any(
                f"`{full}`" in text or (test.parent == home and f"`{path.stem}`" in text)
                for test, text in docstrings.items()
            )
            if not is_named and home / f"test_{path.name}" not in docstrings:
                lost.append(full)
    assert lost == []


# Addresses with a name, which may also be a default of a setting; the examples in help texts are sentences.
ADDRESS = re.compile(r"https?://[^\s{}]+")


def addresses(package: str) -> dict[str, str]:
    """The addresses that are values of a package's constants, each with its place."""
    return {
        node.value.value: f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / package).rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and ADDRESS.fullmatch(node.value.value)
    }


def test_no_address_is_written_on_two_sides_of_a_wall() -> None:
    places: dict[str, list[str]] = {}
    for package in PACKAGES:
        for address, place in addresses(package).items():
            places.setdefault(address, []).append(place)
    assert places, "there are none to compare"
    assert [found for found in places.values() if len(found) > 1] == []


# Words that plain technical English does without.
RIDDLES = re.compile(r"(?<![\w~\"-])(?:anew|whoever|nobody)(?![\w-])", re.IGNORECASE)


def prose(path: Path, text: str) -> str:
    """What a file says to its readers: of Python the comments and docstrings, of Markdown all."""
    if path.suffix == ".md":
        return text
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    said = [token.string for token in tokens if token.type == tokenize.COMMENT]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            said.append(ast.get_docstring(node) or "")
    return "\n".join(said)


def test_the_language_is_plain() -> None:
    guilty = {}
    for path in tracked_files():
        if path.suffix in {".py", ".md"} and RIDDLES.search(text := path.read_text(encoding="utf-8")):
            guilty[path.relative_to(ROOT)] = RIDDLES.findall(prose(path, text))
    assert {path: words for path, words in guilty.items() if words} == {}
