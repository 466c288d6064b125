"""The memory: takes text, embeds it, stores it, finds it again. Never talks to a chat model.

`service.MemoryService` joins its parts: `search`, `ingest`, `history`, `blocks`, `code`, `files` and
`maintenance`. `app` builds it from settings, `mcp` and `http` offer it, `stores` keeps it in a file or in
PostgreSQL. `follower` notices what any process writes, `log` writes the log as JSON. `Memory` is the same for
scripts. The names below are imported when they are first used.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragcommon.contract.documents import Injected
    from ragcommon.contract.history import Origin
    from ragcommon.contract.search import Hit, QueryResult
    from ragmemory.errors import RagMemoryError
    from ragmemory.memory import Memory

__version__ = "0.1.0"
__all__ = ["Hit", "Injected", "Memory", "Origin", "QueryResult", "RagMemoryError"]

_HOMES = {
    "Hit": "ragcommon.contract.search",
    "Injected": "ragcommon.contract.documents",
    "Memory": "ragmemory.memory",
    "Origin": "ragcommon.contract.history",
    "QueryResult": "ragcommon.contract.search",
    "RagMemoryError": "ragmemory.errors",
}

# Two BLAS threads collapse as soon as another process is busy (a 10,000 row scan goes from 0.4 to 8 ms).
# It must be set before numpy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

if not TYPE_CHECKING:  # For mypy it would make every name valid.

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)

    def __dir__() -> list[str]:
        return [*globals(), *__all__]
