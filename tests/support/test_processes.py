"""What starts a process in a test or a benchmark: `tests.support.processes`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.mcp_process import ROOT


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no ignored signals")
def test_what_a_job_in_the_background_of_a_shell_starts_is_ended_by_ctrl_c() -> None:
    code = "import signal, tests.support.processes; signal.raise_signal(signal.SIGINT)"
    ignoring = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    done = subprocess.run(
        [*ignoring, sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE, check=False
    )
    assert b"KeyboardInterrupt" in done.stderr
