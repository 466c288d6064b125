"""The occurrences of a name in a parsed text: definitions, calls, imports and other references.

Names are compared, not types: `a.find()` may call any `find`. What is certain is used: a variable or
parameter of the same name hides the definition; `self.find()` refers to the enclosing class, if that has a
`find`; and `Store.find()` to the class `Store`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from ragmemory.code.syntax import Code, Definition, parts_of

if TYPE_CHECKING:
    from tree_sitter import Node

Use = Literal["definition", "call", "import", "reference"]

# Maximum depth of an occurrence in the tree.
_MAX_DEPTH = 500
# Maximum calls examined per definition.
_MAX_CALLS = 1_000

# fmt: off
_CALLS = frozenset((
    "call", "call_expression", "new_expression", "method_invocation", "object_creation_expression",
    "invocation_expression", "function_call_expression", "member_call_expression", "scoped_call_expression",
    "nullsafe_member_call_expression", "function_call", "command", "macro_invocation",
))
# The fields of a call that may hold the callee, the most specific first.
_CALLEES = ("function", "method", "name", "constructor", "type", "macro")
# Nodes that end with the name: a.b, a::b, a->b.
_MEMBERS = frozenset((
    "attribute", "member_expression", "selector_expression", "field_expression", "scoped_identifier",
    "qualified_identifier", "member_access_expression", "dot_index_expression", "method_index_expression",
    "scope_resolution", "qualified_name", "scoped_type_identifier", "nested_identifier", "dotted_name",
    "class_constant_access_expression", "qualified_type", "field_access", "subscript_expression",
    "navigation_expression",
))
# Nodes that wrap the name: a<T>.
_AROUND = frozenset((
    "generic_function", "template_function", "generic_type", "template_type", "generic_name", "command_name",
    "type_identifier", "template_method", "non_null_expression", "parenthesized_expression",
    "navigation_suffix",
))
_IMPORTS = frozenset((
    "import_statement", "import_from_statement", "future_import_statement", "import_declaration",
    "use_declaration", "namespace_use_declaration", "using_directive", "using_declaration",
    "preproc_include", "extern_crate_declaration", "import",
))
_PARAMETERS = frozenset((
    "parameters", "formal_parameters", "parameter_list", "method_parameters", "lambda_parameters",
    "closure_parameters", "block_parameters", "function_value_parameters",
))
# Statements that declare a variable, and the field with its name.
_LOCALS = {
    "assignment": "left", "variable_declarator": "name", "short_var_declaration": "left",
    "let_declaration": "pattern", "init_declarator": "declarator", "var_spec": "name",
    "assignment_statement": None, "for_statement": "left", "for_in_statement": "left",
}
_NO_CODE = ("string", "heredoc", "regex", "char", "template_string", "raw_", "line_str", "multi_line_str")
_SELF = frozenset(("self", "this", "$this", "Self", "cls", "static", "super", "parent", "super()"))
# fmt: on


class Occurrence(Struct, frozen=True):
    """One occurrence of a name; `inside` is the definition around it."""

    use: Use
    start: int  # bytes
    receiver: str  # the part before the last separator: "a.b" of a.b.find; "" for a bare name
    inside: Definition | None = None


def occurrences(code: Code, name: str) -> list[Occurrence]:
    """All occurrences of a name in text order, except where it is a local variable."""
    defined = {one.name: one for one in code.definitions if one.names[-1] == name}
    found: list[Occurrence] = []
    hidden: list[tuple[int, int]] = []
    word = re.compile(rb"(?<![\w$])" + re.escape(name.encode()) + rb"(?![\w$])")
    for match in word.finditer(code.data):
        path = _path_to(code.root, *match.span())
        if not path:
            continue
        is_import = any(node.type in _IMPORTS for node in path)
        if not is_import and (path[-1].type.startswith(_NO_CODE) or "comment" in path[-1].type):
            continue
        around = enclosing(code, match.start())
        definition = defined.get(match.span())
        if definition is not None:
            use: Use = "definition"
            around = definition.outer
        elif is_import or _is_required(code, path):
            use = "import"
        elif scope := _scope_of_variable(code, path):
            hidden.append(scope)
            continue
        elif _is_label(path):
            continue
        else:
            use = "call" if _is_called(path) else "reference"
        receiver = "" if definition else _receiver(code, path)
        found.append(Occurrence(use, match.start(), receiver, around))
    return [
        one
        for one in found
        if one.use in ("definition", "import")
        or one.receiver
        or not any(start <= one.start < end for start, end in hidden)
    ]


def enclosing(code: Code, offset: int) -> Definition | None:
    """The innermost function or class around an offset."""
    inner = None
    for definition in code.definitions:
        if definition.begin > offset:
            break
        if offset < definition.end and definition.kind != "value":
            inner = definition
    return inner


def callees(code: Code, definition: Definition) -> list[tuple[str, Occurrence]]:
    """The names that a definition calls, in text order, with the first call of each name and receiver.

    Calls of local variables are omitted.
    """
    found: dict[tuple[str, str], Occurrence] = {}
    for node in _calls_in(code, definition):
        target = _callee(node)
        if target is None:
            continue
        *receiver, last = _split(code.text_of(target)) or [""]
        if re.fullmatch(r"[^\W\d][\w$!?]*", last):
            before = ".".join(receiver) or _object_of(code, node)
            start = target.end_byte - len(last.encode())
            found.setdefault((last, before), Occurrence("call", start, before, definition))
    return [
        (name, call) for (name, _), call in found.items() if call.receiver or _is_visible(code, name, call)
    ]


def _is_visible(code: Code, name: str, call: Occurrence) -> bool:
    return any(one.start == call.start for one in occurrences(code, name))


def _calls_in(code: Code, definition: Definition) -> Iterator[Node]:
    cursor = code.root.walk()
    count = 0
    while True:
        node = cursor.node
        assert node is not None
        overlaps = node.end_byte > definition.begin and node.start_byte < definition.end
        if overlaps and node.start_byte >= definition.begin and node.type in _CALLS and node.is_named:
            yield node
            count += 1
            if count == _MAX_CALLS:
                return
        if overlaps and cursor.depth < _MAX_DEPTH and cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def _path_to(root: Node, start: int, end: int) -> list[Node]:
    """The nodes from the root to the leaf that contains a range; empty if it is too deep."""
    cursor = root.walk()
    path = [root]
    while cursor.goto_first_child_for_byte(start) is not None:
        node = cursor.node
        if node is None or node.start_byte > start or node.end_byte < end or len(path) == _MAX_DEPTH:
            return [] if len(path) == _MAX_DEPTH else path
        path.append(node)
    return path


def _callee(call: Node) -> Node | None:
    for field in _CALLEES:
        if (callee := call.child_by_field_name(field)) is not None:
            return callee
    return call.named_children[0] if call.named_child_count else None


def _is_called(path: list[Node]) -> bool:
    """Whether the last node is the name in a call, not in its arguments."""
    node = path[-1]
    for parent in reversed(path[:-1]):
        if parent.type in _CALLS:
            return _callee(parent) == node
        ends = parent.type in _MEMBERS and parent.end_byte == node.end_byte
        if not ends and parent.type not in _AROUND:
            return False
        node = parent
    return False


def _receiver(code: Code, path: list[Node]) -> str:
    """The expression before the name: the object, class or module whose member it is."""
    leaf = path[-1]
    for parent in reversed(path[:-1]):
        if parent.type in _CALLS and parent.child_by_field_name("arguments") is not None:
            return _object_of(code, parent) if _callee(parent) == leaf else ""
        if (
            parent.type in _MEMBERS
            and parent.end_byte == leaf.end_byte
            and parent.start_byte < leaf.start_byte
        ):
            before = code.data[parent.start_byte : leaf.start_byte].decode(errors="replace")
            return ".".join(_split(before)) or "?"
        if parent.type not in _AROUND:
            return ""
    return ""


def _object_of(code: Code, call: Node) -> str:
    """The object of a call that has a field for it, as in Java, Ruby and PHP."""
    for field in ("object", "receiver", "scope"):
        if (one := call.child_by_field_name(field)) is not None:
            return ".".join(_split(code.text_of(one))) or "?"
    return ""


def _split(text: str) -> list[str]:
    """The parts of an expression such as a.b(c).d, without the arguments of calls."""
    if len(text) > 300:
        text = text[-300:]
    return parts_of(re.sub(r"\([^()]*\)|\bnew\s+", "", text))


def _is_required(code: Code, path: list[Node]) -> bool:
    """Whether the name is imported by `const {name} = require("./file")`."""
    for node in path:
        if node.type == "variable_declarator" and (value := node.child_by_field_name("value")) is not None:
            return (
                code.text_of(value)[:8] in ("require(", "require ") and value.start_byte > path[-1].start_byte
            )
    return False


def _scope_of_variable(code: Code, path: list[Node]) -> tuple[int, int] | None:
    """The scope of the variable or parameter that the name declares here, if it does."""
    area, leaf = _function_around(code, path), path[-1]
    if area is None or path[-2].type in _MEMBERS or any(node.type == "user_type" for node in path):
        return None
    for parent, child in zip(reversed(path[:-1]), reversed(path[1:]), strict=True):
        if parent.type in _PARAMETERS or _is_parameter(path, parent):
            return area if _is_name_of_parameter(path, parent) else None
        if parent.type == "property_declaration":  # Kotlin, Swift
            is_name = child.type in ("variable_declaration", "pattern")
            return (parent.end_byte, area[1]) if is_name else None
        if parent.type in _LOCALS:
            field = _LOCALS[parent.type]
            names = parent.child_by_field_name(field) if field else parent.named_children[0]
            if names is None or names != child or leaf.type == "type_identifier":
                return None
            return area if code.language.hoists else (parent.end_byte, area[1])
        if parent.type in _CALLS:
            return None
    return None


def _function_around(code: Code, path: list[Node]) -> tuple[int, int] | None:
    scope = enclosing(code, path[-1].start_byte)
    if scope is not None and scope.kind == "function":
        return scope.begin, scope.end
    # The parameters of an anonymous function.
    functions = [node for node in path if "function" in node.type or "lambda" in node.type]
    return (functions[-1].start_byte, functions[-1].end_byte) if functions else None


def _is_parameter(path: list[Node], node: Node) -> bool:
    """Whether a node is a parameter outside a list, as in Swift."""
    return node.type == "parameter" and path[path.index(node) - 1].type.endswith("_declaration")


def _is_name_of_parameter(path: list[Node], parameters: Node) -> bool:
    """Whether the last node is the name of a parameter, not its type or default value."""
    below = path[path.index(parameters) + 1 :]
    for parent, child in pairwise(below):
        for field in ("type", "value", "default_value", "right"):
            if parent.child_by_field_name(field) == child:
                return False
    return below[-1].type != "type_identifier"


def _is_label(path: list[Node]) -> bool:
    """Whether the name is an argument label, as in f(name=1)."""
    return path[-2].type in ("keyword_argument", "argument_label") and (
        path[-2].child_by_field_name("name") == path[-1]
    )


def is_own(receiver: str) -> bool:
    """Whether a receiver refers to the enclosing class."""
    return receiver in _SELF
