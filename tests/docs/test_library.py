"""The programs of the page about the libraries: each prints what the page shows."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, blocks, run_line
from tests.support.program import Program, program_in

PAGE = [block for block in blocks("python", "text") if block.page == DOCS / "library.md"]
PROGRAMS = {block.text.split()[1]: block.text for block in PAGE if block.kind == "python"}


@pytest.fixture
def library(tmp_path: Path) -> Program:
    """A folder with all programs of the page."""
    program = program_in(tmp_path)
    for name, text in PROGRAMS.items():
        (program.folder / name).write_text(text, encoding="utf-8")
    return program


@pytest.mark.full
def test_every_program_of_the_library_page_prints_what_the_page_shows(library: Program) -> None:
    shown = [
        (program.text.split()[1], output.text)
        for program, output in itertools.pairwise(PAGE)
        if (program.kind, output.kind) == ("python", "text")
    ]
    assert [name for name, _ in shown] == ["client.py", "gardener.py", "notes.py", "upkeep.py"]
    for name, output in shown:
        assert run_line(library, f"{sys.executable} -W error {name}") == output, name


# The socket listens before the server runs, so the client can connect at once.
CALL = """
import socket
import anyio, uvicorn
from mounted import app
from ragmcp import open_http

async def main():
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listening])
        async with open_http(url, token="secret") as client:
            print(*[tool.name for tool in await client.list_tools()])
        server.should_exit = True

anyio.run(main)
"""


@pytest.mark.full
def test_the_mounted_server_of_the_library_page_answers(library: Program) -> None:
    (library.folder / "call.py").write_text(CALL, encoding="utf-8")
    assert run_line(library, f"{sys.executable} -W error call.py") == "plant water\n"
