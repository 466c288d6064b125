"""Tools from functions: schemas, arguments, results.

Covers `ragmcp.protocol.decoding`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, cast

import jsonschema
import msgspec
import pytest
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.structs import replace

from ragmcp.errors import BadFunction, InvalidParams
from ragmcp.protocol.json_schema import flat_schema
from ragmcp.protocol.schema.content import Content, ImageContent, TextContent
from ragmcp.server.call import Call
from ragmcp.server.core import Server
from ragmcp.server.tools import Tool, ToolResult, tool
from tests.support.mcp_process import SERVER, spawned
from tests.support.raw_mcp import raw_client

CALL = cast(Call, None)  # None of these tools looks at its call.


class Place(Struct):
    """Where."""

    line: int
    file: str = ""


class Found(Struct):
    """What."""

    places: list[Place]


class Opaque(Struct):
    """Has no schema."""

    path: Path


class Tree(Struct):
    """A type that holds itself."""

    children: list[Tree]


@tool(read_only=True)
async def find(
    _: Call,
    query: Annotated[str, Meta(description="what to look for")],
    top_k: Annotated[int, Meta(ge=1, le=100)] = 8,
    order: Literal["score", "time"] = "score",
    near: Place | None = None,
    filter: dict[str, Any] | None = None,
) -> Found:
    """Looks for something.

    And finds it.
    """
    return Found([near or Place(top_k, query + order + json.dumps(filter))])


@tool(idempotent=True, destructive=True)
async def plain(_: Call) -> str:
    """Takes nothing."""
    return "text"


@tool()
async def chosen(_: Call) -> ToolResult[Place]:
    """Chooses its own text."""
    return ToolResult([TextContent(text="line 3")], Place(3))


@tool()
async def trees(_: Call, tree: Tree) -> Tree:
    """Gives a tree back."""
    return tree


def test_a_tool_is_described_by_its_name_docstring_and_hints() -> None:
    info = find.info
    assert (info.name, info.description) == ("find", "Looks for something.\n\nAnd finds it.")
    assert info.annotations != UNSET
    assert info.annotations.read_only_hint
    assert not info.annotations.destructive_hint
    assert plain.info.annotations != UNSET
    assert plain.info.annotations.destructive_hint
    assert plain.info.annotations.idempotent_hint


def test_the_input_schema_is_flat_and_says_everything() -> None:
    assert find.info.input_schema == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "what to look for"},
            "top_k": {"type": "integer", "minimum": 1, "maximum": 100, "default": 8},
            "order": {"enum": ["score", "time"], "default": "score"},
            "near": {
                "type": "object",
                "description": "Where.",
                "properties": {"line": {"type": "integer"}, "file": {"type": "string", "default": ""}},
                "required": ["line"],
            },
            "filter": {"type": "object"},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def test_a_tool_without_arguments_takes_an_empty_object() -> None:
    assert plain.info.input_schema == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("schema", [t.info.input_schema for t in (find, plain, trees)] + [flat_schema(Tree)])
def test_a_schema_is_a_valid_json_schema_with_an_object_at_its_root(schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)


def test_a_type_that_holds_itself_keeps_its_reference_and_works() -> None:
    validator = jsonschema.Draft202012Validator(trees.info.input_schema)
    assert validator.is_valid({"tree": {"children": [{"children": []}]}})
    assert not validator.is_valid({"tree": {"children": [{"children": 5}]}})


def test_the_output_schema_is_that_of_the_struct_or_of_the_chosen_result() -> None:
    assert find.info.output_schema == flat_schema(Found)
    assert chosen.info.output_schema == flat_schema(Place)
    assert plain.info.output_schema is UNSET


@dataclass
class Sky:
    """What is above."""

    clouds: int


class Air(TypedDict):
    """What is around."""

    celsius: float


@pytest.mark.parametrize(
    ("declared", "value", "text"),
    [
        (Sky, Sky(3), '{"clouds":3}'),
        (Air, {"celsius": 12.5}, '{"celsius":12.5}'),
        (dict[str, int], {"a": 1}, '{"a":1}'),
        (Annotated[Place, "where"], Place(5), '{"line":5,"file":""}'),
        (ToolResult[Sky], ToolResult([TextContent(text="clear")], Sky(0)), "clear"),
    ],
    ids=str,
)
async def test_a_result_may_have_any_type_that_is_an_object_in_json(
    declared: Any, value: object, text: str
) -> None:
    result = await run(made := returning(declared, value), "{}")
    assert result.content == [TextContent(text=text)]
    assert made.info.output_schema != UNSET
    structured = msgspec.to_builtins(result.structured)
    jsonschema.Draft202012Validator(made.info.output_schema).validate(structured)


async def test_a_list_may_hold_some_kinds_of_content_only() -> None:
    image = ImageContent(data="", mime_type="image/png")
    for declared in (list[ImageContent], list[TextContent | ImageContent], list[Content]):
        made = returning(declared, [image])
        assert made.info.output_schema is UNSET
        assert (await run(made, "{}")).content == [image]


@pytest.mark.parametrize(
    ("declared", "value", "reason"),
    [
        (str, 3, "Expected `str`, got `int`"),
        (str, None, "Expected `str`, got `null`"),
        (Place, {"file": "a"}, "Object missing required field `line`"),
        (Place, Place(cast(int, "three")), r"Expected `int`, got `str` - at `\$.line`"),
        (list[Content], ["text"], "Expected `object`, got `str`"),
    ],
)
async def test_a_result_of_another_type_than_declared_is_an_error(
    declared: Any, value: object, reason: str
) -> None:
    with pytest.raises(msgspec.ValidationError, match=reason):
        await run(returning(declared, value), "{}")


def returning(declared: Any, value: object) -> Tool:
    """A tool that returns `value`, and says that it returns what is `declared`."""

    async def give(_: Call) -> Any:
        """Gives something."""
        return value

    give.__annotations__["return"] = declared
    return tool()(give)


async def run(of: Tool, arguments: str) -> ToolResult[Any]:
    return await of.run(CALL, Raw(arguments.encode()))


async def test_arguments_arrive_typed_and_defaults_are_filled_in() -> None:
    assert (await run(find, '{"query":"q"}')).structured == Found([Place(8, "qscorenull")])
    assert (await run(find, '{"query":"q","near":{"line":5}}')).structured == Found([Place(5)])


async def test_a_struct_becomes_json_text_and_structured_content() -> None:
    result = await run(find, '{"query":"q","near":{"line":5}}')
    assert result.content == [TextContent(text='{"places":[{"line":5,"file":""}]}')]


async def test_a_str_becomes_text_alone() -> None:
    text = ToolResult([TextContent(text="text")], UNSET)
    assert await run(plain, "{}") == text
    made = Tool(plain.info, plain.function, msgspec.json.Decoder(dict[str, Any]))
    assert await run(made, "{}") == text
    assert await run(returning(list[TextContent], tuple(text.content)), "{}") == text


async def test_arguments_of_a_tool_of_any_schema_may_not_be_utf_8() -> None:
    made = Tool(find.info, plain.function, msgspec.json.Decoder(dict[str, Any]))
    with pytest.raises(InvalidParams, match="a string in it is not UTF-8"):
        await made.run(CALL, Raw(b'{"a":"\xff"}'))


async def test_a_tool_may_choose_its_text() -> None:
    assert (await run(chosen, "{}")).content == [TextContent(text="line 3")]


@pytest.mark.parametrize(
    ("arguments", "path", "reason"),
    [
        ("{}", "$.query", "required, but missing"),
        ('{"query":5}', "$.query", "expected `str`, got `int`"),
        ('{"query":"q","top_k":0}', "$.top_k", "expected `int` >= 1"),
        ('{"query":"q","top_k":"8"}', "$.top_k", "expected `int`, got `str`"),
        ('{"query":"q","top_k":1.5}', "$.top_k", "expected `int`, got `float`"),
        ('{"query":"q","top_k":true}', "$.top_k", "expected `int`, got `bool`"),
        ('{"query":"q","top_k":0.0}', "$.top_k", "expected `int` >= 1"),
        ('{"query":"q","top_k":1e30}', "$.top_k", "expected `int`, got `float`"),
        ('{"query":"q","top_k":8.0,"near":{"line":1.5}}', "$.near.line", "expected `int`, got `float`"),
        ('{"query":"q","order":"size"}', "$.order", "invalid enum value 'size'"),
        ('{"query":"q","near":{}}', "$.near.line", "required, but missing"),
        ('{"query":"q","near":{"line":null}}', "$.near.line", "expected `int`, got `null`"),
        ('{"query":null,"top_k":null}', "$.query", "expected `str`, got `null`"),
        ('{"query":"q","topk":3}', "$.topk", "unknown field"),
        ('{"query":"q","top_k":null,"topk":null}', "$.topk", "unknown field"),
        ("[]", "$", "expected `object`, got `array`"),
        ("null", "$", "expected `object`, got `null`"),
        ('"query"', "$", "expected `object`, got `str`"),
        (
            '{"query":"q","filter":{"a":' + "[" * 100_000 + "]" * 100_000 + "}}",
            "$",
            "it is nested too deeply",
        ),
    ],
)
async def test_a_bad_argument_is_named_by_its_path(arguments: str, path: str, reason: str) -> None:
    with pytest.raises(InvalidParams) as refused:
        await run(find, arguments)
    assert (refused.value.path, refused.value.reason) == (path, reason)


async def test_null_for_what_may_be_left_out_leaves_it_out() -> None:
    left_out = await run(find, '{"query":"q"}')
    assert (await run(find, '{"query":"q","top_k": null ,"near":null}')).content == left_out.content


async def test_a_default_that_can_change_is_new_for_each_call() -> None:
    @tool()
    async def collect(
        _: Call,
        into: Annotated[list[str], Meta(description="all")] = ["a"],  # noqa: B006
        near: Place = Place(3),  # noqa: B008
    ) -> str:
        """Collects."""
        into.append("b")
        near.line += 1
        return json.dumps([into, near.line])

    assert collect.info.input_schema["required"] == []
    for _ in range(2):
        assert (await run(collect, "{}")).content == [TextContent(text='[["a", "b"], 4]')]
    assert (await run(collect, '{"into":[]}')).content == [TextContent(text='[["b"], 4]')]


async def test_null_is_passed_to_an_argument_that_takes_it() -> None:
    @tool()
    async def rename(
        _: Call,
        limit: Annotated[int, Meta(ge=1)] = 5,
        title: str | UnsetType | None = UNSET,
        note: Annotated[str | None, Meta(description="why")] = "keep",
        tag: str | UnsetType = UNSET,
    ) -> str:
        """Renames."""
        return f"{limit} {title} {note} {tag}"

    async def text_of(arguments: str) -> str:
        [content] = (await run(rename, arguments)).content
        assert isinstance(content, TextContent)
        return content.text

    assert await text_of("{}") == "5 UNSET keep UNSET"
    assert await text_of('{"title":null,"note":null}') == "5 None None UNSET"
    assert await text_of('{"limit":null,"title":null,"note":null,"tag":null}') == "5 None None UNSET"


async def test_a_number_without_a_fraction_is_an_integer_wherever_one_is_declared() -> None:
    arguments = '{"query":"q","top_k":8.0,"near":{"line":1e1,"file":"1.0"},"filter":{"weight":2.0}}'
    assert (await run(find, arguments)).content == (
        await run(find, arguments.replace("8.0", "8").replace("1e1", "10"))
    ).content
    unplaced = await run(find, '{"query":"q","top_k":8.0,"filter":{"weight":2.0}}')
    assert unplaced.structured == Found([Place(8, 'qscore{"weight": 2.0}')])


async def test_numbers_without_fractions_are_integers_in_lists_tables_and_unions() -> None:
    @tool()
    async def add(
        _: Call, items: list[int], table: dict[str, list[int]], some: int | None, few: list[int | str]
    ) -> str:
        """Adds."""
        return json.dumps([items, table, some, few])

    many = "[" + ",".join(["1.0"] * 10_000) + "]"
    arguments = f'{{"items":{many},"table":{{"a":[2.0],"b":[3,4.0]}},"some":5.0,"few":["x",6.0]}}'
    expected = [[1] * 10_000, {"a": [2], "b": [3, 4]}, 5, ["x", 6]]
    assert (await run(add, arguments)).content == [TextContent(text=json.dumps(expected))]
    with pytest.raises(InvalidParams) as refused:
        await run(add, '{"items":[1.0,2.5],"table":{},"some":null,"few":[]}')
    assert (refused.value.path, refused.value.reason) == ("$.items[1]", "expected `int`, got `float`")


async def test_text_that_is_not_utf8_is_a_bad_argument() -> None:
    with pytest.raises(InvalidParams, match="UTF-8"):
        await find.run(CALL, Raw(b'{"query":"\xff"}'))


async def test_content_of_several_kinds_has_no_structured_form() -> None:
    @tool(read_only=True)
    async def shown(_: Call) -> list[Content]:
        """Shows something."""
        return [TextContent(text="Look:"), ImageContent(data="AA==", mime_type="image/png")]

    result = await shown.run(CALL, Raw(b"{}"))
    assert [type(content) for content in result.content] == [TextContent, ImageContent]
    assert result.structured is shown.info.output_schema is UNSET


async def test_tools_are_described_where_python_leaves_docstrings_out() -> None:
    """As with PYTHONOPTIMIZE=2 in the environment."""
    described = []
    for options in ([], ["-OO"]):
        async with spawned([SERVER[0], *options, *SERVER[1:]]) as client:
            described.append({info.name: info.description for info in await client.list_tools()})
    assert described[0] == described[1]


def test_a_function_that_cannot_be_a_tool_says_why() -> None:
    async def undocumented(_: Call) -> str:
        return ""

    async def untyped(_: Call, a) -> str:  # type: ignore[no-untyped-def]
        """Has no hint."""
        return str(a)

    async def odd(_: Call) -> int:
        """Returns a number."""
        return 5

    async def named(*, a: int) -> str:
        """Takes no call."""
        return str(a)

    async def without_call(a: int) -> str:
        """Forgets the call."""
        return str(a)

    async def many(_: Call, *a: int) -> str:
        """Takes any number of them."""
        return str(a)

    async def any_name(_: Call, **a: int) -> str:
        """Takes any name."""
        return str(a)

    async def foreign(_: Call, n: int, path: Path) -> str:
        """Takes what JSON does not have."""
        return str(n) + str(path)

    async def ambiguous(_: Call, place: Place | Found | None = None) -> str:
        """Takes one of two objects."""
        return str(place)

    async def undefined(_: Call, n: int) -> str:
        """Has a hint that its module does not define."""
        return str(n)

    undefined.__annotations__["n"] = "Nowhere"

    async def opaque(_: Call) -> Opaque:
        """Returns what JSON does not have."""
        return Opaque(Path())

    class Things:
        async def method(self, _: Call, a: int) -> str:
            """Is a method."""
            return str(a)

        async def __call__(self, _: Call, a: int) -> str:
            return str(a)

    cases: list[tuple[Any, str]] = [
        (without_call, "its first parameter, a, is not the call"),
        (many, "its parameter a cannot be given by name"),
        (any_name, "its parameter a cannot be given by name"),
        (
            foreign,
            "foreign cannot be a tool: its type hints have no JSON form: type .*Path.* is not supported",
        ),
        (ambiguous, "its type hints have no JSON form: If a type union contains multiple"),
        (undefined, "its type hints have no JSON form: name 'Nowhere' is not defined"),
        (opaque, "its type hints have no JSON form: type .*Path.* is not supported"),
        (Things.method, "method cannot be a tool: its first parameter, self, is not the call"),
        (Things(), "Things object .* cannot be a tool: it is not an async function"),
        (partial(find.function, top_k=3), r"partial\(.*\) cannot be a tool: it is not an async function"),
        (undocumented, "docstring"),
        (untyped, "argument a has no type hint"),
        (odd, "a tool returns a str, a list of content, an object in JSON .* or a ToolResult"),
        (named, "first parameter"),
    ]
    for function, reason in cases:
        with pytest.raises(BadFunction, match=reason):
            tool()(function)


def test_a_server_takes_tools_alone_and_each_name_once() -> None:
    async def bare(_: Call) -> str:
        """Was not decorated."""
        return ""

    with pytest.raises(BadFunction, match=r"bare cannot be a tool: it was not made with @tool\(\)"):
        Server("s", tools=[cast(Any, bare)])
    assert Server("s", tools=[plain, plain]).tools == {"plain": plain}
    with pytest.raises(BadFunction, match="plain cannot be a tool: another tool has the same name"):
        Server("s", tools=[plain, replace(plain, background=True)])


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", "2026-07-28"])
async def test_the_list_is_encoded_once_until_a_tool_changes(revision: str) -> None:
    server = Server("s", tools=[find, plain])
    async with raw_client(server, revision) as other, raw_client(server, "2026-07-28") as modern:
        assert [tool["name"] for tool in (await modern.request("tools/list"))["result"]["tools"]] == [
            "find",
            "plain",
        ]
        before = (await other.request("tools/list"))["result"]["tools"]
        assert ("outputSchema" in before[0]) == (revision != "2024-11-05")
        described = msgspec.structs.replace(find.info, description="Changed.")
        server.tools["find"] = msgspec.structs.replace(find, info=described)
        for client in (other, modern):
            after = (await client.request("tools/list"))["result"]["tools"]
            assert (after[0]["description"], after[1]["name"]) == ("Changed.", "plain")
        assert (await other.request("tools/list"))["result"]["tools"][1] == before[1]


def test_tools_of_the_same_code_with_other_defaults_have_schemas_of_their_own() -> None:
    def made(default: int) -> Tool:
        @tool()
        async def count(call: Call, start: int = default) -> str:  # noqa: ARG001
            """Counts."""
            return ""

        return count

    schemas = [made(default).info.input_schema for default in (1, 2, 1)]
    assert [schema["properties"]["start"]["default"] for schema in schemas] == [1, 2, 1]
