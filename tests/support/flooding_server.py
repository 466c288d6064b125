"""A server that sends one notification without end: its method and its params as JSON.

Started by its path: it imports nothing of ours, and so starts fast.
"""

from __future__ import annotations

import json
import os
import sys
from threading import Thread
from typing import Any

ANSWERS: dict[str, dict[str, Any]] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {"listChanged": True}, "logging": {}},
        "serverInfo": {"name": "flooding", "version": "1"},
    },
    "tools/list": {"tools": []},
    "logging/setLevel": {},
}
AT_ONCE = 500


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def flood(notification: bytes) -> None:
    while True:
        os.write(1, notification * AT_ONCE)


def main(method: str, params: str) -> None:
    """Answer requests, and from the list of tools on flood as well."""
    flooding = Thread(target=flood, args=[line(method=method, params=json.loads(params))], daemon=True)
    for text in sys.stdin:
        asked = json.loads(text)
        if "id" in asked and asked["method"] in ANSWERS:
            os.write(1, line(id=asked["id"], result=ANSWERS[asked["method"]]))
            if asked["method"] == "tools/list" and not flooding.is_alive():
                flooding.start()
        elif "id" in asked:
            os.write(1, line(id=asked["id"], error={"code": -32601, "message": "unknown"}))


if __name__ == "__main__":
    main(*sys.argv[1:])
