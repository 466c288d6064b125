"""The one place where `ragmcp.legacy` is hooked in. Without that folder only the modern revision is spoken.

No other module outside the folder names it. Callers annotate the results with types of their own, because
the folder imports their modules: typing them here would be an import circle.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ragmcp.errors import UnsupportedRevision

_FOLDER = "ragmcp.legacy"


def find_legacy(module: str) -> Any | None:
    """A module of the folder, imported when it is first needed; None if the folder was removed."""
    try:
        return import_module(f"{_FOLDER}.{module}")
    except ModuleNotFoundError as error:
        if error.name not in (_FOLDER, f"{_FOLDER}.{module}"):
            raise
        return None


def require_legacy(module: str) -> Any:
    """The same. Raises UnsupportedRevision if the folder was removed."""
    found = find_legacy(module)
    if found is None:
        raise UnsupportedRevision("any legacy one", ())
    return found
