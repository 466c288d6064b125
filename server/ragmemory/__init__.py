"""The memory: takes text, embeds it, stores it, finds it again. Never talks to a chat model.

`service.MemoryService` joins its parts: `search`, `ingest`, `history`, `blocks`, `code`, `files` and
`maintenance`. `app` builds it from settings, `mcp` and `http` offer it, `stores` keeps it in a file or in
PostgreSQL. `follower` notices what any process writes, `log` writes the log as JSON. `Memory` is the same for
scripts, imported at its first use.
"""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragmemory.memory import Memory as Memory

__version__ = "0.1.0"

# Two BLAS threads collapse as soon as another process is busy (a 10,000 row scan goes from 0.4 to 8 ms).
# It must be set before numpy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

if not TYPE_CHECKING:  # For mypy it would make every name valid.

    def __getattr__(name: str) -> object:
        if name != "Memory":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from ragmemory.memory import Memory

        return Memory
