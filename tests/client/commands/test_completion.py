"""Completion at Tab: the candidates, and the scripts in real shells.

Covers `ragcommon.completion`.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ragchat.arguments.parser import make_parser
from ragchat.commands.completion import completion
from ragchat.commands.invocation import Invocation
from ragchat.console import Console
from ragmemory import cli
from tests.support.processes import LONGEST_SECONDS
from tests.support.program import program_in

PROGRAMS = Path(sys.executable).parent


def candidates(*words: str) -> list[str]:
    out = io.StringIO()
    run = Invocation(make_parser().parse_args(["completion", "bash", "--", *words]), Console(stdout=out))
    completion(run)
    return [line.partition("\t")[0] for line in out.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (["as"], ["ask"]),
        (["config", ""], ["show", "path", "init"]),
        (["-v", "--model", "config", "session", "ex"], ["export"]),
        (["ask", "--rol"], ["--role"]),
        (["ask", "--role", ""], ["reviewer", "teacher", "mate"]),
        (["ask", "--role=te"], ["--role=teacher"]),
        (["ask", "--role", "=", "te"], ["teacher"]),  # as bash splits it
        (["ask", "--prompt", "summ"], ["summarize-document"]),
        (["prompt", "show", "ma"], ["mate"]),
        (["mcp", "rm", ""], ["mine"]),
        (["mcp", "config", "cl"], ["claude-desktop", "claude-code", "cline"]),
        (["completion", "z"], ["zsh"]),
        (["inject", ""], [":files"]),
        (["ask", "-f", "te"], [":files"]),
        (["ask", "--prompt", "summarize-document", "te"], [":files"]),
        (["ask", "--model", ""], []),
        (["session", "show", ""], []),
        (["askk", "--ro"], []),
    ],
)
def test_commands_options_and_known_values_are_completed(
    line: list[str], found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGCHAT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config" / "roles").mkdir(parents=True)
    (tmp_path / "config" / "roles" / "mate.md").write_text("Answer as a mate.", "utf-8")
    (tmp_path / "config" / "mcp.json").write_text('{"mcpServers": {"mine": {"command": "x"}}}', "utf-8")
    assert candidates(*line) == found


def test_the_memory_server_completes_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = cli._parser(commands=True).parse_args(["completion", "fish", "--", "bridge", "--sp"])
    arguments.run(None, arguments)
    assert capsys.readouterr().out == "--spawn\tstart a server there if none responds\n"


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize("shell", [["bash", "--norc", "-i"], ["zsh", "-f", "-i"]], ids=["bash", "zsh"])
def test_a_line_is_completed_in_a_shell(shell: list[str], tmp_path: Path) -> None:
    from tests.support.terminal import Terminal

    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")
    ragchat = program_in(tmp_path, PATH=f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}", TERM="xterm")
    (ragchat.folder / "tea.md").write_text("Tea.", "utf-8")
    with Terminal(shell, ragchat.variables, cwd=ragchat.folder) as terminal:
        terminal.enter(f'eval "$(ragchat completion {shell[0]})"; PS1="at> "; echo re""ady')
        # Without its prompt, the shell does not read yet, and the terminal takes the tabs as text.
        terminal.wait_for(r"^ready\s+at>")
        terminal.type("ragchat as\t--prom\tsum\tt\t--rol\tte\t")
        terminal.wait_for("ragchat ask --prompt summarize-document tea.md --role teacher")


@pytest.mark.full
@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_a_line_is_completed_in_fish(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path, PATH=f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")
    (ragchat.folder / "tea.md").write_text("Tea.", "utf-8")
    lines = "ragchat ask --rol", "ragchat ask --role=te", "ragchat inject te"
    code = "ragchat completion fish | source; " + "; ".join(f'complete -C "{line}"' for line in lines)
    done = subprocess.run(
        ["fish", "-c", code],
        capture_output=True,
        text=True,
        env=ragchat.variables,
        cwd=ragchat.folder,
        timeout=LONGEST_SECONDS,
        check=True,
    )
    assert done.stdout == "--role\tanswer in this role, such as reviewer\n--role=teacher\ntea.md\n"
