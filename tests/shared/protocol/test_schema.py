"""Wire objects are written as the protocol names them, and read leniently.

Covers `ragmcp.protocol.schema.base`, `ragmcp.protocol.schema.completion`, `ragmcp.protocol.schema.content`,
`ragmcp.protocol.schema.discovery`, `ragmcp.protocol.schema.input`, `ragmcp.protocol.schema.logging`,
`ragmcp.protocol.schema.prompts`, `ragmcp.protocol.schema.resources`,
`ragmcp.protocol.schema.subscriptions`, `ragmcp.protocol.schema.tasks`, `ragmcp.protocol.schema.tools` and
`ragmcp.legacy.schema`.
"""

from __future__ import annotations

import msgspec
import pytest

from ragmcp.protocol.schema.base import Implementation, Params, RequestMeta
from ragmcp.protocol.schema.content import Content, TextContent
from ragmcp.protocol.schema.tools import CallToolResult, ToolAnnotations


def test_fields_are_written_in_camel_case_and_unset_ones_not_at_all() -> None:
    result = CallToolResult(content=[TextContent(text="t")], result_type="complete")
    assert msgspec.to_builtins(result) == {
        "content": [{"type": "text", "text": "t"}],
        "resultType": "complete",
    }
    assert msgspec.to_builtins(ToolAnnotations(read_only_hint=True)) == {"readOnlyHint": True}


def test_meta_keys_carry_their_prefix() -> None:
    meta = RequestMeta(protocol_version="v", client_info=Implementation(name="n", version="1"))
    assert msgspec.to_builtins(meta) == {
        "io.modelcontextprotocol/protocolVersion": "v",
        "io.modelcontextprotocol/clientInfo": {"name": "n", "version": "1"},
    }


def test_a_default_meta_is_not_written() -> None:
    assert msgspec.json.encode(Params()) == b"{}"


def test_unknown_fields_are_ignored() -> None:
    text = b'{"type":"text","text":"t","new":[1]}'
    assert msgspec.json.decode(text, type=Content) == TextContent(text="t")


def test_content_of_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(msgspec.ValidationError, match="hologram"):
        msgspec.json.decode(b'{"type":"hologram"}', type=Content)
