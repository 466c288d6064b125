"""Standard streams that the parent process has closed."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
from ragcommon.streams import open_closed_streams
open_closed_streams()
with open(os.devnull) as file:
    assert file.fileno() > 2, file.fileno()
print("printed")
sys.stderr.write("warned")
assert sys.stdin.fileno() != 0 or sys.stdin.read() == ""
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX closes the streams")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_no_file_gets_the_descriptor_of_a_closed_stream(closed: str) -> None:
    command = f'exec "$0" -c "$1" {closed}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, PROGRAM], stdin=subprocess.DEVNULL, capture_output=True
    )
    assert done.returncode == 0, done.stderr
