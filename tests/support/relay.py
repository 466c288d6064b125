"""Stands between a host and a server on stdio and writes down what both say: `relay.py RECORD COMMAND…`.

Each line of the record is one line of theirs, after "client " or "server ".
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import IO


def pass_on(sender: bytes, source: IO[bytes], target: IO[bytes], record: IO[bytes]) -> None:
    """Until `source` ends."""
    try:
        for line in source:
            record.write(sender + b" " + line)
            target.write(line)
            target.flush()
        target.close()
    except BrokenPipeError:
        return


def main() -> None:
    """Ends as the server does."""
    path, *command = sys.argv[1:]
    # Unbuffered and appended to: each line is written whole by any writer.
    with Path(path).open("ab", buffering=0) as record:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert server.stdin
        assert server.stdout
        Thread(target=pass_on, args=(b"client", sys.stdin.buffer, server.stdin, record), daemon=True).start()
        pass_on(b"server", server.stdout, sys.stdout.buffer, record)
        code = server.wait()
    # Not sys.exit: the thread may still hold stdin.
    os._exit(code)


if __name__ == "__main__":
    main()
