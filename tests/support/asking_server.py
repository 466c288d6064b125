"""A server of 2025-06-18 that asks its client, outside of any call, what comes through a named pipe.

The pipe brings JSON-RPC requests, one a line, or `end`, which ends the server; the results go to a file.
Started by its path with both paths: it imports nothing of ours, and so starts fast.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from threading import Thread
from typing import Any

INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "serverInfo": {"name": "asking", "version": "1"},
}


def send(**message: Any) -> None:
    os.write(1, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def ask(pipe: Path) -> None:
    while True:
        with pipe.open(encoding="utf-8") as questions:
            for line in questions:
                if line.strip() == "end":
                    os._exit(0)
                send(**json.loads(line))


def main(pipe: str, results: str) -> None:
    """Answer the handshake, and write down what the client answers."""
    Thread(target=ask, args=[Path(pipe)], daemon=True).start()
    with Path(results).open("a", encoding="utf-8") as file:
        for line in sys.stdin:
            message = json.loads(line)
            if message.get("method") == "initialize":
                send(id=message["id"], result=INITIALIZED)
            elif "method" not in message:
                file.write(json.dumps(message.get("result") or message) + "\n")
                file.flush()
            elif "id" in message:
                send(id=message["id"], error={"code": -32601, "message": "unknown"})


if __name__ == "__main__":
    main(*sys.argv[1:])
