"""The proxy of litellm with its mock models; `python -m tests.peers.litellm_server http PORT`."""

import gc
import os
import sys
from pathlib import Path
from typing import Any

from tests.support.serving import run_app

os.environ["CONFIG_FILE_PATH"] = str(Path(__file__).with_name("litellm.yaml"))
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # The list of prices is not downloaded.


async def proxy(scope: Any, receive: Any, send: Any) -> None:
    """Imports the proxy at the first event, after the port is known: that takes many seconds."""
    gc.disable()  # Otherwise it costs a fifth of that time, and the process is short-lived.
    from litellm.proxy.proxy_server import app

    await app(scope, receive, send)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["http", port]:
            run_app(proxy, int(port))
