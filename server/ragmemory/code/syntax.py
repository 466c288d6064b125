"""Parse source code with tree-sitter, and find the definitions in it.

One vocabulary serves all languages: the grammars share most names of node types, and a name that occurs in
only one of them does not affect the others.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar
    from tree_sitter import Node, Query, Tree

    from ragmemory.text.languages import Language

# A longer text is data or generated code, and is not parsed.
MAX_CHARACTERS = 300_000
# CPU seconds per text. A second is enough for 2 MB of hand-written code; a text that is not in the language
# may take minutes, also a short one.
PARSE_SECONDS = 1.0
# A large tree is discarded if it is too deep or has too many errors at SAMPLES nodes: a query may take
# quadratic time in its depth or errors. (Queries have a callback to stop them, but with tree-sitter 0.26.1 it
# crashes.)
MANY_NODES = 20_000
MAX_DEPTH = 2_000
SAMPLES = 64
MAX_ERRORS = 4
# A longer name is broken syntax.
MAX_NAME = 200

Kind = Literal["class", "function", "value"]

# fmt: off
_CLASSES = frozenset((
    "class_definition", "class_declaration", "abstract_class_declaration", "class_specifier", "class",
    "struct_specifier", "union_specifier", "enum_specifier", "struct_item", "union_item", "enum_item",
    "trait_item", "impl_item", "mod_item", "module", "internal_module", "namespace_definition",
    "namespace_declaration", "interface_declaration", "trait_declaration", "enum_declaration",
    "record_declaration", "struct_declaration", "type_spec", "annotation_type_declaration",
    "object_declaration", "companion_object", "protocol_declaration",
))
_FUNCTIONS = frozenset((
    "function_definition", "function_declaration", "generator_function_declaration", "function_item",
    "function_signature_item", "function_signature", "method_definition", "method_declaration",
    "method_signature", "abstract_method_signature", "method_elem", "constructor_declaration",
    "destructor_declaration", "compact_constructor_declaration", "property_declaration", "method",
    "singleton_method", "local_function_statement", "delegate_declaration", "init_declaration",
    "deinit_declaration", "protocol_function_declaration",
))
_VALUES = frozenset((
    "const_spec", "var_spec", "const_item", "static_item", "type_item", "type_alias_declaration",
    "type_alias", "preproc_def", "preproc_function_def", "macro_definition", "type_definition",
    "alias_declaration", "typealias_declaration",
))
# Functions if their value is one, else values.
_VARIABLES = frozenset((
    "variable_declarator", "public_field_definition", "field_definition", "assignment",
    "assignment_statement", "assignment_expression", "init_declarator",
))
_FUNCTION_VALUES = frozenset((
    "arrow_function", "function_expression", "generator_function", "function_definition", "class", "lambda",
))
# These define a type only with a body, unlike `struct store *s`.
_NEED_BODY = frozenset(("class_specifier", "struct_specifier", "union_specifier", "enum_specifier"))
# Nodes above a definition that belong to it; and nodes that enclose one.
_LEADING = frozenset((
    "comment", "line_comment", "block_comment", "multiline_comment", "decorator", "attribute_item",
    "attribute_list", "annotation",
))
_WRAPPERS = frozenset((
    "decorated_definition", "export_statement", "template_declaration", "lexical_declaration",
    "variable_declaration", "type_declaration",
))
# Names of several values, or of none: not definitions.
_NO_NAMES = frozenset((
    "subscript", "subscript_expression", "object_pattern", "array_pattern", "pattern_list", "tuple_pattern",
))
# fmt: on
_CAPTURED = _CLASSES | _FUNCTIONS | _VALUES | _VARIABLES | _LEADING | _WRAPPERS

# Fields that make a property a function: its type in C#, its body in Swift.
_COMPUTED = ("type", "computed_value")

_GENERICS = re.compile(r"<[^<>]*>|\[[^\[\]]*\]")
_SEPARATORS = re.compile(r"::|->|[.:#\\]")


class Definition(Struct, frozen=True):
    """A definition; its offsets are bytes of the text."""

    kind: Kind
    names: tuple[str, ...]  # its qualified name
    start: int  # including the comments and decorators above it
    begin: int  # excluding them
    end: int
    name: tuple[int, int]  # the range of its name
    outer: Definition | None = None
    in_function: bool = False


@dataclass(eq=False)
class Code:
    """A parsed text. Offsets are bytes of `data`, its UTF-8 encoding."""

    language: Language
    data: bytes
    _tree: Tree
    _nodes: Sequence[Node]  # the candidates for definitions in text order, outer nodes before inner ones

    @property
    def root(self) -> Node:
        return self._tree.root_node

    def text_of(self, node: Node) -> str:
        return self.data[node.start_byte : node.end_byte].decode(errors="replace")

    def line_at(self, offset: int) -> int:
        """The line of an offset, from 1."""
        return bisect_right(self._line_starts, offset)

    def line(self, number: int) -> str:
        """A line without its end."""
        starts = self._line_starts
        end = starts[number] if number < len(starts) else len(self.data)
        return self.data[starts[number - 1] : end].decode(errors="replace").rstrip("\r\n")

    def qualified(self, names: Iterable[str]) -> str:
        return self.language.separator.join(names)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer(b"\n", self.data))]

    @cached_property
    def definitions(self) -> list[Definition]:
        """All definitions in text order, outer ones before inner ones."""
        found: list[Definition] = []
        stack: list[Definition] = []
        above: _Above | None = None
        for node in self._nodes:
            if node.type in _LEADING or node.type in _WRAPPERS or self._only_repeats_name(node):
                above = _above(self.data, above, node)
                continue
            while stack and stack[-1].end < node.end_byte:
                stack.pop()
            definition = self._definition(node, stack[-1] if stack else None, above)
            if definition is not None:
                found.append(definition)
                stack.append(definition)
                above = None
        return found

    def _only_repeats_name(self, node: Node) -> bool:
        """Whether a typedef gives a struct its own name: `typedef struct store {…} store` in C."""
        inner = node.child_by_field_name("type") if node.type == "type_definition" else None
        alias, name = (one and _name_node(one) for one in (node, inner))
        return (
            alias is not None
            and name is not None
            and inner is not None
            and _kind_of(inner, in_function=False) == "class"
            and self.text_of(alias) == self.text_of(name)
        )

    def _definition(self, node: Node, outer: Definition | None, above: _Above | None) -> Definition | None:
        in_function = outer is not None and (outer.in_function or outer.kind == "function")
        kind = _kind_of(node, in_function)
        if kind is None or (name := _name_node(node)) is None:
            return None
        names = self._names(node, name)
        if not names or (in_function and kind == "value"):
            return None
        start = above.start if above and above.reaches(self.data, node.start_byte) else node.start_byte
        return Definition(
            kind=kind,
            names=(*(outer.names if outer else ()), *names),
            start=start,
            begin=node.start_byte,
            end=node.end_byte,
            name=_last_name(name),
            outer=outer,
            in_function=in_function,
        )

    def _names(self, node: Node, name: Node) -> list[str]:
        """The parts of a definition's name; a Go method begins with its receiver. Empty if it has no name."""
        if name.type in _NO_NAMES or name.end_byte - name.start_byte > MAX_NAME:
            return []
        text = self.text_of(name)
        if name.type in ("operator_name", "string", "computed_property_name"):
            return [text.strip("'\"")]
        parts = parts_of(text)
        receiver = node.child_by_field_name("receiver")
        if receiver is not None:
            return [*parts_of(self.text_of(receiver).strip("() ").rpartition(" ")[2])[-1:], *parts]
        return [part for part in parts if part != "prototype"]


