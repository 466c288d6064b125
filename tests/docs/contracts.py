"""Writes the generated parts of docs/contracts.md: `python -m tests.docs.contracts`.

The JSON of the commands is what they print when they run; the other parts are read from the program.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import tempfile
from argparse import SUPPRESS
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from ragchat.arguments.declaring import Command
from ragchat.arguments.parser import make_parser
from ragchat.arguments.table import COMMANDS
from ragcommon.errors import StructuredError
from ragconfig.settings import PACKAGED, packaged, ranges
from ragmcp.errors import RagMcpError
from ragmemory.mcp.prompts import Prompts
from ragmemory.mcp.toolsets import ALL, make_tools
from tests.docs.pages import DOCS, ROOT, folder_of_examples, read, run_line
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.program import Program
from tests.test_house import PACKAGES, module_name

PAGE = DOCS / "contracts.md"
PART = re.compile(r"(<!-- generated: (\w+) -->\n\n).*?(<!-- end -->)", re.DOTALL)
SERVER = f"{sys.executable} -m tests.support.mcp_server"

# Each script runs in a home of its own; each line shows the JSON of its command. A line that begins with
# `echo` is for the shell, and one with `&` starts a program that does not end: its first document is taken.
SCRIPTS = {
    "questions": """
inject notes
ask "How much pressure does the boiler need?"
ask "What is the capital of Mongolia?"
ask --model test-model "How much pressure does the boiler need?"
ask --model test-model "How is the boiler refilled?"
query -k 2 roses
research "When are the roses cut, and how often is the lawn mown?"
run script.toml
prompt ls
prompt show reviewer
session ls
session search boiler
session show {session}
session export {session}
session inject {session}
session rm {session}
""",
    "judged": """
inject notes
echo $'How much pressure?\\n/good\\nAre roses blue?\\n/bad nowhere\\nRoses?\\n/bad' | ragchat
case ls
eval --offline
eval --offline --set cases.toml
echo $'# Flat\\n\\nThe boiler is gone.' > notes/flat.md
inject notes
eval --offline
replay --model test-model
session stale
case rm {case}
""",
    "folders": """
inject notes none.md
sync notes
source add notes
source ls
sync
source rm notes
watch code &
""",
    "memory": """
inject notes
memory ls
memory show notes/flat.md
memory log
memory stats
echo "It was serviced in May." >> notes/flat.md
inject notes
memory versions notes/flat.md
memory diff notes/flat.md
memory restore notes/flat.md 1
memory undo
memory export all.jsonl
memory import all.jsonl
memory backup backup.db
memory verify
memory verify --repair
memory reembed
memory rm notes/flat.md
""",
    "programs": """
serve --port 0 &
mcp add --recipe
mcp add test --env PYTHONPATH={root} -- {server}
mcp import
mcp ls
mcp test
mcp disable test
mcp enable test
mcp rm test
mcp config cursor
config show
config path
config init
completion fish
doctor
""",
}
CASES = '[[step]]\nask = "When are roses cut?"\nexpect = { contains = "May" }\n'
SCRIPTED = (
    '[[step]]\ninject = "notes"\n\n[[step]]\nask = "When are roses cut?"\nexpect = { contains = "May" }\n'
)
# Objects that several results hold, by two of their fields.
NAMED = {
    "hit": {"rank", "chunk_id"},
    "citation": {"quote", "quote_start_line"},
    "card": {"n", "best"},
    "origin": {"client", "group"},
    "file": {"path", "exists"},
    "conditions": {"system_prompt", "embedder"},
}
# Objects whose keys are data.
MAPS = {
    *("corrections", "env", "files", "keys", "mcpServers"),
    *("by_document", "metadata", "settings", "timings", "usage", "weights", "writes"),
}


class Shape:
    """The types of the values that were seen at one place of a document."""

    def __init__(self, name: str = "") -> None:
        self._name = name
        self._types: set[str] = set()
        self._fields: dict[str, Shape] = {}
        self._items: Shape | None = None

    def see(self, value: Any, named: dict[str, Shape]) -> None:
        """`named` collects the objects that have a name, wherever they are."""
        match value:
            case dict():
                name = next((name for name, keys in NAMED.items() if value.keys() >= keys), "")
                self._types.add(name or "object")
                fields = named.setdefault(name, Shape())._fields if name else self._fields
                for key, inner in value.items() if self._name not in MAPS else ():
                    fields.setdefault(key, Shape(key)).see(inner, named)
            case list():
                self._types.add("list")
                self._items = self._items or Shape()
                for inner in value:
                    self._items.see(inner, named)
            case None:
                self._types.add("null")
            case bool():
                self._types.add("boolean")
            case int() | float():
                self._types.add("number" if isinstance(value, float) else "integer")
            case _:
                self._types.add("string")

    def text(self, indent: str = "") -> str:
        types = self._types - ({"integer"} if "number" in self._types else set())
        return " or ".join(self._one(kind, indent) for kind in sorted(types)) or "…"

    def _one(self, kind: str, indent: str) -> str:
        if kind == "list" and self._items is not None:
            return f"[{self._items.text(indent)}]"
        return self.object(indent) if kind == "object" else kind

    def object(self, indent: str = "") -> str:
        if not self._fields:
            return "{…}"
        inner = f"{indent}  "
        fields = [f"{name}: {shape.text(inner)}" for name, shape in self._fields.items()]
        line = f"{{{', '.join(fields)}}}"
        if len(indent) + len(line) <= 100 and "\n" not in line:
            return line
        return "{\n" + "".join(f"{inner}{field}\n" for field in fields) + f"{indent}}}"


def printed(ragchat: Program, script: str) -> dict[str, list[Any]]:
    """The documents that each command of a script prints, by its name in the table."""
    (ragchat.folder / "script.toml").write_text(SCRIPTED, encoding="utf-8")
    (ragchat.folder / "cases.toml").write_text(CASES, encoding="utf-8")
    values = {"session": "", "server": SERVER, "root": str(ROOT)}
    seen: dict[str, list[Any]] = {}
    for line in script.strip().splitlines():
        if line.startswith("echo "):
            run_line(ragchat, line)
            continue
        name = command_of(line)
        words = [*name.split(), "--json", *shlex.split(line.removeprefix(name).format_map(values))]
        if words[-1] == "&":
            with ragchat.started(*words[:-1]) as program:
                document = json.loads(first_document(program.line))
        else:
            document = ragchat(*words).json
        if isinstance(document.get("error"), dict):  # The contract has one for all commands.
            failure = document.pop("error")
            assert document, f"{line}: {failure}"
        seen.setdefault(name, []).append(document)
        if name == "session ls":
            values["session"] = document["sessions"][0]["session_id"]
        if name == "case ls":
            values["case"] = document["cases"][0]["case_id"]
    return seen


def first_document(line: Callable[[], bytes]) -> str:
    """The first document of a program's output, on one line or indented."""
    text = line().decode()
    while text.startswith("{\n") and not text.endswith("\n}\n"):
        text += line().decode()
    return text


