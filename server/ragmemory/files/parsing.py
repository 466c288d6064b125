"""Parse a file in a worker process, within limits of time and memory: a parser may hang or crash."""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import anyio
from anyio import BrokenWorkerProcess

from ragconfig.files.decoding import LARGEST_BYTES, NotText
from ragconfig.files.regular import read_regular
from ragmemory.files.formats.read import Read

# Reads the bytes of a file. A worker imports it by its name. Raises NotText.
Parser: TypeAlias = Callable[[Path, bytes], Read]

# The largest of usual books take a few seconds.
DEADLINE_SECONDS = 60.0
# Of a worker's address space. The largest text and its archive take less than half.
MOST_MEMORY = 4 << 30
# Files that are parsed at the same time.
WORKERS = min(4, os.cpu_count() or 1)


async def parse(read: Parser, path: Path, limiter: anyio.CapacityLimiter) -> Read:
    """Read a file with a parser. Raises NotText, OSError."""
    from anyio import to_process

    async with limiter:
        try:
            with anyio.fail_after(DEADLINE_SECONDS):
                result = await to_process.run_sync(_parse, read, path, DEADLINE_SECONDS, cancellable=True)
        except TimeoutError:
            raise NotText(f"cannot be read: it took longer than {DEADLINE_SECONDS:.0f} seconds") from None
        except BrokenWorkerProcess:
            raise NotText("cannot be read: its parser crashed") from None
    if isinstance(result, str):
        raise NotText(result)
    return result


def _parse(read: Parser, path: Path, seconds: float) -> Read | str:
    """What the file holds, or why it cannot be read. Raises OSError.

    Only exceptions of the standard library are sure to survive the way to another process.
    """
    _limit_memory()
    # Ends this process even if the parent was killed, or a library holds the interpreter's lock.
    faulthandler.dump_traceback_later(seconds + 1, exit=True)
    try:
        return read(path, read_regular(path, LARGEST_BYTES))
    except NotText as error:
        return str(error)
    except ImportError as error:
        return f"needs the package {error.name}, which is not installed"
    except MemoryError:
        return "cannot be read: it needs too much memory"
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    except Exception as error:
        return f"cannot be read: it is damaged ({type(error).__name__})"
    finally:
        faulthandler.cancel_dump_traceback_later()


def _limit_memory() -> None:
    """POSIX only; macOS does not enforce it."""
    if sys.platform != "win32":
        import resource

        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