class _Above(Struct, frozen=True):
    """The comments and decorators above the next definition, or the start of the node that encloses it."""

    start: int
    end: int
    wrapped: int  # the end of the enclosing node

    def reaches(self, data: bytes, start: int) -> bool:
        """Whether a definition follows without a blank line."""
        if start < self.wrapped:
            return True
        between = data[self.end : start]
        return not between.strip() and between.count(b"\n") < 2


def _above(data: bytes, above: _Above | None, node: Node) -> _Above | None:
    wrapped = 0 if node.type in _LEADING else node.end_byte
    end = node.start_byte if wrapped else node.end_byte
    if above is not None and above.reaches(data, node.start_byte):
        return _Above(above.start, end, max(wrapped, above.wrapped))
    line = data.rfind(b"\n", 0, node.start_byte) + 1
    if data[line : node.start_byte].strip() and not wrapped:  # a comment after code
        return None
    return _Above(node.start_byte, end, wrapped)


def _kind_of(node: Node, in_function: bool) -> Kind | None:
    """The kind of definition; None if the node is not a definition."""
    kind = node.type
    if kind in _CLASSES:
        is_only_named = kind in _NEED_BODY and node.child_by_field_name("body") is None
        # The root of a Python file is a "module".
        return None if is_only_named or node.parent is None else "class"
    if kind in _VARIABLES:
        value = _value_of(node)
        if value is not None and value.type in _FUNCTION_VALUES:
            return "function"
        return None if in_function else "value"
    if kind == "property_declaration" and not any(map(node.child_by_field_name, _COMPUTED)):
        return None if in_function else "value"
    return "function" if kind in _FUNCTIONS else "value"