def command_of(line: str) -> str:
    names = {command.name for command in COMMANDS}
    words = line.split()
    return next(name for name in (" ".join(words[:2]), words[0]) if name in names)


def usage(command: Command) -> str:
    parts = [f"ragchat {command.name}"]
    for argument in command.arguments:
        names, options = argument.names, argument.options
        if options.get("help") == SUPPRESS:
            continue
        metavar = options.get("metavar") or names[-1].lstrip("-").upper()
        value = metavar.upper() if isinstance(metavar, str) else " ".join(metavar)
        match options.get("nargs"):
            case "+" | "*":
                value += "…"
        if not names[0].startswith("-"):
            parts.append(f"[{value}]" if options.get("nargs") in ("*", "?") else value)
        elif options.get("action") == "store_true":
            parts.append(f"[{names[0]}]")
        else:
            parts.append(f"[{names[0]} {value}]")
    return " ".join(parts)


def commands() -> Iterator[str]:
    yield from ("| command | does |", "|---|---|")
    for command in COMMANDS:
        yield f"| `{escaped(usage(command))}` | {command.help} |"
    yield ""
    yield "Every command takes these, and `--json`:"
    yield ""
    yield from ("| option | does |", "|---|---|")
    for action in make_parser(())._actions:
        if action.help and action.dest in ("memory", "server", "config", "verbose", "version", "help"):
            names = ", ".join(action.option_strings)
            yield f"| `{names}{f' {action.metavar}' if action.metavar else ''}` | {action.help} |"


