"""What a signal ends while a command's last tasks are being ended."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.support.processes import LONGEST_SECONDS, wait_until_ended
from tests.support.servers import STUBBORN

if sys.platform != "linux":
    pytest.skip("how another's process ends is seen on Linux", allow_module_level=True)

# Its command has ended, but the task that runs a server has not.
PROGRAM = f"""
import asyncio
from ragchat.commands import stopping
from ragmcp.stdio.process import ServerProcess

async def serve(started):
    command = [{STUBBORN["command"]!r}, *{STUBBORN["args"]!r}]
    async with ServerProcess.start(command, stderr=None, env=None, cwd=None) as server:
        print(server._process.pid, flush=True)
        started.set()
        await asyncio.Event().wait()

async def command():
    started = asyncio.Event()
    global task
    task = asyncio.create_task(serve(started))
    await started.wait()
    return 0

stopping.run(command())
"""


def test_a_signal_after_the_command_kills_the_servers_that_still_run() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        server = int(process.stdout.readline())
        while process.poll() is None:  # The first one may come before the command has ended.
            process.send_signal(signal.SIGINT)
        assert process.wait(LONGEST_SECONDS) == -signal.SIGINT
        wait_until_ended(server)