def _value_of(node: Node) -> Node | None:
    if node.type == "assignment_statement":  # Lua
        values = node.named_children[-1]
        return values.named_children[0] if values.named_children else None
    return node.child_by_field_name("value") or node.child_by_field_name("right")


def _name_node(node: Node) -> Node | None:
    """The name node of a definition, which may be qualified."""
    if node.type == "impl_item":
        return node.child_by_field_name("type")
    if node.type == "assignment_statement":
        return next(iter(node.named_children[0].named_children), None)
    if node.type == "property_declaration":
        return _name_of_property(node)
    for field in ("name", "property", "left", "declarator"):
        if (name := node.child_by_field_name(field)) is not None:
            # int *(*name)(…) in C
            while (inner := name.child_by_field_name("declarator")) is not None:
                name = inner
            return name
    return None


def _name_of_property(node: Node) -> Node | None:
    """None if it has several names."""
    variable = next((child for child in node.named_children if child.type == "variable_declaration"), None)
    if variable is not None:  # Kotlin
        return variable.named_children[0] if variable.named_children else None
    name = node.child_by_field_name("name")
    if name is not None and name.type == "pattern":  # Swift
        return name.child_by_field_name("bound_identifier")
    return name


def _last_name(name: Node) -> tuple[int, int]:
    """The range of the last part of a qualified name, without type parameters."""
    while name.named_child_count:
        named = name.child_by_field_name("name") or name.child_by_field_name("type")
        if named is None and name.type.startswith(("template", "generic")):
            named = name.named_children[0]
        name = named or name.named_children[-1]
    return name.start_byte, name.end_byte


def parts_of(name: str) -> list[str]:
    """The parts of a qualified name with any separator, without type parameters."""
    while (plain := _GENERICS.sub("", name)) != name:
        name = plain
    return [part for part in (part.strip(" *&()\n\t\r") for part in _SEPARATORS.split(name)) if part]


def parse(text: str, language: Language) -> Code | None:
    """Parse a text; None if it is too long or takes too long, or if the grammar is not installed."""
    if len(text) > MAX_CHARACTERS:
        return None
    try:
        from tree_sitter import Parser, QueryCursor

        grammar, query = _grammar(language)
    except ImportError:  # It is not installed, or there is no memory for it now.
        return None
    data = text.encode(errors="replace")
    until = time.thread_time() + PARSE_SECONDS
    # A parser is not thread-safe, and texts are parsed in several threads: make one for each text.
    parser = Parser(grammar)
    parts: list[memoryview] = []

    def read(offset: int, _: object) -> memoryview:
        parts.append(memoryview(data)[offset:])
        return parts[-1]

    try:
        # Only a parser that reads with a function can be stopped.
        tree = parser.parse(read, progress_callback=lambda _, __: time.thread_time() > until)
    except ValueError:  # It was stopped.
        return None
    finally:
        for part in parts:  # tree-sitter 0.26.1 keeps most of them.
            part.release()
    if _is_broken(tree):
        return None
    nodes = QueryCursor(query).captures(tree.root_node).get("node", [])
    return Code(language, data, tree, sorted(nodes, key=lambda node: (node.start_byte, -node.end_byte)))


def _is_broken(tree: Tree) -> bool:
    """Whether a sample of the nodes of a large tree is very deep, or mostly errors."""
    count = tree.root_node.descendant_count
    if count < MANY_NODES:
        return False
    cursor = tree.walk()
    errors = 0
    for index in range(0, count, count // SAMPLES):
        cursor.goto_descendant(index)
        if cursor.depth > MAX_DEPTH:
            return True
        errors += cursor.goto_parent() and cursor.node is not None and cursor.node.is_error
    return errors > MAX_ERRORS


@cache
def _grammar(language: Language) -> tuple[Grammar, Query]:
    """A grammar, and the query for all nodes that may be definitions. Raises ImportError."""
    from tree_sitter import Language as Grammar
    from tree_sitter import Query

    grammar = Grammar(getattr(import_module(language.module), language.grammar)())
    known = (kind for kind in sorted(_CAPTURED) if grammar.id_for_node_kind(kind, True))
    return grammar, Query(grammar, f"[{' '.join(f'({kind})' for kind in known)}] @node")
