"""The one place where `ragmcp.legacy` is hooked in. Without that folder only the modern revision is spoken.

Nothing else outside the folder may name it. Callers give what they get from it a type of their own, so that
the folder may import from everywhere.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ragmcp.errors import UnsupportedRevision

_FOLDER = "ragmcp.legacy"


def legacy(module: str, requested: str = "") -> Any:
    """A module of the folder, imported when it is first needed.

    Raises UnsupportedRevision where the folder is missing; `requested` is the revision that needs it.
    """
    try:
        return import_module(f"{_FOLDER}.{module}")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(_FOLDER):
            raise
        from ragmcp.protocol.eras import MODERN_REVISIONS

        raise UnsupportedRevision(requested, MODERN_REVISIONS) from None
