"""From what msgspec says about a value to the error that names the offending field. Pure."""

from __future__ import annotations

import re

from ragmcp.errors import InvalidParams

# A name with dots of its own.
_DOTTED = re.compile(r"\.(io\.modelcontextprotocol/\w+)")


def invalid_params(error: Exception) -> InvalidParams:
    """What msgspec says about a value, as the path of the offending field and the reason."""
    if isinstance(error, RecursionError):
        return InvalidParams("$", "it is nested too deeply")
    if isinstance(error, UnicodeDecodeError):
        return InvalidParams("$", "a string in it is not UTF-8")
    reason, _, path = str(error).partition(" - at `")
    path = path.rstrip("`") or "$"
    for start in ("Object contains unknown field `", "Object missing required field `"):
        if reason.startswith(start):
            path = f"{path}.{reason.removeprefix(start).rstrip('`')}"
            reason = "unknown field" if "unknown" in start else "required, but missing"
    path = _DOTTED.sub(r"['\1']", path)
    return InvalidParams(path, reason[:1].lower() + reason[1:])