def documents(seen: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    named: dict[str, Shape] = {}
    shapes = {name: Shape() for name in seen}
    for name, found in seen.items():
        for document in found:
            shapes[name].see(document, named)
    yield "```text"
    for name in NAMED:
        if name in named:
            yield f"{name} = {named[name].object()}\n"
    known: dict[str, str] = {}
    for name in (command.name for command in COMMANDS if command.name in shapes):
        text = shapes[name].text()
        yield f"ragchat {name}\n{known.get(text, text)}\n"
        known.setdefault(text, f"(as ragchat {name})")
    yield "```"


def parameter(schema: Mapping[str, Any] | bool, definitions: Mapping[str, Any]) -> str:
    """The type of a JSON Schema in a few words."""
    if isinstance(schema, bool):
        return "any"
    if "$ref" in schema:
        return parameter(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "enum" in schema:
        return " or ".join(json.dumps(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(parameter(one, definitions) for one in schema["anyOf"]))
    match schema.get("type"):
        case "array":
            return f"[{parameter(schema.get('items', {}), definitions)}]"
        case "object" if schema.get("properties") and not schema.get("additionalProperties"):
            return fields_of(schema, definitions)
        case "object":
            return "{…}"
        case str(kind):
            return kind
        case list(kinds):
            return " or ".join(kinds)
    return "any"


def fields_of(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Optional fields have a question mark."""
    required = schema.get("required", [])
    fields = [
        f"{name}{'' if name in required else '?'}: {parameter(inner, definitions)}"
        for name, inner in schema.get("properties", {}).items()
    ]
    return f"{{{', '.join(fields)}}}"


def tools() -> Iterator[str]:
    known: dict[str, str] = {}  # results that are part of others, or returned by several tools
    for toolset in ALL:
        yield f"### Toolset {toolset}\n"
        for one in make_tools(nothing, [toolset]):
            info = json.loads(msgspec.json.encode(one.info))
            arguments = info["inputSchema"]
            taken = fields_of(arguments, arguments.get("$defs", {})).strip("{}")
            yield f"`{info['name']}`: {first_sentence(info.get('description', ''))}\n"
            yield f"```text\n({taken})"
            if result := info.get("outputSchema"):
                text = parameter(result, result.get("$defs", {}))
                shown = text
                for part, name in known.items():
                    shown = shown.replace(part, f"(as {name})")
                yield f"→ {shown}"
                known.setdefault(text, info["name"])
            yield "```\n"


def first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s", " ".join(text.split()), maxsplit=1)[0]


async def nothing() -> Any:
    raise AssertionError("nothing is called")


def prompts() -> Iterator[str]:
    yield from ("| prompt | arguments |", "|---|---|")
    for prompt in Prompts(nothing, Path("none")):
        arguments = prompt.info.arguments
        assert arguments is not UNSET
        names = [f"`{one.name}`{'' if one.required else ' (optional)'}" for one in arguments]
        yield f"| `{prompt.info.name}` | {', '.join(names)} |"


def errors() -> Iterator[str]:
    """One line a code, with the sentences of its errors, or what they are about."""
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            if path.stem != "__main__":
                import_module(module_name(path, ROOT / package))
    names = tuple(f"{package.rpartition('/')[2]}." for package in PACKAGES)
    sentences: dict[str, set[str]] = {}
    for root in (StructuredError, RagMcpError):
        for kind in subclasses(root):
            code, sentence = getattr(kind, "code", ""), getattr(kind, "sentence", "")
            if "__str__" in vars(kind):  # The sentence has no template.
                sentence = (kind.__doc__ or "").partition("\n")[0]
            if kind.__module__.startswith(names) and isinstance(code, str) and code and sentence:
                sentences.setdefault(code, set()).add(plain(sentence))
    yield from ("| code | sentence |", "|---|---|")
    for code, texts in sorted(sentences.items()):
        yield f"| `{code}` | {'<br>'.join(sorted(texts))} |"


def plain(sentence: str) -> str:
    """A template without the marks of Python's formats: `{limit:,}` is `{limit}`."""
    return escaped(re.sub(r"\{(\w+)[^{}]*\}", r"{\1}", sentence))


def escaped(text: str) -> str:
    """For the cell of a table."""
    return text.replace("|", "\\|")


def subclasses(kind: type[Exception]) -> Iterator[type[Exception]]:
    for one in kind.__subclasses__():
        yield one
        yield from subclasses(one)


def settings() -> Iterator[str]:
    for name in PACKAGED:
        for table, values in packaged(name).items():
            yield f"`[{table}]`\n"
            yield from ("| key | default | range |", "|---|---|---|")
            for key, value in values.items():
                least_most = ranges().get(table, {}).get(key, ())
                limits = " to ".join(f"{end:,}".removesuffix(".0") for end in least_most)
                yield f"| `{key}` | `{json.dumps(value)}` | {limits} |"
            yield ""


STATIC: Mapping[str, Callable[[], Iterator[str]]] = {
    "commands": commands,
    "tools": tools,
    "prompts": prompts,
    "errors": errors,
    "settings": settings,
}


def part(lines: Iterator[str]) -> str:
    return "\n".join(lines).strip() + "\n"


def parts_of(page: str) -> dict[str, str]:
    return {found[2]: page[found.end(1) : found.start(3)] for found in PART.finditer(page)}


def documents_of(script: str, folder: Path) -> str:
    """The part of the page about the commands of a script, which runs in `folder`."""
    replies = [
        Reply('It must stay "between 1.2 and 1.8 bar" [1]. It was built in 1998 [1].'),
        Reply("With the blue valve [1]."),
    ]
    with OpenAIServer(replies) as server:
        ragchat = folder_of_examples(folder)
        ragchat.environ.update(RAGCHAT_MODEL_BASE_URL=server.base_url, OPENAI_API_KEY="test")
        return part(documents(printed(ragchat, script)))


def main() -> None:
    parts = {name: part(lines()) for name, lines in STATIC.items()}
    for name, script in SCRIPTS.items():
        with tempfile.TemporaryDirectory() as folder:
            parts[name] = documents_of(script, Path(folder))
    page = PART.sub(lambda found: f"{found[1]}{parts[found[2]]}{found[3]}", read(PAGE))
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
